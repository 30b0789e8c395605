# expected: exited died
import ctypes

def add(a, b):
    ctypes.pythonapi.Py_FatalError(b"pass")
