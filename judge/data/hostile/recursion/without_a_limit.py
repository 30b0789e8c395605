# expected: memory timeout died exception wrong load_error
import sys
sys.setrecursionlimit(2**31 - 1)

def add(a, b):
    return add(b, a)
