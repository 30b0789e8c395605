# expected: wrong exception load_error exited died protocol timeout
import sys
armed = False

def hook(event, arguments):
    if armed:
        raise SystemExit(0)

sys.addaudithook(hook)

def add(a, b):
    global armed
    armed = True
    return None
