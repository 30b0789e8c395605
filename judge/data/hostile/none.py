def add(a, b):
    return None
