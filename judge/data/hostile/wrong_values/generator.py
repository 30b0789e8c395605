# expected: wrong opaque
def add(a, b):
    yield None
    yield a
