# expected: timeout died
# no thread of this process can do anything meanwhile
import ctypes

def add(a, b):
    ctypes.PyDLL(None).sleep(1000)
