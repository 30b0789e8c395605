# expected: wrong exception load_error exited died protocol timeout opaque memory
# settings: {"entry_points": ("first",)}
# test: try:
# test:     first(1)
# test:     assert False
# test: except KeyError as e:
# test:     assert str(e)
class E(ValueError):
    def __str__(self):
        while True: pass
def first(x): raise E
