# expected: REFUSED
# tests: expecting_kinds.py
def add(a, b): return 0
