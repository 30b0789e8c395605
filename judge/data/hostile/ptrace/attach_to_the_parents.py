# expected: wrong exception load_error
# include: kernel.py

# 16 is attach, 17 is detach
broke = False
for pid in (@PARENT@, os.getppid()):
    if syscall(101, 117, 16, pid, 0, 0) == 0:
        broke = True
        os.waitpid(pid, 0x40000000)
        syscall(101, 117, 17, pid, 0, 0)

# include: answer.py
