# expected: wrong exception load_error exited died protocol timeout
import gc, locale, random, sys
gc.disable()
gc.freeze()
random.seed(0)
sys.setrecursionlimit(50)
sys.path[:] = []
try:
    locale.setlocale(locale.LC_ALL, "tr_TR.UTF-8")
except locale.Error:
    pass

# include: none.py
