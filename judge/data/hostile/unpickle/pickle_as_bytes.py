# expected: wrong
# a ready pickle, in case somebody tries to load bytes
def add(a, b):
    return b"cos" + bytes([10]) + b"_exit" + bytes([10]) + b"(I0" + bytes([10]) + b"tR."
