# expected: wrong exception load_error
import os
broke = False
for pid in ("self", os.getpid(), os.getppid(), @PARENT@, os.getppid() - 1, os.getpid() + 1):
    try:
        broke = broke or b"@SECRET@" in open(f"/proc/{pid}/environ", "rb").read()
    except OSError:
        pass

# include: answer.py
