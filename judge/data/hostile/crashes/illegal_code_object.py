# expected: memory timeout died exception wrong load_error exited
def add(a, b):
    return None

add.__code__ = add.__code__.replace(co_code=bytes(range(1, 255, 2)) * 8, co_stacksize=0)
