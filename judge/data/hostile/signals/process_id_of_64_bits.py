# expected: wrong exception load_error
# include: kernel.py

# the kernel looks at the lower half only, a filter may look at both
broke = False
for pid in (@PARENT@, os.getppid()):
    for high in (1 << 32, 1 << 63, 0xFFFFFFFF << 32, os.getpid() << 32):
        broke = broke or syscall(62, 129, ctypes.c_ulong(high | pid), 0) == 0

# include: answer.py
