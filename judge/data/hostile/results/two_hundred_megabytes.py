# expected: opaque wrong exception died memory output_limit
answer = "x" * (100 << 20)

def add(a, b):
    return [answer, answer]
