# expected: exited died opaque wrong exception
def add(a, b):
    yield a
    raise SystemExit(0)
