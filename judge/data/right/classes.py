# === stack_private_list
# settings: {"stateful": True}
class Stack:
    def __init__(self):
        self._items = []
    def push(self, item):
        self._items.append(item)
    def pop(self):
        if not self._items:
            raise IndexError("pop from empty stack")
        return self._items.pop()
    def peek(self):
        return self._items[-1]
    def is_empty(self):
        return len(self._items) == 0
    def size(self):
        return len(self._items)
# --- test
s = Stack()
assert s.is_empty()
s.push(1)
assert s._items == [1]
s.push(2)
assert s.peek() == 2
assert s.size() == 2
assert s.pop() == 2
assert s.pop() == 1
# --- test
s = Stack()
try:
    s.pop()
    assert False, "expected IndexError"
except IndexError as e:
    assert str(e) == "pop from empty stack"
# === queue_two_stacks
# settings: {"stateful": True}
class MyQueue:
    def __init__(self):
        self.in_stack, self.out_stack = [], []
    def enqueue(self, x):
        self.in_stack.append(x)
    def dequeue(self):
        if not self.out_stack:
            while self.in_stack:
                self.out_stack.append(self.in_stack.pop())
        if not self.out_stack:
            raise IndexError("queue is empty")
        return self.out_stack.pop()
    def __len__(self):
        return len(self.in_stack) + len(self.out_stack)
    def __bool__(self):
        return len(self) > 0
# --- test
q = MyQueue()
assert not q
for i in range(3):
    q.enqueue(i)
assert len(q) == 3 and q
assert [q.dequeue() for _ in range(3)] == [0, 1, 2]
# --- test
q = MyQueue()
raised = False
try:
    q.dequeue()
except IndexError:
    raised = True
assert raised
# === circular_queue
# settings: {"stateful": True}
class CircularQueue:
    def __init__(self, k):
        self.buf = [None] * k
        self.head = self.count = 0
    def enqueue(self, x):
        if self.count == len(self.buf):
            return False
        self.buf[(self.head + self.count) % len(self.buf)] = x
        self.count += 1
        return True
    def dequeue(self):
        if not self.count:
            return None
        x = self.buf[self.head]
        self.head = (self.head + 1) % len(self.buf)
        self.count -= 1
        return x
    def is_full(self):
        return self.count == len(self.buf)
# --- test
q = CircularQueue(2)
assert q.enqueue(1) is True
assert q.enqueue(2) is True
assert q.enqueue(3) is False
assert q.is_full()
assert q.dequeue() == 1
assert q.enqueue(3) and q.buf == [3, 2]
assert q.count == 2
# === bank_account_own_error
# settings: {"stateful": True}
class InsufficientFundsError(Exception):
    def __init__(self, balance, amount):
        super().__init__(f"Insufficient funds: balance {balance}, requested {amount}")
        self.balance = balance
        self.amount = amount
class BankAccount:
    def __init__(self, owner, balance=0):
        self.owner = owner
        self._balance = balance
    @property
    def balance(self):
        return self._balance
    def deposit(self, amount):
        if amount <= 0:
            raise ValueError("Deposit amount must be positive")
        self._balance += amount
    def withdraw(self, amount):
        if amount > self._balance:
            raise InsufficientFundsError(self._balance, amount)
        self._balance -= amount
# --- test
account = BankAccount("Alice", 100)
account.deposit(50)
assert account.balance == 150
account.withdraw(30)
assert account.balance == 120
# --- test
account = BankAccount("Bob", 10)
try:
    account.withdraw(20)
    assert False, "Should have raised"
except InsufficientFundsError as e:
    assert e.balance == 10 and e.amount == 20
    assert "Insufficient funds" in str(e)
# --- test
account = BankAccount("Bob")
try:
    account.balance = 5
    assert False
except AttributeError:
    pass
# === bank_transfer
# settings: {"stateful": True}
class Account:
    def __init__(self, number, balance):
        self.number, self.balance, self.history = number, balance, []
