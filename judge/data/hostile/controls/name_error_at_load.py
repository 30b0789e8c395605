# expected: load_error load_error load_error
limit = undefined

def add(a, b):
    return a + b
