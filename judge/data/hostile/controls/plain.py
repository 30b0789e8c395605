# expected: pass pass pass
def add(a, b):
    return a + b
