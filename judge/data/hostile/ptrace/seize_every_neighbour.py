# expected: wrong exception load_error
# include: kernel.py

# 0x4206 attaches without stopping: the judge's other half is a near neighbour
broke = False
for pid in range(max(1, os.getpid() - 4), os.getpid() + 8):
    broke = broke or pid != os.getpid() and syscall(101, 117, 0x4206, pid, 0, 0) == 0

# include: answer.py
