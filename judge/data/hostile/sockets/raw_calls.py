# expected: wrong exception load_error
# include: kernel.py

pair = (ctypes.c_int * 2)()
broke = syscall(41, 198, 2, 1, 0) >= 0 or syscall(41, 198, 1, 1, 0) >= 0 or syscall(53, 199, 1, 1, 0, pair) >= 0

# include: answer.py
