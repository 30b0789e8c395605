# expected: wrong wrong wrong
def add(a, b):
    return a + b + 1
