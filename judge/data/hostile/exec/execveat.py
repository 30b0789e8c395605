# expected: wrong exception load_error
# include: kernel.py

# runs an opened file instead of a path
fd = os.open("/bin/true", os.O_PATH)
broke = syscall(322, 281, fd, ctypes.c_char_p(b""), (ctypes.c_char_p * 1)(None), None, 0x1000) == 0

# include: answer.py
