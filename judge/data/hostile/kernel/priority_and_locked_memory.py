# expected: wrong exception load_error
# include: kernel.py

# nice, scheduler, affinity, locked memory
parameter, mask = ctypes.c_int(0), (ctypes.c_ulong * 16)(*[0xFFFFFFFFFFFFFFFF] * 16)
broke = syscall(141, 140, 0, 0, -20) == 0 or syscall(141, 140, 0, os.getppid(), 19) == 0
broke = broke or any(syscall(144, 119, 0, kind, ctypes.byref(ctypes.c_int(n))) == 0 for kind, n in ((1, 1), (3, 0)))
broke = broke or syscall(151, 230, 3) == 0 or syscall(251, 30, 1, 0, 0) == 0
broke = broke or syscall(203, 122, os.getppid(), 128, mask) == 0
try:
    os.nice(-20)
    broke = True
except OSError:
    pass

# include: answer.py
