# expected: ANYTHING
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
