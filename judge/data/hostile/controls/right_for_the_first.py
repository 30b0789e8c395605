# expected: pass wrong wrong
def add(a, b):
    return 3
