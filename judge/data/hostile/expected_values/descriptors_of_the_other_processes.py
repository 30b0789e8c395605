# expected: wrong exception load_error
# include: kernel.py

# pidfd_open and pidfd_getfd: takes the verdict pipe, or the tests, out of the judge
broke = False
for pid in (os.getppid(), @PARENT@, *range(os.getpid() - 3, os.getpid() + 8)):
    if pid == os.getpid():
        continue
    handle = syscall(434, 434, pid, 0)
    for fd in range(16):
        broke = broke or handle >= 0 and syscall(438, 438, handle, fd, 0) >= 0

# include: answer.py
