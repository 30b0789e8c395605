# expected: exception exception exception
def add(a, b):
    raise ValueError('not implemented')
