# expected: timeout died wrong exception
# a storm of signals at this process
import os, signal
signal.signal(signal.SIGALRM, lambda *_: None)
signal.signal(signal.SIGVTALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 1e-6, 1e-6)
signal.setitimer(signal.ITIMER_VIRTUAL, 1e-6, 1e-6)

def add(a, b):
    while True:
        os.kill(os.getpid(), signal.SIGALRM)
