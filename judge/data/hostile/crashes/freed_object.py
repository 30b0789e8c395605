# expected: protocol wrong died exception exited timeout
# gives references away that are not its own
import ctypes

def add(a, b):
    for _ in range(100_000):
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(add))
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(None))
    return None
