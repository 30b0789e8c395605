# expected: memory timeout died exception wrong load_error
# every level uses the stack of C
import sys
sys.setrecursionlimit(10**9)

class Deep:
    def __repr__(self):
        return repr(self)
    def __getattr__(self, name):
        return getattr(self, name + "x")
    def __eq__(self, other):
        return other == self

def add(a, b):
    return repr(Deep())
