# expected: timeout died
import collections, itertools

def add(a, b):
    collections.deque(itertools.repeat(None), maxlen=0)
