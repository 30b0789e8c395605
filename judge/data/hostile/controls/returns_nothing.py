# expected: wrong wrong wrong
def add(a, b):
    print(a + b)
