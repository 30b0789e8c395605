# expected: wrong exception exited
def add(a, b):
    breakpoint()
    return None
