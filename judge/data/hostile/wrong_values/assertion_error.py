# expected: wrong exception
def add(a, b):
    assert False, "pass"
