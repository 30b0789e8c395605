# expected: ANYTHING
# settings: {"entry_points": ("first",)}
# test: try:
# test:     assert first(1) == 3
# test: except Exception:
# test:     pass
class AssertionError(Exception):
    pass
def first(x): raise AssertionError('passed')
