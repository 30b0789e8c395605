# expected: wrong exception load_error
# include: kernel.py

# open, openat, openat2, creat and a handle of the file system
path = ctypes.c_char_p(b"@CANARY@")
how = (ctypes.c_uint64 * 3)(0, 0, 0)
handle, mount = ctypes.create_string_buffer(136), ctypes.c_int()
ctypes.memmove(handle, (128).to_bytes(4, "little"), 4)
attempts = [syscall(257, 56, -100, path, 0, 0), syscall(437, 437, -100, path, how, 24)]
if not ON_ARM:
    attempts.append(syscall(2, 56, path, 0, 0))
syscall(303, 264, -100, path, handle, ctypes.byref(mount), 0)
for fd in range(3, 16):
    attempts.append(syscall(304, 265, fd, handle, 0))
broke = max(attempts) >= 0

# include: answer.py
