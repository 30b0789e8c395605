# expected: wrong exception load_error
# include: kernel.py

# a second way to open, read and connect, which a filter of system calls does not see
broke = syscall(425, 425, 4, ctypes.create_string_buffer(256)) >= 0

# include: answer.py
