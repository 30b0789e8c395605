# expected: REFUSED ENDED
import ctypes

def add(a, b):
    ctypes.CDLL(None).exit(0)
