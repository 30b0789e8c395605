# expected: wrong exception load_error exited
# tests: expecting_errors.py

def add(a, b):
# === ValueError
    raise ValueError("refused")
# === AssertionError
    raise AssertionError("refused")
# === StopIteration
    raise StopIteration("refused")
# === SystemExit
    raise SystemExit("refused")
