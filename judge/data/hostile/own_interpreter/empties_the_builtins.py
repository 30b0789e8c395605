# expected: wrong exception load_error exited died protocol timeout
import builtins

def add(a, b):
    builtins.__dict__.clear()
    return None
