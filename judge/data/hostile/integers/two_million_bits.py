# expected: wrong opaque
def add(a, b):
    return (1 << 2_000_000) + a
