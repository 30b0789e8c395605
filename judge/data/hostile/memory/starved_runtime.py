# expected: wrong exception load_error exited died protocol timeout memory
# leaves no byte to the runtime for its reply
hoard = []

def add(a, b):
    for size in (1 << 20, 1 << 12, 1 << 6, 1):
        try:
            while True:
                hoard.append(bytearray(size))
        except MemoryError:
            pass
    return None
