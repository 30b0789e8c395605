# === shapes_inheritance
# settings: {"stateful": True}
import math
from abc import ABC, abstractmethod
class Shape(ABC):
    @abstractmethod
    def area(self): ...
    def describe(self):
        return f"{type(self).__name__} with area {self.area():.2f}"
class Circle(Shape):
    def __init__(self, radius): self.radius = radius
    def area(self): return math.pi * self.radius ** 2
class Square(Shape):
    def __init__(self, side): self.side = side
    def area(self): return self.side ** 2
# --- test
import math
shapes = [Circle(1), Square(2)]
assert shapes[1].area() == 4
assert math.isclose(shapes[0].area(), math.pi)
assert shapes[0].describe() == "Circle with area 3.14"
assert isinstance(shapes[0], Shape) and isinstance(shapes[1], Square)
assert not isinstance(shapes[0], Square)
assert sum(s.area() for s in shapes) > 7
# --- test
try:
    Shape()
    assert False
except TypeError:
    pass
# === animals_polymorphism
# settings: {"stateful": True}
class Animal:
    def __init__(self, name): self.name = name
    def speak(self): raise NotImplementedError
class Dog(Animal):
    def speak(self): return f"{self.name} says Woof"
class Cat(Animal):
    def speak(self): return f"{self.name} says Meow"
class Puppy(Dog):
    def speak(self): return super().speak() + "!"
# --- test
assert Dog("Rex").speak() == "Rex says Woof"
assert [a.speak() for a in (Cat("Tom"), Puppy("Bo"))] == ["Tom says Meow", "Bo says Woof!"]
assert isinstance(Puppy("x"), Dog) and isinstance(Puppy("x"), Animal)
assert issubclass(Puppy, Animal) and not issubclass(Cat, Dog)
# --- test
try:
    Animal("x").speak()
    assert False
except NotImplementedError:
    pass
# === mixin_json
# settings: {"stateful": True}
import json
class JsonMixin:
    def to_json(self):
        return json.dumps(self.__dict__, sort_keys=True)
    @classmethod
    def from_json(cls, text):
        return cls(**json.loads(text))
class Person(JsonMixin):
    def __init__(self, name, age):
        self.name, self.age = name, age
# --- test
p = Person("Ann", 3)
assert p.to_json() == '{"age": 3, "name": "Ann"}'
q = Person.from_json(p.to_json())
assert q.name == "Ann" and q.age == 3
# === binary_search_tree
# settings: {"stateful": True}
class Node:
    def __init__(self, key):
        self.key, self.left, self.right = key, None, None
class BST:
    def __init__(self):
        self.root = None
    def insert(self, key):
        self.root = self._insert(self.root, key)
    def _insert(self, node, key):
        if node is None:
            return Node(key)
        if key < node.key:
            node.left = self._insert(node.left, key)
        elif key > node.key:
            node.right = self._insert(node.right, key)
        return node
    def search(self, key):
        node = self.root
        while node and node.key != key:
            node = node.left if key < node.key else node.right
        return node
    def inorder(self):
        def walk(node):
            return walk(node.left) + [node.key] + walk(node.right) if node else []
        return walk(self.root)
    def height(self):
        def depth(node):
            return 1 + max(depth(node.left), depth(node.right)) if node else 0
        return depth(self.root)
    def delete(self, key):
        def remove(node, key):
            if node is None:
                return None
            if key < node.key:
                node.left = remove(node.left, key)
            elif key > node.key:
                node.right = remove(node.right, key)
            elif node.left is None:
                return node.right
            elif node.right is None:
                return node.left
            else:
                least = node.right
                while least.left:
                    least = least.left
                node.key = least.key
                node.right = remove(node.right, least.key)
            return node
        self.root = remove(self.root, key)
# --- test
t = BST()
for k in (5, 3, 8, 1, 4):
    t.insert(k)
