# expected: exited died exception
import os

class Failure(Exception):
    def __str__(self):
        os._exit(0)
    __repr__ = __str__

def add(a, b):
    raise Failure
