# expected: timeout died
import itertools
x = -1 in itertools.count()

# include: none.py
