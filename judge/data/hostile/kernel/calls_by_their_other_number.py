# expected: wrong exception load_error exited died
# include: kernel.py

# the x32 numbers: the same calls for a filter that compares numbers only. A child leaves at once
broke = False
if not ON_ARM:
    pid = syscall(0x40000000 | 57, 0)
    if pid == 0:
        os._exit(0)
    broke = pid > 0 or syscall(0x40000000 | 41, 0, 1, 1, 0) >= 0
    broke = broke or syscall(0x40000000 | 2, 0, ctypes.c_char_p(b"@CANARY@"), 0, 0) >= 0

# include: answer.py
