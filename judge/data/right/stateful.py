# === lru_cache_ordered_dict
# settings: {"stateful": True}
from collections import OrderedDict
class LRUCache(OrderedDict):
    def __init__(self, capacity: int):
        super().__init__()
        self.capacity = capacity
    def get(self, key: int) -> int:
        if key not in self:
            return -1
        self.move_to_end(key)
        return self[key]
    def put(self, key: int, value: int) -> None:
        if key in self:
            self.move_to_end(key)
        self[key] = value
        if len(self) > self.capacity:
            self.popitem(last=False)
# --- test
c = LRUCache(2)
c.put(1, 1)
c.put(2, 2)
assert c.get(1) == 1
c.put(3, 3)
assert c.get(2) == -1 and c.get(3) == 3
# --- test
c = LRUCache(1)
c.put("a", 5)
c.put("b", 6)
assert len(c) == 1 and "a" not in c and list(c) == ["b"]
# === stack_of_list
# settings: {"stateful": True}
class Stack(list):
    push = list.append
    def peek(self):
        if not self:
            raise IndexError("peek from empty stack")
        return self[-1]
    def is_empty(self):
        return not self
# --- test
s = Stack()
assert s.is_empty()
s.push(1)
s.push(2)
assert s.peek() == 2 and s.pop() == 2 and len(s) == 1
# --- test
s = Stack([1, 2])
assert s == [1, 2] and s[0] == 1 and not s.is_empty()
# --- test
try:
    Stack().peek()
    assert False
except IndexError as e:
    assert "empty" in str(e)
# === default_dict_graph
# settings: {"stateful": True}
from collections import defaultdict, deque
class Graph(defaultdict):
    def __init__(self):
        super().__init__(set)
    def add_edge(self, a, b):
        self[a].add(b)
        self[b].add(a)
    def bfs(self, start):
        seen, queue = [start], deque([start])
        while queue:
            for node in sorted(self[queue.popleft()]):
                if node not in seen:
                    seen.append(node)
                    queue.append(node)
        return seen
# --- test
g = Graph()
g.add_edge(1, 2)
g.add_edge(1, 3)
g.add_edge(3, 4)
assert g.bfs(1) == [1, 2, 3, 4]
assert g == {1: {2, 3}, 2: {1}, 3: {1, 4}, 4: {3}}
# === attribute_dict
# settings: {"stateful": True}
class AttrDict(dict):
    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None
    def __setattr__(self, name, value):
        self[name] = value
# --- test
d = AttrDict(a=1)
d.b = 2
assert d.a == 1 and d["b"] == 2 and d == {"a": 1, "b": 2}
# === case_insensitive_dict
# settings: {"stateful": True}
class CaseInsensitiveDict(dict):
    def __setitem__(self, key, value): super().__setitem__(key.lower(), value)
    def __getitem__(self, key): return super().__getitem__(key.lower())
    def __contains__(self, key): return super().__contains__(key.lower())
# --- test
d = CaseInsensitiveDict()
d["Content-Type"] = "text/html"
assert d["CONTENT-TYPE"] == "text/html" and "content-type" in d and len(d) == 1
# === multiset_counter
# settings: {"stateful": True}
from collections import Counter
class Bag(Counter):
    def top(self, n=1):
        return [item for item, _ in self.most_common(n)]
# --- test
b = Bag("abracadabra")
assert b.top() == ["a"] and b["b"] == 2
b.update("bbbbbb")
assert b.top(1) == ["b"]
# === point_named_tuple
# settings: {"stateful": True}
from typing import NamedTuple
class Point(NamedTuple):
    x: float
    y: float = 0
    def distance(self, other):
        return ((self.x - other.x) ** 2 + (self.y - other.y) ** 2) ** 0.5
    def __add__(self, other):
        return Point(self.x + other.x, self.y + other.y)
# --- test
p = Point(1, 2)
assert p.x == 1 and p == (1, 2) and p[1] == 2
# --- test
assert Point(0, 0).distance(Point(3, 4)) == 5
# --- test
assert Point(1, 2) + Point(3, 4) == (4, 6)
# --- test
a, b = Point(7)
assert (a, b) == (7, 0) and sorted([Point(2), Point(1)])[0].x == 1
# === named_tuple_factory
# settings: {"stateful": True, "entry_points": ("Card", "deck")}
from collections import namedtuple
Card = namedtuple("Card", "rank suit")
def deck():
    return [Card(r, s) for s in "SH" for r in "AK"]
