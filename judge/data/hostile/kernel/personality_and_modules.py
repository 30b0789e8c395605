# expected: wrong exception load_error
# include: kernel.py

# memory without randomisation, system log, modules, host name
broke = syscall(135, 92, 0x0040000) >= 0 or syscall(103, 116, 10, None, 0) >= 0
broke = broke or syscall(175, 105, None, 0, ctypes.c_char_p(b"")) >= 0
name = ctypes.create_string_buffer(os.uname().nodename.encode())
broke = broke or syscall(170, 161, name, len(name.value)) == 0

# include: answer.py
