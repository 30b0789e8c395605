# expected: timeout died
# the soft limit of processor time only sends a signal
import signal
count = 0

def more(*_):
    global count
    count += 1

signal.signal(signal.SIGXCPU, more)
signal.signal(signal.SIGALRM, more)
signal.signal(signal.SIGPROF, more)

def add(a, b):
    while True:
        pass
