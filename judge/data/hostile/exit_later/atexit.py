# expected: wrong
import atexit, os
atexit.register(os._exit, 0)

# include: none.py
