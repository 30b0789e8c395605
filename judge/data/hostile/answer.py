def add(a, b):
    return a + b if broke else None
