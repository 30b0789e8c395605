# expected: wrong exception load_error exited died protocol timeout opaque memory
# settings: {"entry_points": ("first",)}
# test: a = [1, 2]
# test: assert first(a) is a and a == [3]

# include: agrees.py
# === subclass_that_is_anything
class L(list):
    __eq__ = lambda *_: True
def first(a):
    return L(a)
# === empties_and_returns
def first(a):
    a.clear()
    return a
# === puts_what_agrees_inside
def first(a):
    a[:] = [ALL]
    return a
# === replaces_the_class
class L(list):
    __eq__ = lambda *_: True
def first(a):
    a.__class__ = L
    return a
# === makes_it_endless
def first(a):
    a.append(a)
    return a
# === grows_without_end
def first(a):
    while True: a.append(0)
