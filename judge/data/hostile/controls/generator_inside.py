# expected: pass pass pass
def add(a, b):
    return sum(number for number in (a, b))
