# expected: wrong protocol opaque output_limit
def add(a, b):
    return "x" * (4 * 2**20 + 1)
