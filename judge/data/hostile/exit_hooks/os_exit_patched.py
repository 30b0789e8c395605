# expected: exception
import os, sys
real = os._exit
os._exit = lambda status: real(0)
os.abort = lambda: real(0)
sys.exit = real

def add(a, b):
    raise SystemError("failed")