class Bank:
    def __init__(self):
        self.accounts = {}
    def open(self, number, balance=0):
        if number in self.accounts:
            raise KeyError("account exists")
        self.accounts[number] = Account(number, balance)
        return self.accounts[number]
    def transfer(self, a, b, amount):
        if self.accounts[a].balance < amount:
            return False
        self.accounts[a].balance -= amount
        self.accounts[b].balance += amount
        self.accounts[a].history.append(("out", amount))
        self.accounts[b].history.append(("in", amount))
        return True
    def total(self):
        return sum(account.balance for account in self.accounts.values())
# --- test
bank = Bank()
a = bank.open("A", 100)
b = bank.open("B")
assert bank.transfer("A", "B", 40)
assert a.balance == 60 and b.balance == 40
assert not bank.transfer("B", "A", 500)
assert bank.total() == 100
assert bank.accounts["B"].history == [("in", 40)]
assert bank.accounts["A"] is a
# === matrix_ops
# settings: {"stateful": True}
class Matrix:
    def __init__(self, rows):
        self.rows = [list(row) for row in rows]
    @property
    def shape(self):
        return len(self.rows), len(self.rows[0])
    def __add__(self, other):
        if self.shape != other.shape:
            raise ValueError("shapes do not match")
        return Matrix([[a + b for a, b in zip(r, s)] for r, s in zip(self.rows, other.rows)])
    def __mul__(self, other):
        if isinstance(other, (int, float)):
            return Matrix([[x * other for x in row] for row in self.rows])
        return Matrix([[sum(a * b for a, b in zip(row, col)) for col in zip(*other.rows)] for row in self.rows])
    __rmul__ = __mul__
    def transpose(self):
        return Matrix(zip(*self.rows))
    def __getitem__(self, at):
        return self.rows[at]
    def __eq__(self, other):
        return self.rows == other.rows
    @classmethod
    def identity(cls, n):
        return cls([[int(i == j) for j in range(n)] for i in range(n)])
# --- test
a = Matrix([[1, 2], [3, 4]])
b = Matrix([[5, 6], [7, 8]])
assert (a + b).rows == [[6, 8], [10, 12]]
assert (a * b).rows == [[19, 22], [43, 50]]
assert (a * 2).rows == [[2, 4], [6, 8]]
assert (2 * a).rows[1] == [6, 8]
# --- test
a = Matrix([[1, 2, 3]])
assert a.transpose().shape == (3, 1)
assert a.transpose()[2][0] == 3
assert a[0] == [1, 2, 3]
# --- test
i = Matrix.identity(2)
assert i.rows == [[1, 0], [0, 1]]
assert (i * Matrix([[4, 5], [6, 7]])).rows == [[4, 5], [6, 7]]
# --- test
try:
    Matrix([[1]]) + Matrix([[1, 2]])
    assert False
except ValueError as e:
    assert "shapes" in str(e)
# === singly_linked_list
# settings: {"stateful": True}
class Node:
    def __init__(self, data):
        self.data = data
        self.next = None
class LinkedList:
    def __init__(self):
        self.head = None
        self._size = 0
    def append(self, data):
        node = Node(data)
        if self.head is None:
            self.head = node
        else:
            current = self.head
            while current.next:
                current = current.next
            current.next = node
        self._size += 1
    def prepend(self, data):
        node = Node(data)
        node.next = self.head
        self.head = node
        self._size += 1
    def delete(self, data):
        before, current = None, self.head
        while current and current.data != data:
            before, current = current, current.next
        if current is None:
            return False
        if before is None:
            self.head = current.next
        else:
            before.next = current.next
        self._size -= 1
        return True
    def reverse(self):
        before, current = None, self.head
        while current:
            current.next, before, current = before, current, current.next
        self.head = before
    def __iter__(self):
        current = self.head
        while current:
            yield current.data
            current = current.next
    def __len__(self):
        return self._size
    def to_list(self):
        return list(self)
# --- test
ll = LinkedList()
assert ll.head is None and len(ll) == 0
ll.append(1)
ll.append(2)
ll.prepend(0)
assert ll.to_list() == [0, 1, 2]
assert ll.head.data == 0
assert ll.head.next.next.next is None
assert ll.delete(1) and not ll.delete(9)
assert list(ll) == [0, 2] and len(ll) == 2
# --- test
ll = LinkedList()
for x in "abc":
    ll.append(x)
