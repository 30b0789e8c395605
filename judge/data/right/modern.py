# === async_fetch
# settings: {"entry_points": ("fetch", "gather_all")}
import asyncio
async def fetch(n):
    await asyncio.sleep(0.001)
    return n * 2
async def gather_all(items):
    return await asyncio.gather(*(fetch(i) for i in items))
# --- test
import asyncio
assert asyncio.run(fetch(3)) == 6
# --- test
import asyncio
assert asyncio.run(gather_all([1, 2, 3])) == [2, 4, 6]
# --- test
import asyncio
async def main():
    a, b = await asyncio.gather(fetch(1), fetch(2))
    return a + b + await fetch(3)
assert asyncio.run(main()) == 12
# === async_errors
# settings: {"entry_points": ("retry", "flaky")}
import asyncio
_calls = {}
async def flaky(name, fails):
    _calls[name] = _calls.get(name, 0) + 1
    if _calls[name] <= fails:
        raise ConnectionError(f"attempt {_calls[name]}")
    return _calls[name]
async def retry(name, fails, attempts):
    for attempt in range(attempts):
        try:
            return await flaky(name, fails)
        except ConnectionError:
            if attempt == attempts - 1:
                raise
            await asyncio.sleep(0)
# --- test
import asyncio
assert asyncio.run(retry("a", 2, 5)) == 3
try:
    asyncio.run(retry("b", 9, 2))
    assert False
except ConnectionError as e:
    assert str(e) == "attempt 2"
# --- test
import asyncio
async def main():
    return await asyncio.gather(flaky("c", 1), flaky("d", 0), return_exceptions=True)
first, second = asyncio.run(main())
assert isinstance(first, ConnectionError) and second == 1
# === async_queue_class
# settings: {"stateful": True}
import asyncio
class Pipeline:
    def __init__(self):
        self.done = []
    async def work(self, queue):
        while True:
            item = await queue.get()
            if item is None:
                return
            self.done.append(item * item)
    async def run(self, items, workers=2):
        queue = asyncio.Queue()
        tasks = [asyncio.create_task(self.work(queue)) for _ in range(workers)]
        for item in items:
            await queue.put(item)
        for _ in tasks:
            await queue.put(None)
        await asyncio.gather(*tasks)
        return sorted(self.done)
# --- test
import asyncio
p = Pipeline()
assert asyncio.run(p.run([3, 1, 2])) == [1, 4, 9]
assert sorted(p.done) == [1, 4, 9]
# === async_context_and_iteration
# settings: {"stateful": True}
class Connection:
    def __init__(self):
        self.open = False
    async def __aenter__(self):
        self.open = True
        return self
    async def __aexit__(self, *_):
        self.open = False
    async def rows(self, n):
        for i in range(n):
            yield i * 10
# --- test
import asyncio
async def main():
    c = Connection()
    async with c as inner:
        assert inner.open
        got = [row async for row in inner.rows(3)]
    assert not c.open
    return got
assert asyncio.run(main()) == [0, 10, 20]
# === generator_pipeline
def numbers(n):
    for i in range(n):
        yield i
def evens(items):
    for i in items:
        if i % 2 == 0:
            yield i
def squared(items):
    return (i * i for i in items)
# --- test
assert list(squared(evens(numbers(6)))) == [0, 4, 16]
assert sum(evens([1, 2, 4])) == 6
g = numbers(2)
assert next(g) == 0 and next(g) == 1
try:
    next(g)
    assert False
except StopIteration:
    pass
# === generator_chunks
def chunks(items, n):
    if n <= 0:
        raise ValueError("n must be positive")
    for i in range(0, len(items), n):
        yield items[i:i + n]
# --- test
assert list(chunks([1, 2, 3, 4, 5], 2)) == [[1, 2], [3, 4], [5]]
assert list(chunks("abcd", 3)) == ["abc", "d"]
assert list(chunks([], 3)) == []
try:
    list(chunks([1], 0))
    assert False
except ValueError:
    pass
# === running_average_generator
def averager():
    total, count, average = 0, 0, None
    while True:
        value = yield average
        total += value
        count += 1
        average = total / count
# --- test
a = averager()
assert next(a) is None
assert a.send(10) == 10
assert a.send(20) == 15
# === counter_closure
# settings: {"stateful": True, "entry_points": ("make_counter",)}
def make_counter(start=0):
    count = start
    def step(by=1):
        nonlocal count
        count += by
        return count
    return step
# --- test
c = make_counter()
assert c() == 1 and c() == 2 and c(10) == 12
d = make_counter(5)
assert d() == 6 and c() == 13
# === compose_functions
# expected: unsupported_test
def compose(*functions):
    def composed(x):
        for function in reversed(functions):
            x = function(x)
        return x
    return composed
