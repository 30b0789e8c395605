# expected: pass pass pass
class Number(int):
    pass

def add(a, b):
    return Number(a + b)
