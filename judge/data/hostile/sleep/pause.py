# expected: timeout died
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))

def add(a, b):
    signal.pause()
