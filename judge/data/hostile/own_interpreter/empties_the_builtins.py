# expected: OWN_GOAL
import builtins

def add(a, b):
    builtins.__dict__.clear()
    return None
