# expected: SLOW
import itertools
x = -1 in itertools.count()

# include: none.py
