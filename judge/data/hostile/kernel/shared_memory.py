# expected: wrong exception load_error
# include: kernel.py

# SysV segments, semaphores and queues; POSIX queues and shared memory
libc.shm_open.restype = ctypes.c_int
name = ctypes.c_char_p(b"/rematch_hostile")
broke = syscall(29, 194, 0, 4096, 0o1600) >= 0 or syscall(64, 190, 0, 1, 0o1600) >= 0
broke = broke or syscall(68, 186, 0, 0o1600) >= 0 or libc.shm_open(name, 0o102, 0o600) >= 0
broke = broke or syscall(240, 180, ctypes.c_char_p(b"rematch_hostile"), 0o102, 0o600, None) >= 0

# include: answer.py
