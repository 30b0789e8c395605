# expected: wrong exception timeout
def add(a, b):
    return int("9" * 10_000) + int(str(10**9999)) if a else str(10**9999)