# --- test
assert Card("A", "S").suit == "S" and Card(rank=1, suit=2) == (1, 2)
# --- test
assert deck() == [("A", "S"), ("K", "S"), ("A", "H"), ("K", "H")]
# --- test
assert Card("A", "S")._replace(rank="K") == ("K", "S")
# === money_decimal
# settings: {"stateful": True}
from decimal import Decimal
class Money(Decimal):
    def split(self, n):
        share = (self / n).quantize(Decimal("0.01"))
        return [share] * n
    def formatted(self):
        return f"${self:,.2f}"
# --- test
from decimal import Decimal
assert Money("10.50") + Money("0.25") == Decimal("10.75")
# --- test
assert Money("1234.5").formatted() == "$1,234.50"
# --- test
assert Money("3") + 4 == 7 and Money("2") < 3
# --- test
assert sum(Money("9").split(3)) == 9
# === temperature_float
# settings: {"stateful": True}
class Celsius(float):
    def to_fahrenheit(self):
        return self * 9 / 5 + 32
# --- test
assert Celsius(100).to_fahrenheit() == 212.0 and abs(Celsius(36.6) - 36.6) < 1e-9
# === modular_int
# settings: {"stateful": True}
class Mod7(int):
    def __new__(cls, value): return super().__new__(cls, value % 7)
    def __add__(self, other): return Mod7(int(self) + int(other))
    def __mul__(self, other): return Mod7(int(self) * int(other))
