# expected: exited
def add(a, b):
    return None

raise SystemExit
