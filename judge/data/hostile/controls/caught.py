# expected: pass
# tests: catching.py
def add(a, b):
    return a + b
