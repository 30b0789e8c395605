# expected: wrong exception load_error exited died protocol timeout opaque memory
# settings: {"entry_points": ("first",)}
# test: assert first(1) == 3
class E(ValueError):
    def __str__(self): return 'x' * 10**9
def first(x): raise E
