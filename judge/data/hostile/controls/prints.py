# expected: pass pass pass
import sys
print("loading")

def add(a, b):
    print(a, b, "x" * 10_000)
    print("adding", file=sys.stderr, flush=True)
    return a + b