# --- test
assert Mod7(10) == 3 and Mod7(5) + Mod7(4) == 2 and (Mod7(3) * Mod7(5)) == 1
# === slug_str
# settings: {"stateful": True}
import re
class Slug(str):
    def __new__(cls, text):
        return super().__new__(cls, re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-"))
    @property
    def words(self):
        return self.split("-")
# --- test
s = Slug("Hello, World!")
assert s == "hello-world" and s.words == ["hello", "world"] and s.startswith("hello")
# === sorted_list
# settings: {"stateful": True}
import bisect
class SortedList(list):
    def __init__(self, items=()):
        super().__init__(sorted(items))
    def add(self, item):
        bisect.insort(self, item)
    def count_less(self, x):
        return bisect.bisect_left(self, x)
# --- test
s = SortedList([3, 1])
s.add(2)
assert list(s) == [1, 2, 3] and s.count_less(3) == 2 and s[-1] == 3
# === ordered_set
# settings: {"stateful": True}
class OrderedSet(dict):
    def __init__(self, items=()):
        super().__init__(dict.fromkeys(items))
    def add(self, item):
        self[item] = None
    def discard(self, item):
        self.pop(item, None)
# --- test
s = OrderedSet("banana")
s.add("z")
s.discard("b")
assert list(s) == ["a", "n", "z"] and "n" in s
# === ring_buffer_deque
# settings: {"stateful": True}
from collections import deque
class RingBuffer(deque):
    def __init__(self, size):
        super().__init__(maxlen=size)
    def average(self):
        return sum(self) / len(self) if self else 0
# --- test
r = RingBuffer(3)
assert r.average() == 0
for x in (1, 2, 3, 4):
    r.append(x)
assert r.average() == 3 and list(r) == [2, 3, 4]
# === matrix_of_list
# settings: {"stateful": True}
class Matrix(list):
    def __matmul__(self, other):
        return Matrix([[sum(a * b for a, b in zip(row, col)) for col in zip(*other)] for row in self])
    @property
    def T(self):
        return Matrix(map(list, zip(*self)))
# --- test
assert (Matrix([[1, 2]]) @ Matrix([[3], [4]])) == [[11]]
# --- test
assert Matrix([[1, 2], [3, 4]]).T == [[1, 3], [2, 4]]
# === powerset_of_set
# settings: {"stateful": True}
from itertools import combinations
class PowerSet(set):
    def subsets(self):
        items = sorted(self)
        return [set(c) for n in range(len(items) + 1) for c in combinations(items, n)]
# --- test
p = PowerSet({1, 2})
assert len(p.subsets()) == 4 and {1} in p.subsets() and p == {1, 2}
# === linked_list_truth
# settings: {"stateful": True, "entry_points": ("ListNode", "reverse", "build")}
class ListNode:
    def __init__(self, val=0, next=None):
        self.val, self.next = val, next
def build(values):
    head = None
    for value in reversed(values):
        head = ListNode(value, head)
    return head
def reverse(head):
    before = None
    while head:
        head.next, before, head = before, head, head.next
    return before
# --- test
node, out = reverse(build([1, 2, 3])), []
while node:
    out.append(node.val)
    node = node.next
assert out == [3, 2, 1]
# --- test
assert not build([]) and build([1])
# === binary_tree
# settings: {"stateful": True, "entry_points": ("TreeNode", "insert", "inorder")}
class TreeNode:
    def __init__(self, val, left=None, right=None):
        self.val, self.left, self.right = val, left, right
def insert(root, val):
    if root is None:
        return TreeNode(val)
    if val < root.val:
        root.left = insert(root.left, val)
    else:
        root.right = insert(root.right, val)
    return root
def inorder(root):
    return inorder(root.left) + [root.val] + inorder(root.right) if root else []
# --- test
root = None
for v in (2, 1, 3):
    root = insert(root, v)
assert inorder(root) == [1, 2, 3] and root.left.val == 1 and root.left.left is None
# === trie
# settings: {"stateful": True}
class Trie:
    def __init__(self):
        self.children, self.end = {}, False
    def insert(self, word):
        node = self
        for ch in word:
            node = node.children.setdefault(ch, Trie())
        node.end = True
    def search(self, word):
        node = self._walk(word)
        return bool(node and node.end)
    def starts_with(self, prefix):
        return self._walk(prefix) is not None
    def _walk(self, word):
        node = self
        for ch in word:
            node = node.children.get(ch)
            if node is None:
                return None
        return node
# --- test
t = Trie()
t.insert("apple")
assert t.search("apple") and not t.search("app") and t.starts_with("app")
# === union_find
# settings: {"stateful": True}
class UnionFind:
    def __init__(self, n):
        self.parent = list(range(n))
        self.count = n
    def find(self, x):
        while self.parent[x] != x:
            self.parent[x] = self.parent[self.parent[x]]
            x = self.parent[x]
        return x
    def union(self, a, b):
        a, b = self.find(a), self.find(b)
        if a == b:
            return False
        self.parent[a] = b
        self.count -= 1
        return True
# --- test
u = UnionFind(4)
assert u.union(0, 1) and u.union(2, 3) and not u.union(1, 0)
assert u.count == 2 and u.find(0) == u.find(1) != u.find(2)
# === min_stack
# settings: {"stateful": True}
class MinStack:
    def __init__(self): self.data = []
    def push(self, x): self.data.append((x, min(x, self.data[-1][1] if self.data else x)))
    def pop(self): return self.data.pop()[0]
    def top(self): return self.data[-1][0]
    def getMin(self): return self.data[-1][1]
# --- test
m = MinStack()
for x in (-2, 0, -3):
    m.push(x)
assert m.getMin() == -3
m.pop()
assert m.top() == 0 and m.getMin() == -2
# === bank_account_errors
# settings: {"stateful": True}
class InsufficientFunds(Exception):
    def __init__(self, needed):
        super().__init__(needed)
        self.needed = needed
    def __str__(self):
        return f"{self.needed} more needed"
class Account:
    def __init__(self, balance): self.balance = balance
    def withdraw(self, amount):
        if amount > self.balance:
            raise InsufficientFunds(amount - self.balance)
        self.balance -= amount
# --- test
a = Account(10)
try:
    a.withdraw(15)
    assert False
except Exception as e:
    assert str(e) == "5 more needed" and type(e).__name__ == "InsufficientFunds"
assert a.balance == 10
# === fraction_class_repr
# settings: {"stateful": True}
from math import gcd
class Ratio:
    def __init__(self, a, b):
        g = gcd(a, b)
        self.a, self.b = a // g, b // g
    def __add__(self, other): return Ratio(self.a * other.b + other.a * self.b, self.b * other.b)
    def __repr__(self): return f"Ratio({self.a}, {self.b})"
# --- test
assert repr(Ratio(1, 2) + Ratio(1, 3)) == "Ratio(5, 6)" and str(Ratio(2, 4)) == "Ratio(1, 2)"
# === context_manager_timer
# settings: {"stateful": True}
class Recorder:
    def __init__(self): self.log = []
    def __enter__(self):
        self.log.append("in")
        return self
    def __exit__(self, *error):
        self.log.append("out")
        return False
# --- test
r = Recorder()
with r as inner:
    inner.log.append("lost")
    assert inner.log == ["in"]
assert r.log == ["in", "out"]
# === iterator_class
# settings: {"stateful": True}
class Countdown:
    def __init__(self, n): self.n = n
    def __iter__(self): return self
    def __next__(self):
        if self.n <= 0: raise StopIteration
        self.n -= 1
        return self.n + 1
# --- test
assert list(Countdown(3)) == [3, 2, 1]
# --- test
c = Countdown(2)
assert next(c) == 2 and next(c) == 1 and next(c, None) is None
# === dataclass_inventory
# settings: {"stateful": True}
from dataclasses import dataclass, field
@dataclass
class Item:
    name: str
    price: float
    n: int = 1
    def total(self): return self.price * self.n
@dataclass
class Cart:
    items: list = field(default_factory=list)
    def add(self, item): self.items.append(item)
    def total(self): return sum(i.total() for i in self.items)
# --- test
c = Cart()
c.add(Item("pen", 1.5, 2))
c.add(Item("ink", 4))
assert c.total() == 7.0 and c.items[0].name == "pen"
# === event_emitter
# settings: {"stateful": True}
class Emitter(dict):
    def on(self, event, value):
        self.setdefault(event, []).append(value)
        return self
    def fire(self, event):
        return self.pop(event, [])
# --- test
e = Emitter()
e.on("a", 1).on("a", 2)
assert e.fire("a") == [1, 2] and e.fire("a") == [] and not e
# === polynomial_tuple
# settings: {"stateful": True}
class Poly(tuple):
    def __new__(cls, *coefficients): return super().__new__(cls, coefficients)
    def __call__(self, x):
        total = 0
        for c in reversed(self):
            total = total * x + c
        return total
# --- test
p = Poly(1, 2, 3)
assert p(2) == 17 and p == (1, 2, 3) and len(p) == 3
# === version_ordering
# settings: {"stateful": True}
class Version(tuple):
    def __new__(cls, text): return super().__new__(cls, map(int, text.split(".")))
    @property
    def major(self): return self[0]
# --- test
assert Version("1.10.0") > Version("1.9.5") and Version("2.0").major == 2
# --- test
assert max([Version("1.2"), Version("1.10")]) == (1, 10)
# === fraction_subclass
# settings: {"stateful": True}
from fractions import Fraction
class Probability(Fraction):
    def complement(self): return 1 - self
# --- test
from fractions import Fraction
assert Probability(1, 4).complement() == Fraction(3, 4) and Probability(1, 2) * 2 == 1
# === int_enum
# settings: {"stateful": True}
from enum import IntEnum
class Level(IntEnum):
    LOW = 1
    HIGH = 3
# --- test
assert Level(3) == 3 and Level(1) < 2 and Level(3).name == "HIGH"
# === heap_list
# settings: {"stateful": True}
import heapq
class MinHeap(list):
    def push(self, x): heapq.heappush(self, x)
    def pop_min(self): return heapq.heappop(self)
# --- test
h = MinHeap()
for x in (5, 1, 3):
    h.push(x)
assert [h.pop_min() for _ in range(3)] == [1, 3, 5] and not h
# === phone_book_sorted_keys
# settings: {"stateful": True}
class PhoneBook(dict):
    def __iter__(self): return iter(sorted(super().__iter__()))
    def find(self, prefix): return [n for n in self if n.startswith(prefix)]
# --- test
b = PhoneBook(bob=1, alice=2, al=3)
assert b.find("al") == ["al", "alice"] and list(b) == ["al", "alice", "bob"]
# === user_dict_history
# settings: {"stateful": True}
from collections import UserDict
class History(UserDict):
    def __init__(self):
        super().__init__()
        self.writes = 0
    def __setitem__(self, key, value):
        self.writes += 1
        super().__setitem__(key, value)
# --- test
h = History()
h["a"] = 1
h["a"] = 2
assert h.writes == 2 and h["a"] == 2 and "a" in h and len(h) == 1
# === chained_builder
# settings: {"stateful": True}
class Query:
    def __init__(self, table): self.parts = [f"SELECT * FROM {table}"]
    def where(self, text):
        self.parts.append(f"WHERE {text}")
        return self
    def limit(self, n):
        self.parts.append(f"LIMIT {n}")
        return self
    def __str__(self): return " ".join(self.parts)
# --- test
assert str(Query("t").where("a = 1").limit(5)) == "SELECT * FROM t WHERE a = 1 LIMIT 5"
# === vector_named_tuple_scaled
# settings: {"stateful": True}
from collections import namedtuple
class Vector(namedtuple("Vector", "x y")):
    __slots__ = ()
    def __mul__(self, k): return Vector(self.x * k, self.y * k)
    def __abs__(self): return (self.x ** 2 + self.y ** 2) ** 0.5
# --- test
assert (Vector(1, 2) * 3).x == 3 and abs(Vector(3, 4)) == 5.0
# === equal_dataclasses
# settings: {"stateful": True}
from dataclasses import dataclass
@dataclass(frozen=True)
class Pair:
    a: int
    b: int
    def swapped(self): return Pair(self.b, self.a)
# --- test
assert Pair(1, 2).swapped() == Pair(2, 1)
