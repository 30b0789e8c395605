# expected: exception memory
def add(a, b):
    raise MemoryError("pass")
