# expected: wrong exception load_error
# include: kernel.py

# a further filter, or one with a listener that answers for the kernel; here only asked about
action = ctypes.c_uint32(0x7FFF0000)
broke = syscall(317, 277, 2, 0, ctypes.byref(action)) >= 0 or syscall(317, 277, 3, 0, ctypes.byref(action)) >= 0

# include: answer.py
