# expected: load_error
def add(a, b)
    return a + b
