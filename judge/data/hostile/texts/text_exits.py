# expected: ANYTHING
# settings: {"entry_points": ("first",)}
# test: assert first(1) == 3
# source: without the last line end
import os
class E(ValueError):
    def __str__(self): os._exit(0)
def first(x): raise E
