# expected: wrong exception load_error
# writes through the protection of pages
broke = False
try:
    open("/proc/self/mem", "r+b", 0)
    broke = True
except OSError:
    pass

# include: answer.py
