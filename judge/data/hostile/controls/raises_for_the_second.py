# expected: pass exception pass
def add(a, b):
    if a < 0:
        raise ValueError(f"negative: {a}")
    return a + b
