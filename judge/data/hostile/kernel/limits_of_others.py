# expected: wrong exception load_error
# include: kernel.py

# prlimit64 and setrlimit, on the parents and with an id whose upper half is set
limit, infinite = (ctypes.c_uint64 * 2)(), (ctypes.c_uint64 * 2)(2**64 - 1, 2**64 - 1)
broke = any(syscall(302, 261, pid, 7, None, limit) == 0 for pid in (@PARENT@, os.getppid(), os.getpid() + 1))
broke = broke or syscall(302, 261, 0, 9, infinite, None) == 0 or syscall(302, 261, 1 << 32, 9, infinite, None) == 0
broke = broke or syscall(160, 164, 9, infinite) == 0

# include: answer.py
