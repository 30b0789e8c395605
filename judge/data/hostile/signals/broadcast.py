# expected: wrong exception load_error
import os
try:
    os.kill(-1, 0)
    broke = True
except OSError:
    broke = False

# include: answer.py
