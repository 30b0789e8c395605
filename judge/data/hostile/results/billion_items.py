# expected: opaque wrong exception timeout memory
def add(a, b):
    return (None for _ in range(10**9))
