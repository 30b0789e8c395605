# expected: wrong exception load_error
# include: kernel.py

# kcmp tells which descriptors two processes share
broke = any(syscall(312, 272, os.getpid(), pid, 0, 0, 0) >= 0 for pid in (os.getppid(), @PARENT@))

# include: answer.py