# --- test
assert compose(lambda x: x + 1, lambda x: x * 2)(5) == 11
# === memoized_attributes
# settings: {"entry_points": ("fib",)}
from functools import lru_cache
@lru_cache(maxsize=None)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
# --- test
fib.cache_clear()
assert fib(30) == 832040
assert fib.cache_info()[0] > 0
# === function_attributes
# settings: {"entry_points": ("tracked",)}
def tracked(x):
    tracked.calls += 1
    return x + tracked.calls
tracked.calls = 0
# --- test
assert tracked(1) == 2
assert tracked(1) == 3
assert tracked.calls == 2
# === constants_of_a_module_class
# settings: {"stateful": True}
class Physics:
    C = 299_792_458
    G = 6.674e-11
    PLANETS = ("mercury", "venus", "earth")
    @staticmethod
    def energy(mass):
        return mass * Physics.C ** 2
# --- test
assert Physics.C == 299792458
assert Physics.energy(2) == 2 * Physics.C ** 2
assert "earth" in Physics.PLANETS and len(Physics.PLANETS) == 3
assert abs(Physics.G - 6.674e-11) < 1e-15
# === named_tuple_records
# settings: {"entry_points": ("parse", "oldest")}
from collections import namedtuple
Row = namedtuple("Row", "name age")
def parse(text):
    return [Row(name, int(age)) for name, age in (line.split(",") for line in text.splitlines())]
def oldest(text):
    return max(parse(text), key=lambda row: row.age).name
# --- test
rows = parse("ann,3\nbob,5")
assert rows == [("ann", 3), ("bob", 5)]
assert rows[0][0] == "ann" and oldest("ann,3\nbob,5") == "bob"
# === typed_dict_and_defaults
from collections import defaultdict
def group(words):
    out = defaultdict(list)
    for word in words:
        out[len(word)].append(word)
    return out
# --- test
g = group(["a", "bb", "cc", "d"])
assert g == {1: ["a", "d"], 2: ["bb", "cc"]}
assert sorted(g) == [1, 2] and g[2] == ["bb", "cc"]
# === decorator_class_methods
# settings: {"stateful": True}
import functools
def logged(method):
    @functools.wraps(method)
    def wrapper(self, *args):
        self.log.append((method.__name__, args))
        return method(self, *args)
    return wrapper
class Calculator:
    def __init__(self):
        self.log = []
    @logged
    def add(self, a, b):
        return a + b
    @logged
    def sub(self, a, b):
        return a - b
# --- test
c = Calculator()
assert c.add(1, 2) == 3 and c.sub(5, 3) == 2
assert c.log == [("add", (1, 2)), ("sub", (5, 3))]
# === unittest_case
# settings: {"stateful": True}
class Calculator:
    def add(self, a, b): return a + b
    def divide(self, a, b):
        if b == 0:
            raise ValueError("Cannot divide by zero")
        return a / b
# --- setup
import unittest
# --- test
class TestCalculator(unittest.TestCase):
    def setUp(self):
        self.calc = Calculator()
    def test_add(self):
        self.assertEqual(self.calc.add(2, 3), 5)
    def test_divide(self):
        with self.assertRaises(ValueError):
            self.calc.divide(1, 0)
        self.assertAlmostEqual(self.calc.divide(1, 3), 0.3333, places=3)
result = unittest.TestResult()
unittest.defaultTestLoader.loadTestsFromTestCase(TestCalculator).run(result)
assert result.wasSuccessful() and result.testsRun == 2
# === assert_raises_own_error
# settings: {"stateful": True}
class StackUnderflow(Exception):
    pass
class Stack:
    def __init__(self): self.items = []
    def pop(self):
        if not self.items:
            raise StackUnderflow("empty")
        return self.items.pop()
# --- test
import unittest
case = unittest.TestCase()
with case.assertRaises(StackUnderflow) as caught:
    Stack().pop()
assert str(caught.exception) == "empty"
case.assertRaises(StackUnderflow, Stack().pop)
# === nested_class
# settings: {"stateful": True}
class Outer:
    class Inner:
        def __init__(self, v): self.v = v
        def doubled(self): return self.v * 2
    def make(self, v): return Outer.Inner(v)
# --- test
assert Outer.Inner(4).doubled() == 8
assert Outer().make(5).v == 5
assert isinstance(Outer().make(1).doubled(), int)
# === slots
# settings: {"stateful": True}
class Slim:
    __slots__ = ("a", "b")
    def __init__(self, a, b): self.a, self.b = a, b
# --- test
s = Slim(1, 2)
s.a = 10
assert (s.a, s.b) == (10, 2)
try:
    s.c = 3
    assert False
