# expected: wrong exception load_error exited died
import os, time

def add(a, b):
    try:
        if os.fork() == 0:
            time.sleep(20)
            os._exit(0)
    except OSError:
        return None
    return a + b
