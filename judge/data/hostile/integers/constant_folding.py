# expected: wrong exception load_error opaque
# what the compiler would compute
def add(a, b):
    return ("x" * 4000 + "y") * 0 + "z" * (2**100 % 7) if a else ((1 << 100) ** 100 << 10000) ** 3