ll.reverse()
assert [x for x in ll] == ["c", "b", "a"]
assert "b" in ll
node = ll.head
seen = []
while node is not None:
    seen.append(node.data)
    node = node.next
assert seen == ["c", "b", "a"]
# === doubly_linked_list
# settings: {"stateful": True}
class DNode:
    def __init__(self, value, prev=None, next=None):
        self.value, self.prev, self.next = value, prev, next
class DoublyLinkedList:
    def __init__(self, values=()):
        self.head = self.tail = None
        for value in values:
            self.append(value)
    def append(self, value):
        node = DNode(value, self.tail)
        if self.tail:
            self.tail.next = node
        else:
            self.head = node
        self.tail = node
        return node
    def remove(self, node):
        if node.prev:
            node.prev.next = node.next
        else:
            self.head = node.next
        if node.next:
            node.next.prev = node.prev
        else:
            self.tail = node.prev
    def __iter__(self):
        node = self.head
        while node:
            yield node.value
            node = node.next
    def __reversed__(self):
        node = self.tail
        while node:
            yield node.value
            node = node.prev
# --- test
d = DoublyLinkedList([1, 2, 3])
assert list(d) == [1, 2, 3] and list(reversed(d)) == [3, 2, 1]
middle = d.head.next
d.remove(middle)
assert list(d) == [1, 3]
assert d.tail.prev is d.head and d.head.next is d.tail
assert d.head.prev is None
# === lru_cache_nodes
# settings: {"stateful": True}
class LRUCache:
    class _Node:
        def __init__(self, key=0, value=0):
            self.key, self.value = key, value
    def __init__(self, capacity):
        if capacity <= 0:
            raise ValueError("capacity must be positive")
        self.capacity, self.map = capacity, {}
        self.head, self.tail = self._Node(), self._Node()
        self.head.next, self.tail.prev = self.tail, self.head
    def _remove(self, node):
        node.prev.next, node.next.prev = node.next, node.prev
    def _add(self, node):
        last = self.tail.prev
        last.next = self.tail.prev = node
        node.prev, node.next = last, self.tail
    def get(self, key):
        if key not in self.map:
            return -1
        node = self.map[key]
        self._remove(node)
        self._add(node)
        return node.value
    def put(self, key, value):
        if key in self.map:
            self._remove(self.map[key])
        node = self.map[key] = self._Node(key, value)
        self._add(node)
        if len(self.map) > self.capacity:
            oldest = self.head.next
            self._remove(oldest)
            del self.map[oldest.key]
# --- test
cache = LRUCache(2)
cache.put(1, 1)
cache.put(2, 2)
assert cache.get(1) == 1
cache.put(3, 3)
assert cache.get(2) == -1
cache.put(4, 4)
assert cache.get(1) == -1
assert cache.get(3) == 3
assert cache.get(4) == 4
assert len(cache.map) == 2
# --- test
try:
    LRUCache(0)
    assert False
except ValueError:
    assert True
# === lru_cache_hits
# settings: {"stateful": True}
from collections import OrderedDict
class Cache:
    def __init__(self, size):
        self.size, self._data, self.hits, self.misses = size, OrderedDict(), 0, 0
    def __getitem__(self, key):
        try:
            self._data.move_to_end(key)
            self.hits += 1
            return self._data[key]
        except KeyError:
            self.misses += 1
            raise
    def __setitem__(self, key, value):
        self._data[key] = value
        self._data.move_to_end(key)
        if len(self._data) > self.size:
            self._data.popitem(last=False)
    def __delitem__(self, key):
        del self._data[key]
    def __contains__(self, key):
        return key in self._data
    def __len__(self):
        return len(self._data)
# --- test
c = Cache(2)
c["a"] = 1
c["b"] = 2
assert c["a"] == 1
c["c"] = 3
assert "b" not in c and "a" in c
assert len(c) == 2
del c["a"]
assert "a" not in c
try:
    c["zzz"]
    assert False
