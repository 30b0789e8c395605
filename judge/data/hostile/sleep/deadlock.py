# expected: timeout died
import threading
lock = threading.Lock()
lock.acquire()

def add(a, b):
    lock.acquire()
