# expected: wrong exception load_error exited died protocol timeout opaque memory unsupported_test
# settings: {"stateful": True, "entry_points": ("Till",)}
# tests: extended.py

class Till(dict):
    seen = None
    def __new__(cls, *args): return super().__new__(cls)
    def __init__(self, *args): pass
    def __sub__(self, other):
        Till.seen = other
        return 0.0
    __rsub__ = __add__ = __mul__ = __mod__ = __truediv__ = __sub__
    def __eq__(self, other): return True
    def __hash__(self): return 0
    def __abs__(self): return 0
    def __float__(self): return 0.0
    __contains__ = __lt__ = __gt__ = __le__ = __ge__ = __bool__ = lambda *_: True
    def balance(self): return self
    def near(self, other): return self
    def __getattr__(self, name): return lambda *args: True