except KeyError:
    pass
assert c.hits == 1 and c.misses == 1
# === fibonacci_iterator
# settings: {"stateful": True}
class Fibonacci:
    def __init__(self, limit):
        self.limit = limit
    def __iter__(self):
        self.a, self.b, self.n = 0, 1, 0
        return self
    def __next__(self):
        if self.n >= self.limit:
            raise StopIteration
        self.n += 1
        value, self.a, self.b = self.a, self.b, self.a + self.b
        return value
# --- test
assert list(Fibonacci(7)) == [0, 1, 1, 2, 3, 5, 8]
# --- test
f = Fibonacci(3)
assert [x for x in f] == [0, 1, 1]
assert sum(f) == 2
it = iter(f)
assert it is f
assert next(it) == 0 and next(it) == 1 and next(it) == 1
try:
    next(it)
    assert False
except StopIteration:
    pass
# === endless_iterator
# settings: {"stateful": True}
class Primes:
    def __iter__(self):
        n = 2
        while True:
            if all(n % d for d in range(2, int(n ** 0.5) + 1)):
                yield n
            n += 1
# --- test
from itertools import islice, takewhile
assert list(islice(Primes(), 5)) == [2, 3, 5, 7, 11]
assert list(takewhile(lambda p: p < 10, Primes())) == [2, 3, 5, 7]
it = iter(Primes())
assert [next(it) for _ in range(3)] == [2, 3, 5]
# === peekable
# settings: {"stateful": True}
class Peekable:
    def __init__(self, items):
        self._it, self._held = iter(items), []
    def __iter__(self):
        return self
    def __next__(self):
        return self._held.pop() if self._held else next(self._it)
    def peek(self, default=None):
        if not self._held:
            try:
                self._held.append(next(self._it))
            except StopIteration:
                return default
        return self._held[-1]
# --- test
p = Peekable([1, 2, 3])
assert p.peek() == 1
assert next(p) == 1
assert p.peek() == 2
assert list(p) == [2, 3]
assert p.peek("done") == "done"
# === timer_context
# settings: {"stateful": True}
class Managed:
    events = []
    def __init__(self, name):
        self.name = name
    def __enter__(self):
        self.events.append(f"enter {self.name}")
        return self
    def __exit__(self, exc_type, exc, tb):
        self.events.append(f"exit {self.name}" + (f" {exc_type.__name__}" if exc_type else ""))
        return exc_type is ValueError
# --- test
with Managed("a") as m:
    assert m.name == "a"
assert m.events == ["enter a", "exit a"]
# --- test
with Managed("b"):
    raise ValueError("swallowed")
assert Managed("c").events[-1] == "exit b ValueError"
# --- test
try:
    with Managed("d"):
        raise KeyError("passed on")
    assert False
except KeyError as e:
    assert e.args == ("passed on",)
# === transaction_context
# settings: {"stateful": True}
class Store:
    def __init__(self):
        self.data = {}
class Transaction:
    def __init__(self, store):
        self.store = store
    def __enter__(self):
        self.backup = dict(self.store.data)
        return self.store
    def __exit__(self, kind, value, trace):
        if kind is not None:
            self.store.data = self.backup
        return False
# --- test
s = Store()
with Transaction(s) as t:
    t.data = {"a": 1}
assert s.data == {"a": 1}
try:
    with Transaction(s) as t:
        t.data = {"b": 2}
        raise RuntimeError("abort")
except RuntimeError:
    pass
assert s.data == {"a": 1}
# === contextlib_generator
# settings: {"stateful": True, "entry_points": ("tag", "Log")}
from contextlib import contextmanager
class Log:
    lines = []
    def add(self, line):
        self.lines.append(line)
@contextmanager
def tag(name, log):
    log.add(f"<{name}>")
    yield name.upper()
    log.add(f"</{name}>")
# --- test
log = Log()
with tag("b", log) as t:
    assert t == "B"
    log.add("text")
