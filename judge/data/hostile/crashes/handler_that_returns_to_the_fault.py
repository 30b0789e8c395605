# expected: exited died timeout
import ctypes, signal
for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT):
    signal.signal(number, lambda *_: None)

def add(a, b):
    ctypes.string_at(0)
