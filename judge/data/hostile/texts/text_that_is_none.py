# expected: wrong exception load_error exited died protocol timeout opaque memory
# settings: {"entry_points": ("first",)}
# test: try:
# test:     first(1)
# test:     assert False
# test: except ValueError as e:
# test:     assert str(e) == 'bad 1'
class E(ValueError):
    def __str__(self): return None
def first(x): raise E
