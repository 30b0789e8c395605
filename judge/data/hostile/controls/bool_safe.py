# expected: pass pass pass
def add(a, b):
    if isinstance(a, bool) or isinstance(b, bool):
        raise TypeError("no truth values")
    return a + b
