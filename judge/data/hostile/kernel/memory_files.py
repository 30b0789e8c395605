# expected: wrong exception load_error
# include: kernel.py

# memfd_create, memfd_secret, userfaultfd: memory that no limit counts, code that no path names
name = ctypes.c_char_p(b"rematch_hostile")
broke = syscall(319, 279, name, 0) >= 0 or syscall(447, 447, 0) >= 0
broke = broke or syscall(323, 282, 0) >= 0 or syscall(323, 282, 1) >= 0

# include: answer.py
