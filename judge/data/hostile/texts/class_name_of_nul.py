# expected: wrong exception load_error exited died protocol timeout opaque memory
# settings: {"entry_points": ("first",)}
# test: assert first(1) == 3
E = type('a b', (ValueError,), {'__str__': lambda s: 'x'})
E.__name__ = 'É' * 300
def first(x): raise E
