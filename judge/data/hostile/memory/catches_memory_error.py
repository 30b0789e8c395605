# expected: memory timeout died exception wrong load_error
def add(a, b):
    blocks = []
    while True:
        try:
            while True:
                blocks.append(bytearray(1 << 16))
        except MemoryError:
            pass
