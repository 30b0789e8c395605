# expected: timeout died wrong
import time

def add(a, b):
    time.sleep(0.3)
    return None
