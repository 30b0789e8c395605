# expected: pass pass pass
def add(a, b):
    table = bytearray(64 << 20)
    return a + b + table[-1]