except AttributeError:
    pass
assert not hasattr(s, "c") and hasattr(s, "a")
# === metaclass_registry
# settings: {"stateful": True, "entry_points": ("Base", "A", "B")}
class Meta(type):
    registry = []
    def __new__(mcs, name, bases, space):
        cls = super().__new__(mcs, name, bases, space)
        if bases:
            mcs.registry.append(name)
        return cls
class Base(metaclass=Meta):
    pass
class A(Base):
    pass
class B(Base):
    pass
# --- test
assert Base.registry == ["A", "B"]
assert issubclass(A, Base) and isinstance(B(), Base)
# === comparison_by_key
# settings: {"stateful": True, "entry_points": ("Person", "by_age")}
from dataclasses import dataclass
@dataclass
class Person:
    name: str
    age: int
def by_age(people):
    return sorted(people, key=lambda p: p.age)
# --- test
people = [Person("a", 30), Person("b", 20)]
assert [p.name for p in by_age(people)] == ["b", "a"]
assert by_age(people)[0] is people[1]
assert sorted(people, key=lambda p: p.name)[0].age == 30
assert max(people, key=lambda p: p.age).name == "a"
# === deep_copy_method
# settings: {"stateful": True}
import copy
class Board:
    def __init__(self, n):
        self.cells = [[0] * n for _ in range(n)]
    def clone(self):
        return copy.deepcopy(self)
    def set(self, i, j, v):
        self.cells[i][j] = v
        return self
# --- test
b = Board(2)
c = b.clone().set(0, 0, 1)
assert b.cells == [[0, 0], [0, 0]] and c.cells == [[1, 0], [0, 0]]
assert c is not b
# === game_of_life
# settings: {"stateful": True}
class Life:
    def __init__(self, live):
        self.live = set(live)
    def step(self):
        from collections import Counter
        near = Counter((x + i, y + j) for x, y in self.live for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
        self.live = {c for c, n in near.items() if n == 3 or (n == 2 and c in self.live)}
# --- test
g = Life({(0, 1), (1, 1), (2, 1)})
g.step()
assert g.live == {(1, 0), (1, 1), (1, 2)}
g.step()
assert (0, 1) in g.live and len(g.live) == 3
# === tic_tac_toe
# settings: {"stateful": True}
class InvalidMove(ValueError):
    pass
class TicTacToe:
    LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]
    def __init__(self):
        self.board, self.turn = [" "] * 9, "X"
    def play(self, at):
        if self.board[at] != " ":
            raise InvalidMove(f"cell {at} is taken")
        self.board[at] = self.turn
        self.turn = "O" if self.turn == "X" else "X"
    def winner(self):
        for a, b, c in self.LINES:
            if self.board[a] != " " and self.board[a] == self.board[b] == self.board[c]:
                return self.board[a]
        return None
# --- test
g = TicTacToe()
for move in (0, 3, 1, 4):
    g.play(move)
assert g.winner() is None
g.play(2)
assert g.winner() == "X"
# --- test
g = TicTacToe()
g.play(0)
try:
    g.play(0)
    assert False
except InvalidMove as e:
    assert "taken" in str(e)
assert g.turn == "O"
# === tokenizer_parser
# settings: {"stateful": True}
import re
class ParseError(Exception):
    def __init__(self, message, position):
        super().__init__(f"{message} at {position}")
        self.position = position
class Parser:
    def __init__(self, text):
        self.tokens = re.findall(r"\d+|[-+*/()]", text)
        self.at = 0
    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else None
    def take(self):
        token = self.peek()
        self.at += 1
        return token
    def parse(self):
        value = self.sum()
        if self.peek() is not None:
            raise ParseError("unexpected token", self.at)
        return value
    def sum(self):
        value = self.product()
        while self.peek() in ("+", "-"):
            value = value + self.product() if self.take() == "+" else value - self.product()
        return value
    def product(self):
        value = self.atom()
        while self.peek() in ("*", "/"):
            value = value * self.atom() if self.take() == "*" else value / self.atom()
        return value
    def atom(self):
        token = self.take()
        if token == "(":
            value = self.sum()
            if self.take() != ")":
                raise ParseError("missing )", self.at)
            return value
        if token is None or not token.isdigit():
            raise ParseError("number expected", self.at)
        return int(token)
# --- test
assert Parser("1 + 2 * 3").parse() == 7
assert Parser("(1 + 2) * 3").parse() == 9
assert Parser("8 / 4 - 1").parse() == 1.0
assert Parser("1+2").tokens == ["1", "+", "2"]
# --- test
for text, position in (("1 +", 3), ("2 3", 1)):
    try:
        Parser(text).parse()
        assert False
    except ParseError as e:
        assert e.position == position and str(position) in str(e)
