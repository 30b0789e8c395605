# expected: ENDED
import os

def add(a, b):
    os.abort()
