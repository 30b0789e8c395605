# expected: exited died wrong
# the first answer is given, the process is gone before the second question
import os, threading

def add(a, b):
    threading.Timer(0.01, os._exit, (0,)).start()
    return None
