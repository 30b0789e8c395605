# expected: pass pass pass
import functools
calls = []

@functools.lru_cache(maxsize=None)
def add(a, b):
    calls.append((a, b))
    return calls[-1][0] + calls[-1][1]