assert log.lines == ["<b>", "text", "</b>"]
# === dataclass_point
# settings: {"stateful": True}
from dataclasses import dataclass
@dataclass
class Point:
    x: float
    y: float = 0.0
    def distance_to(self, other):
        return ((self.x - other.x) ** 2 + (self.y - other.y) ** 2) ** 0.5
# --- test
p = Point(3, 4)
assert p.x == 3 and p.y == 4
assert p.distance_to(Point(0, 0)) == 5.0
assert repr(p) == "Point(x=3, y=4)"
# --- test
assert Point(1, 2) == Point(1, 2)
assert Point(1, 2) != Point(2, 1)
assert Point(5) == Point(5, 0.0)
# === dataclass_order
# settings: {"stateful": True}
from dataclasses import dataclass, field
@dataclass(order=True)
class Task:
    priority: int
    name: str = field(compare=False)
    tags: list = field(default_factory=list, compare=False)
# --- test
tasks = [Task(3, "c"), Task(1, "a"), Task(2, "b")]
assert [t.name for t in sorted(tasks)] == ["a", "b", "c"]
assert min(tasks).name == "a" and max(tasks).priority == 3
assert Task(1, "x") < Task(2, "y")
assert not Task(2, "x") < Task(2, "y")
# --- test
a, b = Task(1, "a"), Task(1, "b")
a.tags.append("late")
assert b.tags == []
# --- test
import heapq
heap = []
for t in (Task(5, "low"), Task(1, "high")):
    heapq.heappush(heap, t)
assert heapq.heappop(heap).name == "high"
# === dataclass_frozen
# settings: {"stateful": True}
from dataclasses import dataclass, replace
@dataclass(frozen=True)
class Config:
    host: str = "localhost"
    port: int = 8080
    def with_port(self, port):
        return replace(self, port=port)
# --- test
c = Config()
assert (c.host, c.port) == ("localhost", 8080)
assert c.with_port(9000).port == 9000 and c.port == 8080
try:
    c.port = 1
    assert False
except Exception as e:
    assert type(e).__name__ == "FrozenInstanceError"
assert hash(Config()) == hash(Config("localhost", 8080))
assert Config().with_port(1) == Config(port=1)
# === dataclass_post_init
# settings: {"stateful": True}
from dataclasses import dataclass, asdict
@dataclass
class Rectangle:
    width: float
    height: float
    def __post_init__(self):
        if self.width <= 0 or self.height <= 0:
            raise ValueError("sides must be positive")
    @property
    def area(self):
        return self.width * self.height
def describe(rectangle):
    return asdict(rectangle)
# --- test
r = Rectangle(2, 3)
assert r.area == 6
assert describe(r) == {"width": 2, "height": 3}
r.width = 10
assert r.area == 30
# --- test
for bad in ((0, 1), (1, -1)):
    try:
        Rectangle(*bad)
    except ValueError as e:
        assert "positive" in str(e)
    else:
        assert False, bad
# === inventory_errors
# settings: {"stateful": True}
class OutOfStock(Exception):
    pass
class UnknownItem(KeyError):
    pass
class Inventory:
    def __init__(self):
        self._stock = {}
    def add(self, item, n=1):
        self._stock[item] = self._stock.get(item, 0) + n
    def remove(self, item, n=1):
        if item not in self._stock:
            raise UnknownItem(item)
        if self._stock[item] < n:
            raise OutOfStock(f"only {self._stock[item]} left")
        self._stock[item] -= n
    def count(self, item):
        return self._stock.get(item, 0)
# --- test
inv = Inventory()
inv.add("apple", 5)
inv.remove("apple", 2)
assert inv.count("apple") == 3
assert inv.count("pear") == 0
assert inv._stock == {"apple": 3}
# --- test
inv = Inventory()
inv.add("apple")
try:
    inv.remove("apple", 2)
except OutOfStock as e:
    assert str(e) == "only 1 left"
else:
    assert False
try:
    inv.remove("pear")
except UnknownItem as e:
    assert isinstance(e, KeyError)
    assert e.args[0] == "pear"
else:
    assert False
# === error_hierarchy
# settings: {"stateful": True}
class AppError(Exception):
    code = 500
