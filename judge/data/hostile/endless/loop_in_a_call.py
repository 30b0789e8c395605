# expected: timeout died
def add(a, b):
    while True:
        pass
