# expected: wrong exception exited
import code

def add(a, b):
    code.interact()
    help()
    return None
