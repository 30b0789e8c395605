# expected: opaque wrong exception timeout memory output_limit
def add(a, b):
    while True:
        yield a