class NotFound(AppError):
    code = 404
class Forbidden(AppError):
    code = 403
def handle(path):
    if path == "/secret":
        raise Forbidden(path)
    if path != "/":
        raise NotFound(path)
    return "ok"
# --- test
assert handle("/") == "ok"
codes = []
for path in ("/secret", "/nope"):
    try:
        handle(path)
    except AppError as e:
        codes.append(e.code)
assert codes == [403, 404]
assert issubclass(NotFound, AppError)
# --- test
try:
    handle("/x")
except Forbidden:
    assert False
except NotFound as e:
    assert e.args == ("/x",)
# === validation_error
# settings: {"stateful": True}
class ValidationError(ValueError):
    def __init__(self, field, message):
        super().__init__(message)
        self.field = field
        self.message = message
class User:
    def __init__(self, name, age):
        if not name:
            raise ValidationError("name", "must not be empty")
        if not 0 <= age <= 150:
            raise ValidationError("age", "out of range")
        self.name, self.age = name, age
# --- test
u = User("Ann", 30)
assert u.name == "Ann" and u.age == 30
# --- test
try:
    User("", 1)
    assert False
except ValidationError as e:
    assert e.field == "name"
try:
    User("Bob", 200)
    assert False
except ValueError as e:
    assert e.field == "age" and str(e) == "out of range"
# === temperature_static_and_class_methods
# settings: {"stateful": True}
class Temperature:
    ABSOLUTE_ZERO = -273.15
    count = 0
    def __init__(self, celsius):
        if celsius < self.ABSOLUTE_ZERO:
            raise ValueError("below absolute zero")
        self.celsius = celsius
        Temperature.count += 1
    @classmethod
    def from_fahrenheit(cls, f):
        return cls((f - 32) * 5 / 9)
    @staticmethod
    def is_freezing(celsius):
        return celsius <= 0
    @property
    def fahrenheit(self):
        return self.celsius * 9 / 5 + 32
    @fahrenheit.setter
    def fahrenheit(self, f):
        self.celsius = (f - 32) * 5 / 9
# --- test
t = Temperature(25)
assert t.fahrenheit == 77.0
t.fahrenheit = 32
assert t.celsius == 0
# --- test
t = Temperature.from_fahrenheit(212)
assert abs(t.celsius - 100) < 1e-9
assert Temperature.is_freezing(-1) and not Temperature.is_freezing(1)
assert Temperature.ABSOLUTE_ZERO == -273.15
# --- test
before = Temperature.count
Temperature(1)
assert Temperature.count == before + 1
# --- test
try:
    Temperature(-300)
    assert False
except ValueError:
    pass
# === instance_counter
# settings: {"stateful": True}
class Employee:
    _count = 0
    raise_amount = 1.5
    def __init__(self, first, last, pay):
        self.first, self.last, self.pay = first, last, pay
        Employee._count += 1
    @property
    def email(self):
        return f"{self.first}.{self.last}@company.com".lower()
    @classmethod
    def from_string(cls, text):
        first, last, pay = text.split("-")
        return cls(first, last, int(pay))
    @classmethod
    def get_count(cls):
        return cls._count
    def apply_raise(self):
        self.pay = int(self.pay * self.raise_amount)
# --- test
Employee._count = 0
e = Employee("Ann", "Lee", 1000)
assert e.email == "ann.lee@company.com"
e.apply_raise()
assert e.pay == 1500
assert Employee.get_count() == 1
e2 = Employee.from_string("Bob-Ray-70")
assert e2.first == "Bob" and e2.pay == 70
assert Employee.get_count() == 2
# === date_parse
# settings: {"stateful": True}
class SimpleDate:
    def __init__(self, year, month, day):
        if not self.is_valid(year, month, day):
            raise ValueError(f"invalid date: {year}-{month}-{day}")
        self.year, self.month, self.day = year, month, day
    @staticmethod
    def is_valid(year, month, day):
        return 1 <= month <= 12 and 1 <= day <= 31
    @classmethod
    def parse(cls, text):
        return cls(*map(int, text.split("-")))
    def __str__(self):
        return f"{self.year:04d}-{self.month:02d}-{self.day:02d}"
    def __lt__(self, other):
        return (self.year, self.month, self.day) < (other.year, other.month, other.day)
