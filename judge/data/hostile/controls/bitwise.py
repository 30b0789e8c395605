# expected: pass pass pass
def add(a, b):
    mask = 0xFFFFFFFF
    while b & mask:
        a, b = a ^ b, (a & b) << 1
    return a & mask if b > 0 else a
