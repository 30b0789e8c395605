# expected: exited died
import os, threading, time

def leave():
    time.sleep(0.1)
    os._exit(0)

threading.Thread(target=leave).start()

def add(a, b):
    time.sleep(0.5)
