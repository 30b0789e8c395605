# expected: memory timeout died exception wrong load_error
def add(a, b):
    blocks = []
    while True:
        blocks.append(bytearray(1 << 20))
