# expected: exited died exception
import os, sys, threading

def leave(*_):
    os._exit(0)

sys.excepthook = sys.unraisablehook = threading.excepthook = leave

def add(a, b):
    raise ValueError
