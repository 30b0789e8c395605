# expected: opaque wrong exception died
def add(a, b):
    answer = None
    for _ in range(100_000):
        answer = [answer]
    return answer
