# expected: timeout died
import re

def add(a, b):
    return re.match("(x+x+)+y", "x" * 64)
