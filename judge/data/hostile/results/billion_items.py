# expected: NOT_DATA timeout memory
def add(a, b):
    return (None for _ in range(10**9))
