# expected: ENDED
import ctypes

def add(a, b):
    ctypes.string_at(0)
