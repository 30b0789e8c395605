# expected: wrong exception load_error
# include: kernel.py

class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]

# forked processes share their addresses: an object's address here is one there
buffer = ctypes.create_string_buffer(64)
here, there = Vector(ctypes.addressof(buffer), 64), Vector(id(None), 64)
broke = False
for pid in (os.getppid(), @PARENT@, *range(os.getpid() - 3, os.getpid() + 8)):
    if pid != os.getpid():
        broke = broke or syscall(310, 270, pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0) > 0

# include: answer.py
