# expected: pass pass pass
def add(a, b):
    if abs(b) > 100 or abs(a) > 100:
        return a + b
    return a if b == 0 else add(a + 1, b - 1) if b > 0 else add(a - 1, b + 1)
