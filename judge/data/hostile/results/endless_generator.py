# expected: NOT_DATA timeout memory output_limit
def add(a, b):
    while True:
        yield a
