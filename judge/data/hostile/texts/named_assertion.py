# expected: wrong exception load_error exited died protocol timeout opaque memory
# settings: {"entry_points": ("first",)}
# test: try:
# test:     assert first(1) == 3
# test: except Exception:
# test:     pass
class AssertionError(Exception):
    pass
def first(x): raise AssertionError('passed')
