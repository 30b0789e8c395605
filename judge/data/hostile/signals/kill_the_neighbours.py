# expected: wrong exception load_error
# the judge's other half was forked right after this process; number 0, for it may be somebody else
import os
broke = False
for pid in range(os.getpid() + 1, os.getpid() + 4):
    try:
        os.kill(pid, 0)
        broke = True
    except OSError:
        pass

# include: answer.py
