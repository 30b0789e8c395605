# expected: wrong pass wrong
def add(a, b):
    return 0
