# expected: exception
import os, signal

def add(a, b):
    os.kill(os.getpid(), signal.SIGKILL)
