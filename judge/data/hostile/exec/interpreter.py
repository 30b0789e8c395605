# expected: wrong exception load_error
import os, sys
broke = False
try:
    os.execv(os.path.realpath(sys.executable), [sys.executable, "-c", "pass"])
except (OSError, TypeError, ValueError):
    pass

# include: answer.py
