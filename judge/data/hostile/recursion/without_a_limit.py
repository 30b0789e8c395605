# expected: STARVED
import sys
sys.setrecursionlimit(2**31 - 1)

def add(a, b):
    return add(b, a)
