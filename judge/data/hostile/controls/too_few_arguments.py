# expected: exception exception exception
def add(a):
    return a
