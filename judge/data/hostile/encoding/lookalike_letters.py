# expected: exception load_error
def аdd(a, b):
    return a + b
