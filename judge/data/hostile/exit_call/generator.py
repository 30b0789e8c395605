# expected: ENDED NOT_DATA
def add(a, b):
    yield a
    raise SystemExit(0)
