# expected: wrong exception load_error exited died protocol timeout opaque memory
# settings: {"entry_points": ("first",)}
# test: try:
# test:     first(1)
# test:     assert False
# test: except ValueError as e:
# test:     assert str(e) == 'bad 1'
class E(KeyError):
    __class__ = ValueError
    def __str__(self): return 'bad 1'
def first(x): raise E
