# expected: wrong opaque
def add(a, b):
    return chr(0xDC80)
