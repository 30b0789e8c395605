# expected: exception exception exception
def plus(a, b):
    return a + b
