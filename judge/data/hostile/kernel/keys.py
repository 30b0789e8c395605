# expected: wrong exception load_error
# include: kernel.py

# the session keyring outlives the process
kind, name, data = ctypes.c_char_p(b"user"), ctypes.c_char_p(b"rematch_hostile"), ctypes.c_char_p(b"x")
broke = syscall(248, 217, kind, name, data, 1, -1) >= 0 or syscall(250, 219, 0, -3, 0) >= 0
broke = broke or syscall(250, 219, 1, 0) >= 0 or syscall(249, 218, kind, name, None, -1) >= 0

# include: answer.py
