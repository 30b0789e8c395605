# expected: wrong
# right as text, if somebody evaluates it
def add(a, b):
    return f"{a} + {b}"
