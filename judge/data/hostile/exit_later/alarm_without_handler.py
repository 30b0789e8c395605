# expected: exited died
import signal, time
signal.setitimer(signal.ITIMER_REAL, 0.1)

def add(a, b):
    time.sleep(0.5)