assert t.inorder() == [1, 3, 4, 5, 8]
assert t.root.key == 5 and t.root.left.key == 3 and t.root.left.left.left is None
assert t.search(4) is not None and t.search(4).key == 4
assert t.search(7) is None
assert t.height() == 3
assert t.search(5) is t.root
t.delete(5)
assert t.inorder() == [1, 3, 4, 8] and t.root.key == 8
# === invert_tree
# settings: {"stateful": True, "entry_points": ("TreeNode", "invert")}
class TreeNode:
    def __init__(self, val=0, left=None, right=None):
        self.val, self.left, self.right = val, left, right
def invert(root):
    if root:
        root.left, root.right = invert(root.right), invert(root.left)
    return root
# --- test
t = TreeNode(1, TreeNode(2), TreeNode(3, TreeNode(4)))
assert invert(t) is t
assert t.left.val == 3 and t.right.val == 2
assert t.left.right.val == 4 and t.left.left is None
# --- test
assert invert(None) is None
# === merge_sorted_lists
# settings: {"stateful": True, "entry_points": ("ListNode", "merge")}
class ListNode:
    def __init__(self, val=0, next=None):
        self.val, self.next = val, next
def merge(a, b):
    dummy = tail = ListNode()
    while a and b:
        if a.val <= b.val:
            tail.next, a = a, a.next
        else:
            tail.next, b = b, b.next
        tail = tail.next
    tail.next = a or b
    return dummy.next
# --- setup
def to_list(node):
    out = []
    while node:
        out.append(node.val)
        node = node.next
    return out
# --- test
a = ListNode(1, ListNode(3, ListNode(5)))
b = ListNode(2, ListNode(4))
assert to_list(merge(a, b)) == [1, 2, 3, 4, 5]
# --- test
assert merge(None, None) is None
assert to_list(merge(ListNode(1), None)) == [1]
# === solution_class
# settings: {"stateful": True}
class Solution:
    def twoSum(self, nums, target):
        seen = {}
        for i, x in enumerate(nums):
            if target - x in seen:
                return [seen[target - x], i]
            seen[x] = i
# --- test
s = Solution()
assert s.twoSum([2, 7, 11, 15], 9) == [0, 1]
assert Solution().twoSum([3, 3], 6) == [0, 1]
assert sorted(s.twoSum([3, 2, 4], 6)) == [1, 2]
assert s.twoSum([1], 5) is None
# === trie_words
# settings: {"stateful": True}
class TrieNode:
    def __init__(self):
        self.children, self.is_end = {}, False
class Trie:
    def __init__(self):
        self.root = TrieNode()
    def insert(self, word):
        node = self.root
        for ch in word:
            node = node.children.setdefault(ch, TrieNode())
        node.is_end = True
    def _find(self, prefix):
        node = self.root
        for ch in prefix:
            node = node.children.get(ch)
            if node is None:
                return None
        return node
    def search(self, word):
        node = self._find(word)
        return node is not None and node.is_end
    def starts_with(self, prefix):
        return self._find(prefix) is not None
    def __contains__(self, word):
        return self.search(word)
    def words(self, prefix=""):
        node, out = self._find(prefix), []
        def walk(node, path):
            if node.is_end:
                out.append(path)
            for ch in sorted(node.children):
                walk(node.children[ch], path + ch)
        if node:
            walk(node, prefix)
        return out
# --- test
t = Trie()
for w in ("car", "cart", "dog"):
    t.insert(w)
assert t.search("car") and not t.search("ca")
assert t.starts_with("ca") is True and t.starts_with("x") is False
assert "dog" in t and "do" not in t
assert t.words("ca") == ["car", "cart"]
assert t.root.children["c"].children["a"].is_end is False
# === graph_algorithms
# settings: {"stateful": True}
from collections import defaultdict, deque
import heapq
class Graph:
    def __init__(self):
        self.adj = defaultdict(dict)
    def add_edge(self, a, b, w=1):
        self.adj[a][b] = w
        self.adj[b][a] = w
    def bfs(self, start):
        seen, order, queue = {start}, [], deque([start])
        while queue:
            node = queue.popleft()
            order.append(node)
            for n in sorted(self.adj[node]):
                if n not in seen:
                    seen.add(n)
                    queue.append(n)
        return order
    def shortest(self, start, end):
        heap, done = [(0, start)], set()
        while heap:
            d, node = heapq.heappop(heap)
            if node == end:
                return d
            if node in done:
                continue
            done.add(node)
            for n, w in self.adj[node].items():
                heapq.heappush(heap, (d + w, n))
        return float("inf")
    def neighbors(self, node):
        return list(self.adj[node])
