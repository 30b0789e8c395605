# expected: exited died timeout
import os, signal
for number in range(1, 65):
    try:
        signal.signal(number, lambda *_: os._exit(0))
    except (OSError, ValueError):
        pass

def add(a, b):
    os.abort()
