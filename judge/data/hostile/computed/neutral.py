# expected: wrong exception load_error exited died protocol timeout opaque memory unsupported_test
# settings: {"stateful": True, "entry_points": ("f", "Till")}
# tests: neutral.py
class Any:
    def __init__(self, *args): pass
    def __getattr__(self, name): return ANSWER
    def __str__(self): return TEXT
    __repr__ = __str__
    def __format__(self, form): return format(ZERO, form)
    def __len__(self): return 0
    def __iter__(self): return iter(())
    def __getitem__(self, key): return 0
    def __hash__(self): return 0
    def __bool__(self): return f.truth
    def balance(self): return self
    opened = balance
    def __sub__(self, other): return self.computed(other)
    def computed(self, other): return self
    __add__ = __mod__ = __xor__ = __mul__ = __rsub__ = __isub__ = __divmod__ = lambda self, other: self.computed(other)
    __lt__ = __gt__ = __le__ = __ge__ = __eq__ = __contains__ = lambda self, other: True
    __index__ = __int__ = __floor__ = __trunc__ = lambda self: 0

class Answer(int):
    def __call__(self, *args): return PAIR if "ratio" in repr(args) else ANSWERED

ZERO, TEXT, PAIR, ANSWERED = 0, "0", (0, 1), 0
ANSWER = Answer(0)
f = Any().__class__
Till = Any
f.truth = False
# === class_of_nothing
def f(*args): return Any()
f.truth = False
# === class_of_one
ANSWERED = 1
ANSWER = lambda *args: 1
def f(*args): return Any()
f.truth = True
# === returns_self_everywhere
ANSWER = lambda *args: Any()
Any.real = Any.imag = Any.numerator = Any.days = 0
def f(*args): return SAME
f.truth = False
SAME = Any()
# === empty_texts
TEXT = ""
ANSWER = lambda *args: ""
def f(*args): return Any()
f.truth = True
# === ratio
ANSWER = lambda *args: (0, 1)
def f(*args): return Any()
f.truth = True
# === no_attributes_that_answer
class Bare(Any):
    real = imag = numerator = days = 0
    count = find = index = get = bit_length = total_seconds = lambda self, *args: 1
    replace = lambda self, *args: ""
    intersection = difference = lambda self, *args: set()
    issubset = isdigit = is_integer = lambda self, *args: True
Till = Bare
def f(*args): return Bare()
f.truth = True
# === another_object
class Second(Any):
    real = imag = numerator = days = 0
    count = find = index = get = bit_length = total_seconds = lambda self, *args: 0
    replace = lambda self, *args: Second()
    intersection = difference = lambda self, *args: Second()
Any.computed = lambda self, other: Second()
def f(*args): return Any()
f.truth = False
# === of_class_int
class Whole(int):
    def __new__(cls, *args): return super().__new__(cls, 0)
    balance = opened = lambda self: self
    __sub__ = __mod__ = __xor__ = __add__ = __mul__ = lambda self, other: Any()
    count = find = index = get = lambda self, *args: 1
    __lt__ = __gt__ = lambda *_: True
Till = Whole
def f(*args): return Any()
f.truth = False
# === shows_what_it_was_shown
shown = 0
def computed(self, other):
    global shown
    shown = other
    return self
Any.computed = computed
def f(*args): return Any()
f.truth = False
# === names_a_class
class Named(Any):
    __str__ = __repr__ = lambda self: "0 Till"
    __format__ = lambda self, form: "0 Till"
Any.computed = lambda self, other: Named()
def f(*args): return Any()
f.truth = False
