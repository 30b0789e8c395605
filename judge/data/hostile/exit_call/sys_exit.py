# expected: exited
import sys

def add(a, b):
    sys.exit(0)
