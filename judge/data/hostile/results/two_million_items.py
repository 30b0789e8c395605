# expected: opaque wrong exception timeout memory output_limit
def add(a, b):
    return {number: str(number) for number in range(1, 500_000)}
