# expected: load_error
def add(a, b):
    return None

ignored = (lambda *tests: None)(
