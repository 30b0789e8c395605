# expected: exited died
import ctypes

def add(a, b):
    ctypes.string_at(0)
