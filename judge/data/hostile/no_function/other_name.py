# expected: exception load_error
def plus(a, b):
    return a + b
