# expected: wrong wrong wrong
def add(a, b):
    return str(a + b)
