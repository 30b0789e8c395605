# expected: wrong exception load_error exited died protocol timeout
# writes into the local variables of running functions
import ctypes, sys

def add(a, b):
    frame = sys._getframe(1)
    while frame:
        for name in ("ok", "passed", "verdict", "status", "result", "results", "score", "outcome", "value"):
            if name in frame.f_locals:
                frame.f_locals[name] = "pass"
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
        frame = frame.f_back
    return None
