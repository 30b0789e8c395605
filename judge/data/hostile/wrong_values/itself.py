# expected: opaque wrong exception
def add(*arguments):
    return add
