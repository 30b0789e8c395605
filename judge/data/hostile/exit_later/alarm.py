# expected: exited died
import os, signal, time
signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
signal.setitimer(signal.ITIMER_REAL, 0.1)

def add(a, b):
    time.sleep(0.5)