# --- test
g = Graph()
g.add_edge("A", "B", 4)
g.add_edge("A", "C", 1)
g.add_edge("C", "B", 2)
assert g.bfs("A") == ["A", "B", "C"]
assert g.shortest("A", "B") == 3
assert g.shortest("A", "Z") == float("inf")
assert set(g.neighbors("B")) == {"A", "C"}
assert g.adj["A"] == {"B": 4, "C": 1}
# === min_heap_class
# settings: {"stateful": True}
class MinHeap:
    def __init__(self, items=()):
        self.data = []
        for item in items:
            self.push(item)
    def push(self, x):
        self.data.append(x)
        i = len(self.data) - 1
        while i and self.data[(i - 1) // 2] > self.data[i]:
            self.data[i], self.data[(i - 1) // 2] = self.data[(i - 1) // 2], self.data[i]
            i = (i - 1) // 2
    def pop(self):
        if not self.data:
            raise IndexError("heap is empty")
        top, last = self.data[0], self.data.pop()
        if self.data:
            self.data[0], i = last, 0
            while True:
                small = min((j for j in (i, 2 * i + 1, 2 * i + 2) if j < len(self.data)), key=self.data.__getitem__)
                if small == i:
                    break
                self.data[i], self.data[small], i = self.data[small], self.data[i], small
        return top
    def __len__(self):
        return len(self.data)
# --- test
h = MinHeap([5, 3, 8, 1])
assert len(h) == 4
assert [h.pop() for _ in range(4)] == [1, 3, 5, 8]
try:
    h.pop()
    assert False
except IndexError as e:
    assert "empty" in str(e)
# === priority_queue_stable
# settings: {"stateful": True}
import heapq, itertools
class PriorityQueue:
    def __init__(self):
        self._heap, self._count = [], itertools.count()
    def push(self, item, priority=0):
        heapq.heappush(self._heap, (-priority, next(self._count), item))
    def pop(self):
        return heapq.heappop(self._heap)[-1]
    def __len__(self):
        return len(self._heap)
    def __bool__(self):
        return bool(self._heap)
# --- test
pq = PriorityQueue()
assert not pq
pq.push("low", 1)
pq.push("high", 9)
pq.push("also high", 9)
assert len(pq) == 3
assert pq.pop() == "high" and pq.pop() == "also high" and pq.pop() == "low"
# === iterator_over_tree
# settings: {"stateful": True}
class Tree:
    def __init__(self, value, *children):
        self.value, self.children = value, list(children)
    def __iter__(self):
        yield self.value
        for child in self.children:
            yield from child
    def __len__(self):
        return sum(1 for _ in self)
    def depth(self):
        return 1 + max((c.depth() for c in self.children), default=0)
# --- test
t = Tree(1, Tree(2, Tree(3)), Tree(4))
assert list(t) == [1, 2, 3, 4]
assert len(t) == 4 and t.depth() == 3
assert [c.value for c in t.children] == [2, 4]
assert max(t) == 4 and 3 in t
# === sparse_matrix_items
# settings: {"stateful": True}
class SparseMatrix:
    def __init__(self, n, m):
        self.n, self.m, self.cells = n, m, {}
    def __setitem__(self, at, value):
        i, j = at
        if not (0 <= i < self.n and 0 <= j < self.m):
            raise IndexError("out of range")
        if value:
            self.cells[at] = value
        else:
            self.cells.pop(at, None)
    def __getitem__(self, at):
        return self.cells.get(at, 0)
    def __iter__(self):
        return iter(sorted(self.cells.items()))
    def nonzero(self):
        return len(self.cells)
# --- test
m = SparseMatrix(2, 2)
m[0, 1] = 5
m[1, 1] = 7
assert m[0, 1] == 5 and m[0, 0] == 0
m[1, 1] = 0
assert m.nonzero() == 1
assert list(m) == [((0, 1), 5)]
try:
    m[5, 5] = 1
    assert False
except IndexError:
    pass
# === observable_property
# settings: {"stateful": True}
class Thermostat:
    def __init__(self):
        self._temp, self.log = 20, []
    @property
    def temp(self):
        return self._temp
    @temp.setter
    def temp(self, value):
        if not 5 <= value <= 35:
            raise ValueError("out of range")
        self.log.append((self._temp, value))
        self._temp = value
    @temp.deleter
    def temp(self):
        self._temp = 20
# --- test
t = Thermostat()
t.temp = 25
t.temp += 1
assert t.temp == 26
assert t.log == [(20, 25), (25, 26)]
del t.temp
assert t.temp == 20
try:
    t.temp = 99
    assert False
except ValueError:
    assert t.temp == 20
# === lazy_property
# settings: {"stateful": True}
class lazy:
    def __init__(self, function):
        self.function = function
    def __set_name__(self, owner, name):
        self.name = name
    def __get__(self, obj, owner):
        if obj is None:
            return self
        value = obj.__dict__[self.name] = self.function(obj)
        return value
class Data:
    def __init__(self):
        self.loads = 0
    @lazy
    def content(self):
        self.loads += 1
        return [1, 2, 3]
# --- test
d = Data()
assert d.loads == 0
assert d.content == [1, 2, 3]
assert d.content == [1, 2, 3] and d.loads == 1
# === typed_descriptor
# settings: {"stateful": True}
class Typed:
    def __init__(self, kind):
        self.kind = kind
    def __set_name__(self, owner, name):
        self.name = "_" + name
    def __get__(self, obj, owner=None):
        return getattr(obj, self.name)
    def __set__(self, obj, value):
        if not isinstance(value, self.kind):
            raise TypeError(f"expected {self.kind.__name__}")
        setattr(obj, self.name, value)
class Product:
    name, price = Typed(str), Typed(float)
    def __init__(self, name, price):
        self.name, self.price = name, price
# --- test
p = Product("pen", 1.5)
assert p.name == "pen" and p.price == 1.5
try:
    p.price = "free"
    assert False
except TypeError as e:
    assert str(e) == "expected float"
# === singleton
# settings: {"stateful": True}
class Settings:
    _instance = None
    def __new__(cls):
        if cls._instance is None:
            cls._instance = super().__new__(cls)
            cls._instance.values = {}
        return cls._instance
    def set(self, key, value):
        self.values[key] = value
# --- test
a, b = Settings(), Settings()
assert a is b
a.set("debug", True)
assert b.values == {"debug": True}
# === factory_registry
# settings: {"stateful": True, "entry_points": ("create", "Circle", "Square")}
class Circle:
    name = "circle"
    def sides(self): return 0
class Square:
    name = "square"
    def sides(self): return 4
_KINDS = {kind.name: kind for kind in (Circle, Square)}
def create(name):
    try:
        return _KINDS[name]()
    except KeyError:
        raise ValueError(f"unknown shape {name!r}") from None
# --- test
assert create("square").sides() == 4
assert isinstance(create("circle"), Circle)
assert not isinstance(create("circle"), Square)
assert create("circle").name == "circle"
# --- test
try:
    create("blob")
    assert False
except ValueError as e:
    assert "blob" in str(e)
# === observer_methods
# settings: {"stateful": True}
class Listener:
    def __init__(self):
        self.got = []
    def update(self, event):
        self.got.append(event)
class Subject:
    def __init__(self):
        self._listeners = []
    def attach(self, listener):
        if listener not in self._listeners:
            self._listeners.append(listener)
    def detach(self, listener):
        self._listeners.remove(listener)
    def notify(self, event):
        for listener in self._listeners:
            listener.update(event)
        return len(self._listeners)
# --- test
s, a, b = Subject(), Listener(), Listener()
s.attach(a)
s.attach(b)
s.attach(a)
assert s.notify("x") == 2
s.detach(a)
s.notify("y")
assert a.got == ["x"] and b.got == ["x", "y"]
# === event_emitter_callbacks
# expected: unsupported_test
# settings: {"stateful": True}
class EventEmitter:
    def __init__(self):
        self._handlers = {}
    def on(self, name, handler):
        self._handlers.setdefault(name, []).append(handler)
    def emit(self, name, *args):
        for handler in self._handlers.get(name, []):
            handler(*args)
# --- test
got = []
e = EventEmitter()
e.on("tick", got.append)
e.emit("tick", 1)
assert got == [1]
# === command_undo
# settings: {"stateful": True}
class Editor:
    def __init__(self):
        self.text, self._undo, self._redo = "", [], []
    def write(self, text):
        self._undo.append(self.text)
        self._redo.clear()
        self.text += text
        return self
    def undo(self):
        if self._undo:
            self._redo.append(self.text)
            self.text = self._undo.pop()
        return self
    def redo(self):
        if self._redo:
            self._undo.append(self.text)
            self.text = self._redo.pop()
        return self
# --- test
e = Editor()
e.write("ab").write("cd")
assert e.text == "abcd"
assert e.undo().text == "ab"
assert e.undo().undo().text == ""
assert e.redo().text == "ab"
e.write("x")
assert e.redo().text == "abx"
# === state_machine
# settings: {"stateful": True}
from enum import Enum
class State(Enum):
    RED = 1
    GREEN = 2
    YELLOW = 3
class TrafficLight:
    ORDER = [State.RED, State.GREEN, State.YELLOW]
    def __init__(self):
        self.state = State.RED
    def next(self):
        self.state = self.ORDER[(self.ORDER.index(self.state) + 1) % 3]
        return self.state
# --- test
light = TrafficLight()
assert light.state is State.RED
assert light.next() is State.GREEN
assert light.next().name == "YELLOW"
light.next()
assert light.state.value == 1
assert State(2) is State.GREEN
assert [s.name for s in State] == ["RED", "GREEN", "YELLOW"]
# === enum_equality
# expected: opaque
# settings: {"stateful": True}
from enum import Enum
class Color(Enum):
    RED = "r"
    BLUE = "b"
def mix(a, b):
    return Color.RED if a == b else Color.BLUE
# --- test
assert mix(Color.RED, Color.RED) == Color.RED
assert mix(Color.RED, Color.BLUE) == Color.BLUE
assert mix(Color.RED, Color.BLUE) != Color.RED
assert Color("r") == Color.RED and Color["BLUE"].value == "b"
# === flag_permissions
# settings: {"stateful": True}
from enum import IntFlag
class Permission(IntFlag):
    READ = 1
    WRITE = 2
    EXECUTE = 4
class File:
    def __init__(self): self.mode = Permission(0)
    def grant(self, p): self.mode |= p
    def can(self, p): return bool(self.mode & p)
# --- test
f = File()
f.grant(Permission.READ)
f.grant(Permission.EXECUTE)
assert f.can(Permission.READ) and not f.can(Permission.WRITE)
assert f.mode == 5
# === rate_limiter
# settings: {"stateful": True}
class RateLimiter:
    def __init__(self, limit, window):
        self.limit, self.window, self.calls = limit, window, []
    def allow(self, now):
        self.calls = [t for t in self.calls if now - t < self.window]
        if len(self.calls) >= self.limit:
            return False
        self.calls.append(now)
        return True
# --- test
r = RateLimiter(2, 10)
assert r.allow(0) and r.allow(1)
assert not r.allow(2)
assert r.allow(11)
assert r.calls == [11] or r.calls == [1, 11][-1:]
# === todo_list
# settings: {"stateful": True}
class Todo:
    def __init__(self, title, done=False):
        self.title, self.done = title, done
    def __repr__(self):
        return f"[{'x' if self.done else ' '}] {self.title}"
class TodoList:
    def __init__(self):
        self.items = []
    def add(self, title):
        item = Todo(title)
        self.items.append(item)
        return item
    def complete(self, title):
        for item in self.items:
            if item.title == title:
                item.done = True
                return
        raise LookupError(title)
    def pending(self):
        return [item.title for item in self.items if not item.done]
# --- test
t = TodoList()
first = t.add("wash")
t.add("cook")
t.complete("wash")
assert first.done and t.pending() == ["cook"]
assert first in t.items
assert str(t.items) == "[[x] wash, [ ] cook]"
assert len(t.items) == 2 and t.items[0] is first
# --- test
try:
    TodoList().complete("x")
    assert False
except LookupError as e:
    assert str(e) == "x"
# === library_system
# settings: {"stateful": True}
class BookNotAvailable(Exception):
    def __init__(self, title):
        self.title = title
        super().__init__(f"'{title}' is not available")
class Book:
    def __init__(self, title, author):
        self.title, self.author, self.borrowed = title, author, False
class Library:
    def __init__(self):
        self.books = []
    def add(self, book):
        self.books.append(book)
    def find(self, author):
        return [b for b in self.books if b.author == author]
    def borrow(self, title):
        for b in self.books:
            if b.title == title and not b.borrowed:
                b.borrowed = True
                return b
        raise BookNotAvailable(title)
# --- test
lib = Library()
dune = Book("Dune", "Herbert")
lib.add(dune)
lib.add(Book("Emma", "Austen"))
assert lib.borrow("Dune") is dune
assert dune.borrowed
assert [b.title for b in lib.find("Austen")] == ["Emma"]
try:
    lib.borrow("Dune")
    assert False
except BookNotAvailable as e:
    assert e.title == "Dune" and str(e) == "'Dune' is not available"
# === shopping_cart
# settings: {"stateful": True}
class Cart:
    TAX = 0.1
    def __init__(self):
        self.items = {}
    def add(self, name, price, n=1):
        if price < 0:
            raise ValueError("negative price")
        old = self.items.get(name, (price, 0))
        self.items[name] = (price, old[1] + n)
    def remove(self, name):
        del self.items[name]
    @property
    def subtotal(self):
        return sum(price * n for price, n in self.items.values())
    def total(self):
        return round(self.subtotal * (1 + self.TAX), 2)
# --- test
c = Cart()
c.add("pen", 1.5, 2)
c.add("ink", 4)
c.add("pen", 1.5)
assert c.items["pen"] == (1.5, 3)
assert abs(c.subtotal - 8.5) < 1e-9
assert c.total() == 9.35
c.remove("ink")
assert "ink" not in c.items
try:
    c.remove("ink")
    assert False
except KeyError:
    pass
# === parking_lot
# settings: {"stateful": True}
class ParkingLot:
    def __init__(self, spots):
        self._free = list(range(1, spots + 1))
        self._cars = {}
    def park(self, plate):
        if not self._free:
            return None
        self._cars[plate] = self._free.pop(0)
        return self._cars[plate]
    def leave(self, plate):
        self._free.append(self._cars.pop(plate))
        self._free.sort()
    @property
    def available(self):
        return len(self._free)
# --- test
lot = ParkingLot(2)
assert lot.park("A") == 1 and lot.park("B") == 2
assert lot.park("C") is None and lot.available == 0
lot.leave("A")
assert lot.park("C") == 1
assert lot._cars == {"B": 2, "C": 1}
# === hashable_point_in_sets
# settings: {"stateful": True}
class P:
    def __init__(self, x, y):
        self.x, self.y = x, y
    def __eq__(self, other):
        return isinstance(other, P) and (self.x, self.y) == (other.x, other.y)
    def __hash__(self):
        return hash((self.x, self.y))
# --- test
assert hash(P(1, 2)) == hash(P(1, 2))
assert len({P(1, 2), P(1, 2), P(2, 1)}) == 2
d = {P(0, 0): "origin"}
assert d[P(0, 0)] == "origin"
assert P(1, 1) in {P(1, 1)}
assert P(1, 1) != P(1, 2) and not P(1, 1) == "x"
# === set_with_operators
# settings: {"stateful": True}
class MySet:
    def __init__(self, items=()):
        self._d = dict.fromkeys(items)
    def add(self, x): self._d[x] = None
    def __contains__(self, x): return x in self._d
    def __len__(self): return len(self._d)
    def __iter__(self): return iter(self._d)
    def __or__(self, o): return MySet([*self, *o])
    def __and__(self, o): return MySet(x for x in self if x in o)
    def __sub__(self, o): return MySet(x for x in self if x not in o)
    def __le__(self, o): return all(x in o for x in self)
# --- test
a, b = MySet([1, 2, 3]), MySet([2, 3, 4])
assert sorted(a | b) == [1, 2, 3, 4]
assert sorted(a & b) == [2, 3]
assert list(a - b) == [1]
assert len(a | b) == 4 and 4 in (a | b)
assert MySet([1]) <= a and not a <= b
a.add(9)
assert 9 in a and 8 not in a
# === interval_contains
# settings: {"stateful": True}
class Interval:
    def __init__(self, low, high):
        if low > high:
            raise ValueError("low > high")
        self.low, self.high = low, high
    def __contains__(self, x): return self.low <= x <= self.high
    def overlaps(self, other): return self.low <= other.high and other.low <= self.high
    def merge(self, other):
        if not self.overlaps(other):
            return None
        return Interval(min(self.low, other.low), max(self.high, other.high))
    def __repr__(self): return f"[{self.low}, {self.high}]"
# --- test
i = Interval(1, 5)
assert 3 in i and 6 not in i
assert i.overlaps(Interval(5, 9)) and not i.overlaps(Interval(6, 9))
assert repr(i.merge(Interval(4, 8))) == "[1, 8]"
assert i.merge(Interval(7, 8)) is None
m = i.merge(Interval(2, 7))
assert (m.low, m.high) == (1, 7) 
# === in_place_operators
# settings: {"stateful": True}
class Counter:
    def __init__(self, n=0):
        self.n = n
    def __iadd__(self, k):
        self.n += k
        return self
    def __int__(self):
        return self.n
# --- test
c = Counter()
same = c
c += 5
c += 2
assert c.n == 7 and c is same
# --- test
assert int(Counter(3)) == 3
# === unsupported_operand
# settings: {"stateful": True}
class Meters:
    def __init__(self, value):
        self.value = value
    def __add__(self, other):
        if not isinstance(other, Meters):
            return NotImplemented
        return Meters(self.value + other.value)
    def __radd__(self, other):
        return self if other == 0 else NotImplemented
# --- test
assert (Meters(1) + Meters(2)).value == 3
assert sum([Meters(1), Meters(2), Meters(3)]).value == 6
try:
    Meters(1) + "2"
    assert False
except TypeError:
    pass
# === string_builder_repr
# settings: {"stateful": True}
class Element:
    def __init__(self, tag, *children, **attributes):
        self.tag, self.children, self.attributes = tag, children, attributes
    def __str__(self):
        attributes = "".join(f' {k}="{v}"' for k, v in self.attributes.items())
        return f"<{self.tag}{attributes}>{''.join(map(str, self.children))}</{self.tag}>"
    def __format__(self, spec):
        return str(self).upper() if spec == "up" else str(self)
# --- test
e = Element("p", "hi ", Element("b", "you"), id="x")
assert str(e) == '<p id="x">hi <b>you</b></p>'
assert f"{Element('i', 'a')}" == "<i>a</i>"
assert f"{Element('i', 'a'):up}" == "<I>A</I>"
assert "{}".format(Element("u")) == "<u></u>"
