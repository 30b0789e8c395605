# expected: wrong exception
def add(a, b):
    global add
    del add
    return None
