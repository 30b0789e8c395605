# expected: wrong exception load_error exited died protocol timeout opaque memory
# settings: {"entry_points": ("add", "total")}
# tests: iterated.py

# include: agrees.py
# === yields_what_agrees
def add(a, b):
    while True: yield ALL
total = add
# === class_that_agrees
class add(Agrees):
    def __init__(self, *_): pass
    def __iter__(self): return self
    def __next__(self): return ALL
def total(x): return ALL
# === never_yields
def add(a, b):
    while True: pass
    yield 3
def total(x): return x
# === yields_in_silence
import time
def add(a, b):
    time.sleep(60)
    yield 3
total = list
# === raises_stop_by_hand
def add(a, b):
    raise StopIteration
    yield
def total(x): raise StopIteration
# === next_raises_stop_async
class It:
    def __next__(self): raise StopAsyncIteration
def add(a, b): return It()
def total(x): raise StopAsyncIteration
# === next_exits
import sys
class It:
    def __next__(self): sys.exit(0)
def add(a, b): return It()
def total(x): sys.exit(0)
# === next_kills
import os
class It:
    def __next__(self): os._exit(0)
def add(a, b): return It()
def total(x): os._exit(0)
# === iterates_itself
def add(a, b):
    def g():
        yield g()
    return g()
def total(x): return x
# === yields_endless_iterators
import itertools
def add(a, b):
    while True: yield itertools.count()
def total(x): return x
# === peeks_at_its_caller
import sys
def add(a, b):
    frame = sys._getframe()
    while frame:
        for value in list(frame.f_locals.values()):
            if value == [3, 5, 8] or value == 11:
                yield from value
        frame = frame.f_back
def total(x): return next(x, None)
# === collects_garbage_for_answers
import gc
def add(a, b):
    for o in gc.get_objects():
        if type(o) is list and o[:1] == [3]: yield from o
def total(x): return sum(len(str(i)) for i in x)
# === patched_islice
import itertools
itertools.islice = lambda *_: [ALL] * 3
def add(a, b):
    yield None
def total(x): return None
# === agrees_when_sent
def add(a, b):
    while True: (yield ALL)
def total(x): return x
# === gigantic_items
def add(a, b):
    while True: yield 'x' * 3_000_000
def total(x): return list(x)
# === deep_items
def add(a, b):
    x = []
    while True:
        x = [x]
        yield x
def total(x): return list(x)
