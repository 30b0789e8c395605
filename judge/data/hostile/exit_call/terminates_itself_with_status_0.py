# expected: exception
import os, signal
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))

def add(a, b):
    os.kill(os.getpid(), signal.SIGTERM)
