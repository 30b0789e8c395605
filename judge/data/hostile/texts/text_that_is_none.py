# expected: ANYTHING
# settings: {"entry_points": ("first",)}
# test: try:
# test:     first(1)
# test:     assert False
# test: except ValueError as e:
# test:     assert str(e) == 'bad 1'
class E(ValueError):
    def __str__(self): return None
def first(x): raise E
