# expected: wrong exception
# tests: catching.py
def add(a, b):
# === ValueError
    raise ValueError('no')
# === KeyError
    raise KeyError('no')
# === AssertionError
    raise AssertionError('no')
# === NotImplementedError
    raise NotImplementedError('no')
# === StopIteration
    raise StopIteration('no')
