# expected: wrong exception
import sys

def add(a, b):
    sys.stdout.buffer.write(bytes(range(256)))
    sys.stdout.write(chr(0xD800))
    sys.stdout.flush()
    return None
