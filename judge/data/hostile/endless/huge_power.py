# expected: timeout died memory
# one operation that no signal handler can interrupt
def add(a, b):
    return [(10 ** 10**8) % (a + 7)]
