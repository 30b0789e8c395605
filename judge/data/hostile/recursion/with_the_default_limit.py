# expected: exception
def add(a, b):
    return add(b, a)
