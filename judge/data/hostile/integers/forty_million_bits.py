# expected: timeout died wrong memory opaque
def add(a, b):
    return [(1 << 40_000_000) + a]
