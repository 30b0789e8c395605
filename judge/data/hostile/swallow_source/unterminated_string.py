# expected: load_error
def add(a, b):
    return None

"""
the tests would be appended here
