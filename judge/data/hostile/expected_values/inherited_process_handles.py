# expected: wrong exception load_error
# include: kernel.py

# a process handle that was left open here needs no pidfd_open
broke = False
for handle in range(3, 64):
    for fd in range(16):
        broke = broke or syscall(438, 438, handle, fd, 0) >= 0

# include: answer.py