# === moving_average_class
# settings: {"stateful": True}
from collections import deque
class MovingAverage:
    def __init__(self, size):
        self.window = deque(maxlen=size)
    def next(self, value):
        self.window.append(value)
        return sum(self.window) / len(self.window)
# --- test
m = MovingAverage(3)
assert m.next(1) == 1.0
assert m.next(10) == 5.5
assert abs(m.next(3) - 4.66667) < 1e-4
assert m.next(5) == 6.0
assert list(m.window) == [10, 3, 5]
# === time_map
# settings: {"stateful": True}
import bisect
class TimeMap:
    def __init__(self):
        self.store = {}
    def set(self, key, value, timestamp):
        self.store.setdefault(key, []).append((timestamp, value))
    def get(self, key, timestamp):
        items = self.store.get(key, [])
        i = bisect.bisect_right(items, (timestamp, chr(127)))
        return items[i - 1][1] if i else ""
# --- test
t = TimeMap()
t.set("foo", "bar", 1)
assert t.get("foo", 1) == "bar" and t.get("foo", 3) == "bar"
t.set("foo", "bar2", 4)
assert t.get("foo", 4) == "bar2" and t.get("foo", 0) == ""
# === text_histogram_class
# settings: {"stateful": True}
class Histogram:
    def __init__(self, text):
        self.counts = {}
        for word in text.lower().split():
            self.counts[word] = self.counts.get(word, 0) + 1
    def most_common(self, n):
        return sorted(self.counts.items(), key=lambda p: (-p[1], p[0]))[:n]
    def __getitem__(self, word):
        return self.counts.get(word, 0)
    def __iter__(self):
        return iter(self.counts)
    def items(self):
        return self.counts.items()
# --- test
h = Histogram("a b a c b a")
assert h["a"] == 3 and h["z"] == 0
assert h.most_common(2) == [("a", 3), ("b", 2)]
assert sorted(h) == ["a", "b", "c"]
assert dict(h.items()) == {"a": 3, "b": 2, "c": 1}
# === vector_scaled_text
# expected: opaque
# settings: {"stateful": True}
class V:
    def __init__(self, x, y): self.x, self.y = x, y
    def __mul__(self, k): return V(self.x * k, self.y * k)
    def __repr__(self): return f"V({self.x}, {self.y})"
# --- test
assert repr(V(1, 2) * 3) == "V(3, 6)"
# === nested_equality_in_lists
# settings: {"stateful": True}
class Move:
    def __init__(self, piece, to):
        self.piece, self.to = piece, to
    def __eq__(self, other):
        return (self.piece, self.to) == (other.piece, other.to)
class Game:
    def __init__(self):
        self.moves = []
    def play(self, piece, to):
        self.moves.append(Move(piece, to))
# --- test
g = Game()
g.play("K", "e2")
g.play("Q", "d4")
assert g.moves == [Move("K", "e2"), Move("Q", "d4")]
assert Move("K", "e2") in g.moves
# === logger_levels
# settings: {"stateful": True}
class Logger:
    LEVELS = {"DEBUG": 10, "INFO": 20, "ERROR": 40}
    def __init__(self, level="INFO"):
        self.level, self.records = level, []
    def _log(self, level, message):
        if self.LEVELS[level] >= self.LEVELS[self.level]:
            self.records.append(f"{level}: {message}")
    def debug(self, m): self._log("DEBUG", m)
    def info(self, m): self._log("INFO", m)
    def error(self, m): self._log("ERROR", m)
# --- test
log = Logger()
log.debug("x")
log.info("y")
log.error("z")
assert log.records == ["INFO: y", "ERROR: z"]
assert Logger.LEVELS["DEBUG"] == 10
log._log("ERROR", "w")
assert log.records[-1] == "ERROR: w"
# === weak_password_checker
import re
def check(password):
    problems = []
    if len(password) < 8:
        problems.append("too short")
    if not re.search(r"\d", password):
        problems.append("no digit")
    if password.lower() == password:
        problems.append("no capital")
    return problems
# --- test
assert check("Abcdefg1") == []
assert check("abc") == ["too short", "no digit", "no capital"]
assert "no digit" in check("Abcdefgh")
# === sorting_an_inventory
# settings: {"stateful": True, "entry_points": ("Item", "cheapest")}
from dataclasses import dataclass
@dataclass
class Item:
    name: str
    price: float
    def __lt__(self, other):
        return self.price < other.price
def cheapest(items):
    return sorted(items)[0]
# --- test
pen, ink = Item("pen", 2.0), Item("ink", 1.0)
assert pen > ink and sorted([pen, ink]) == [ink, pen]
assert cheapest([pen, ink]) is ink
