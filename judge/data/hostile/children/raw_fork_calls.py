# expected: wrong exception load_error exited died
# include: kernel.py

# clone without CLONE_THREAD, clone3 and fork; a child leaves at once
broke = False
arguments = (ctypes.c_uint64 * 11)(0, 0, 0, 0, 17)
attempts = [(56, 220, 17, 0, 0, 0, 0), (56, 220, 17 | 1 << 40, 0, 0, 0, 0), (435, 435, arguments, 88)]
if not ON_ARM:
    attempts.append((57, 220))
for attempt in attempts:
    pid = syscall(*attempt)
    if pid == 0:
        os._exit(0)
    broke = broke or pid > 0

# include: answer.py
