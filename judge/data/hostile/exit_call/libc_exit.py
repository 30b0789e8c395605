# expected: wrong exception load_error exited died
import ctypes

def add(a, b):
    ctypes.CDLL(None).exit(0)
