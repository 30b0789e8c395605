# expected: memory timeout died exception wrong load_error exited
import functools
chain = None
for _ in range(300_000):
    chain = functools.partial(print, chain)

def add(a, b):
    global chain
    chain = None
    return None
