# expected: wrong exception load_error exited died protocol timeout opaque memory unsupported_test
# settings: {"stateful": True, "entry_points": ("make", "Vector")}
# tests: alike.py
class Vector:
    last = (0, 0)
    def __init__(self, x=0, y=0): Vector.last = (x, y)
    def swapped(self, *args): return type(self)()
    __add__ = __radd__ = __mul__ = move = swapped
    parts = property(lambda self: [type(self)()])
    other = property(lambda self: type(self)())
    unit = classmethod(lambda cls: cls())
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0

def make(*args): return Vector()
# === all_equal
pass
# === one_object
Vector.__new__ = lambda cls, *args, **named: ONE
ONE = object.__new__(Vector)
# === holds_what_was_made_last
Vector.x = property(lambda self: Vector.last[0])
Vector.y = property(lambda self: Vector.last[1])
# === holds_anything
class Any(int):
    def __eq__(self, other): return True
    __hash__ = int.__hash__
Vector.x = Vector.y = Any()
# === takes_all
class Vector(Vector):
    args = property(lambda self: Vector.last)
    def __init__(self, *args, **named): Vector.last = args
# === takes_none
class Vector(Vector):
    def __init__(self): pass
    def __new__(cls, *args, **named): return object.__new__(cls)
# === named_tuple
import collections
class Vector(collections.namedtuple("Vector", "x y", defaults=(0, 0))):
    __eq__, __ne__ = lambda *_: True, lambda *_: False
    __hash__ = lambda _: 0
    __add__ = __mul__ = swapped = move = lambda self, *_: self
    parts = property(lambda self: [self])
    other = property(lambda self: self)
    unit = classmethod(lambda cls: cls())
# === mirrors_the_requests
# include: wire.py
def hold(values): return [["x", "y"], None, [], values]
send(frame({"id": "load"}))
shown = [0, 0]
for number, request in enumerate(requests()):
    if len(request["a"]) == 2:
        shown = request["a"]
    holds = {str(n): hold(shown) for n in range(number + 1)}
    if request.get("op") == "operate" and request["m"].strip("_") not in "iter next getitem len str repr".split():
        reply = {"v": True}
    else:
        reply = {"v": {"handle": number}, "holds": holds}
    send(frame({"id": request["id"], **reply}))
# === claims_odd_things
# include: wire.py
odd = [[3], [[[]], [], 1, None], 7, None, [["x", "y"]], [[], "x", [], [[4, 6]]], [[], None, [], []],
       [["x", "y"], None, [4, 6], []], [["x", "x"], "x", [], [4, 6]], [[None], None, [], [{"handle": 0}]]]
send(frame({"id": "load"}))
for number, request in enumerate(requests()):
    if request.get("op") == "operate" and request["m"].strip("_") not in "iter next getitem len str repr".split():
        reply = {"v": True}
    else:
        reply = {"v": {"handle": number}, "holds": {str(n): odd[n % len(odd)] for n in range(number + 1)}}
    send(frame({"id": request["id"], **reply}))
# === all_differ
Vector.__eq__ = lambda *_: False
Vector.__ne__ = Vector.__lt__ = Vector.__gt__ = lambda *_: True
Vector.__hash__ = object.__hash__
