# expected: timeout died wrong
# the call returns, what it left behind keeps the interpreter busy
import sys, threading

class Endless:
    def __del__(self):
        while True:
            pass

def add(a, b):
    threading.Thread(target=sum, args=(range(10**14),)).start()
    Endless()
    return None
