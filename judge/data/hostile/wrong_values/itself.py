# expected: NOT_DATA
def add(*arguments):
    return add
