# expected: STARVED
def add(a, b):
    blocks = []
    while True:
        blocks.append(bytearray(1 << 20))
