# expected: timeout died wrong
import sys
if hasattr(sys, "set_int_max_str_digits"):
    sys.set_int_max_str_digits(0)

def add(a, b):
    return int("7" * 3_000_000) % 3 + 50