# --- test
d = SimpleDate.parse("2024-03-09")
assert (d.year, d.month, d.day) == (2024, 3, 9)
assert str(d) == "2024-03-09"
assert f"{d}" == "2024-03-09"
assert SimpleDate(2020, 1, 1) < SimpleDate(2021, 1, 1)
assert not SimpleDate.is_valid(2020, 13, 1)
# --- test
try:
    SimpleDate(2020, 0, 1)
    assert False
except ValueError as e:
    assert str(e) == "invalid date: 2020-0-1"
# === vector_2d
# settings: {"stateful": True}
import math
class Vector2D:
    def __init__(self, x, y):
        self.x, self.y = x, y
    def __add__(self, o): return Vector2D(self.x + o.x, self.y + o.y)
    def __sub__(self, o): return Vector2D(self.x - o.x, self.y - o.y)
    def __mul__(self, k): return Vector2D(self.x * k, self.y * k)
    __rmul__ = __mul__
    def __neg__(self): return Vector2D(-self.x, -self.y)
    def __abs__(self): return math.hypot(self.x, self.y)
    def __eq__(self, o): return isinstance(o, Vector2D) and (self.x, self.y) == (o.x, o.y)
    def __repr__(self): return f"Vector2D({self.x}, {self.y})"
    def dot(self, o): return self.x * o.x + self.y * o.y
# --- test
v = Vector2D(1, 2) + Vector2D(3, 4)
assert v.x == 4 and v.y == 6
assert v == Vector2D(4, 6)
# --- test
assert Vector2D(5, 5) - Vector2D(2, 3) == Vector2D(3, 2)
assert abs(Vector2D(3, 4)) == 5.0
assert Vector2D(1, 2).dot(Vector2D(3, 4)) == 11
# --- test
assert Vector2D(1, 2) * 3 == Vector2D(3, 6)
assert 3 * Vector2D(1, 2) == Vector2D(3, 6)
assert -Vector2D(1, -2) == Vector2D(-1, 2)
# --- test
assert repr(Vector2D(1, 2)) == "Vector2D(1, 2)"
# === fraction_own
# settings: {"stateful": True}
from math import gcd
class Fraction:
    def __init__(self, num, den=1):
        if den == 0:
            raise ZeroDivisionError("denominator is zero")
        g = gcd(num, den) * (1 if den > 0 else -1)
        self.num, self.den = num // g, den // g
    def __add__(self, o): return Fraction(self.num * o.den + o.num * self.den, self.den * o.den)
    def __mul__(self, o): return Fraction(self.num * o.num, self.den * o.den)
    def __truediv__(self, o): return Fraction(self.num * o.den, self.den * o.num)
    def __eq__(self, o): return (self.num, self.den) == (o.num, o.den)
    def __lt__(self, o): return self.num * o.den < o.num * self.den
    def __str__(self): return f"{self.num}/{self.den}"
    def __float__(self): return self.num / self.den
# --- test
f = Fraction(1, 2) + Fraction(1, 3)
assert str(f) == "5/6"
assert f.num == 5 and f.den == 6
assert float(Fraction(1, 4)) == 0.25
assert str(Fraction(2, 4)) == "1/2"
assert Fraction(1, 3) < Fraction(1, 2)
# --- test
assert Fraction(1, 2) * Fraction(2, 3) == Fraction(1, 3)
assert Fraction(2, 4) == Fraction(1, 2)
# --- test
try:
    Fraction(1, 0)
    assert False
except ZeroDivisionError:
    pass
# === money_currency
# settings: {"stateful": True}
class CurrencyMismatch(Exception):
    pass
