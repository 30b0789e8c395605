# expected: wrong exception load_error
# include: kernel.py

class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]

# the basic size of int, written over itself in the other process
here = there = Vector(id(int) + 32, 8)
broke = False
for pid in (os.getppid(), *range(os.getpid() - 3, os.getpid() + 8)):
    if pid != os.getpid():
        broke = broke or syscall(311, 271, pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0) > 0

# include: answer.py
