# expected: timeout died
import time

def add(a, b):
    time.sleep(1000)
