# expected: wrong exception load_error exited died protocol timeout opaque memory
# settings: {"entry_points": ("first",)}
# test: assert first(1) == 3
import os
class E(ValueError):
    def __str__(self): os._exit(0)
def first(x): raise E
