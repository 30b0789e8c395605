# expected: opaque wrong exception
# settings: {"stateful": True, "entry_points": ("Account", "f", "pair")}
# tests: expecting_values.py
class Any:
    def __init__(self, *args): pass
    def __getattr__(self, name): return ANY
    def __call__(self, *args, **named): return True
    def __len__(self): return 0
    def __iter__(self): return iter(())
    def __getitem__(self, key): return ANY
    def __sub__(self, other): return NEUTRAL
    def __neg__(self): return NEUTRAL
    def __abs__(self): return 0
    def __float__(self): return 0.0
    __add__ = __radd__ = __rsub__ = __mul__ = __rmul__ = __mod__ = __xor__ = __floordiv__ = __truediv__ = __sub__
    __and__ = __or__ = __pow__ = __sub__
    __int__ = __index__ = __round__ = __abs__
    __bool__ = __contains__ = __enter__ = __exit__ = startswith = endswith = __call__
    isdigit = issubset = issuperset = is_integer = __call__

ANY = Any()
# === 0
NEUTRAL = 0

# include: account.py
# === 1
NEUTRAL = 1

# include: account.py
# === ANY
NEUTRAL = ANY

# include: account.py
