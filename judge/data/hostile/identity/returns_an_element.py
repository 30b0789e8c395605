# expected: wrong exception load_error exited died protocol timeout opaque memory
# settings: {"entry_points": ("first",)}
# test: assert first([[1], [2]]) == [3]

# include: agrees.py
def first(a): return a[0]
