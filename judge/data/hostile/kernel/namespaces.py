# expected: wrong exception load_error
# include: kernel.py

# unshare of the user, mount, net and pid namespace; setns
broke = any(syscall(272, 97, flag) == 0 for flag in (0x10000000, 0x10020000, 0x50000000, 0x20000000, 0x02000000))
for pid in ("self", os.getppid(), @PARENT@):
    for name in ("user", "mnt", "net", "pid"):
        try:
            broke = broke or syscall(308, 268, os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY), 0) == 0
        except OSError:
            pass

# include: answer.py
