# expected: load_error load_error load_error
def add(a, b):
    return a +
