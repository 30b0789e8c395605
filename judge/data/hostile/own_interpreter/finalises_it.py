# expected: OWN_GOAL
import ctypes

def add(a, b):
    ctypes.pythonapi.Py_FinalizeEx()
    return None
