# expected: pass timeout timeout
def add(a, b):
    while a < 0:
        pass
    return a + b
