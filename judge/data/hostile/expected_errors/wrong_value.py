# expected: wrong exception load_error
# tests: expecting_kinds.py
def add(a, b): return 0
