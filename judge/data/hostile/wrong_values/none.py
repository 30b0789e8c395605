# expected: wrong
def add(a, b):
    pass
