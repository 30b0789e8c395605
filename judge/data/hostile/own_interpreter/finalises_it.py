# expected: wrong exception load_error exited died protocol timeout
import ctypes

def add(a, b):
    ctypes.pythonapi.Py_FinalizeEx()
    return None