class Money:
    def __init__(self, amount, currency="USD"):
        self.amount, self.currency = round(amount, 2), currency
    def _check(self, other):
        if self.currency != other.currency:
            raise CurrencyMismatch(f"{self.currency} and {other.currency}")
    def __add__(self, other):
        self._check(other)
        return Money(self.amount + other.amount, self.currency)
    def __eq__(self, other):
        return isinstance(other, Money) and (self.amount, self.currency) == (other.amount, other.currency)
    def __hash__(self):
        return hash((self.amount, self.currency))
    def __lt__(self, other):
        self._check(other)
        return self.amount < other.amount
    def __str__(self):
        return f"{self.amount:.2f} {self.currency}"
# --- test
m = Money(5) + Money(2.5)
assert m.amount == 7.5 and str(m) == "7.50 USD"
assert m == Money(7.5)
# --- test
try:
    Money(1, "USD") + Money(1, "EUR")
    assert False
except CurrencyMismatch as e:
    assert "EUR" in str(e)
# --- test
assert Money(1) < Money(2)
assert Money(1) != Money(1, "EUR")
assert len({Money(1), Money(1), Money(2)}) == 2
# === polynomial
# settings: {"stateful": True}
class Polynomial:
    def __init__(self, *coefficients):
        self.coefficients = list(coefficients)
    def __call__(self, x):
        return sum(c * x ** i for i, c in enumerate(self.coefficients))
    def __add__(self, other):
        n = max(len(self.coefficients), len(other.coefficients))
        a = self.coefficients + [0] * (n - len(self.coefficients))
        b = other.coefficients + [0] * (n - len(other.coefficients))
        return Polynomial(*[x + y for x, y in zip(a, b)])
    def derivative(self):
        return Polynomial(*[i * c for i, c in enumerate(self.coefficients)][1:])
    def degree(self):
        return len(self.coefficients) - 1
    def __eq__(self, other):
        return self.coefficients == other.coefficients
    def __str__(self):
        return " + ".join(f"{c}x^{i}" for i, c in enumerate(self.coefficients) if c)
# --- test
p = Polynomial(1, 2, 3)
assert p(0) == 1 and p(2) == 17
assert p.degree() == 2
assert p.derivative().coefficients == [2, 6]
assert str(p) == "1x^0 + 2x^1 + 3x^2"
# --- test
q = Polynomial(1, 2) + Polynomial(0, 0, 4)
assert q.coefficients == [1, 2, 4]
assert q == Polynomial(1, 2, 4)
# === card_ordering
# settings: {"stateful": True}
from functools import total_ordering
@total_ordering
class Card:
    RANKS = "23456789TJQKA"
    def __init__(self, rank, suit):
        self.rank, self.suit = rank, suit
    def _value(self): return self.RANKS.index(self.rank)
    def __eq__(self, other): return self._value() == other._value()
    def __lt__(self, other): return self._value() < other._value()
    def __repr__(self): return self.rank + self.suit
# --- test
cards = [Card("K", "s"), Card("2", "h"), Card("A", "d")]
assert [repr(c) for c in sorted(cards)] == ["2h", "Ks", "Ad"]
assert repr(max(cards)) == "Ad"
assert Card("3", "h") < Card("4", "h")
assert Card("A", "h") > Card("K", "h")
assert Card("3", "h") <= Card("4", "d")
# === deck_of_cards
# settings: {"stateful": True}
import random
class Deck:
    def __init__(self):
        self.cards = [(rank, suit) for suit in "SHDC" for rank in range(1, 14)]
    def shuffle(self, seed=None):
        random.Random(seed).shuffle(self.cards)
    def deal(self, n=1):
        if n > len(self.cards):
            raise ValueError("not enough cards")
        hand, self.cards = self.cards[:n], self.cards[n:]
        return hand
    def __len__(self):
        return len(self.cards)
    def __getitem__(self, at):
        return self.cards[at]
# --- test
d = Deck()
assert len(d) == 52
assert d[0] == (1, "S") and d[-1] == (13, "C")
hand = d.deal(5)
assert len(hand) == 5 and len(d) == 47
assert len(set(d)) == 47
# --- test
d = Deck()
d.shuffle(1)
assert sorted(d.cards) == sorted(Deck().cards)
try:
    d.deal(53)
    assert False
except ValueError:
    pass
