# expected: wrong exception load_error
# include: kernel.py

path = ctypes.c_char_p(b"/bin/true")
empty = (ctypes.c_char_p * 1)(None)
broke = syscall(59, 221, path, empty, empty) == 0

# include: answer.py
