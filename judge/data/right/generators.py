# === endless_primes
def primes():
    found, n = [], 2
    while True:
        if all(n % p for p in found):
            found.append(n)
            yield n
        n += 1
# --- test
g = primes()
assert [next(g) for _ in range(5)] == [2, 3, 5, 7, 11]
# --- test
from itertools import islice
assert list(islice(primes(), 40))[-1] == 173
# --- test
for p in primes():
    if p > 30:
        break
assert p == 31
# === fibonacci_takewhile
from itertools import count
def fib():
    a, b = 0, 1
    for _ in count():
        yield a
        a, b = b, a + b
# --- test
from itertools import takewhile
assert list(takewhile(lambda x: x < 30, fib())) == [0, 1, 1, 2, 3, 5, 8, 13, 21]
# === perfect_numbers_slow_tail
def perfect():
    n = 2
    while True:
        if sum(d for d in range(1, n // 2 + 1) if n % d == 0) == n:
            yield n
        n += 1
# --- test
p = perfect()
assert [next(p) for _ in range(3)] == [6, 28, 496]
# === cycle_of_a_list
from itertools import cycle
def colours(names):
    return cycle(names)
# --- test
c = colours(["r", "g"])
assert [next(c) for _ in range(5)] == ["r", "g", "r", "g", "r"]
# === count_by_step
import itertools
def steps(start, by):
    return itertools.count(start, by)
# --- test
s = steps(10, 5)
assert next(s) == 10 and next(s) == 15
assert sum(x for x, _ in zip(s, range(3))) == 20 + 25 + 30
# === map_filter_zip
def even_squares(n):
    return map(lambda x: x * x, filter(lambda x: x % 2 == 0, range(n)))
def pairs(a, b):
    return zip(a, b)
# --- test
assert list(even_squares(7)) == [0, 4, 16, 36]
# --- test
assert dict(pairs("ab", [1, 2])) == {"a": 1, "b": 2}
# === generator_pipeline
def read(lines):
    for line in lines:
        yield line.strip()
def numbers(lines):
    for line in lines:
        if line.isdigit():
            yield int(line)
# --- test
assert list(numbers(read([" 1 ", "x", "22"]))) == [1, 22]
# --- test
assert sum(numbers(read(str(i) for i in range(50)))) == 1225
# === iterator_given_on_endless
from itertools import islice
def naturals():
    n = 0
    while True:
        yield n
        n += 1
def take(n, items):
    return list(islice(items, n))
# --- test
assert take(3, naturals()) == [0, 1, 2]
# --- test
g = naturals()
assert next(g) == 0 and take(2, g) == [1, 2] and next(g) == 3
# === views_given_on
def invert(d):
    return {v: k for k, v in d.items()}
def keys(d):
    return d.keys()
def longest(words):
    return max(words, key=len)
# --- test
assert longest(keys({"a": 1, "abc": 2})) == "abc"
# --- test
assert sorted(keys({"b": 1, "a": 2})) == ["a", "b"] and "a" in keys({"a": 1})
# --- test
assert keys({}) is not None and not keys({})
# === chunks
def chunks(items, n):
    for i in range(0, len(items), n):
        yield items[i:i + n]
# --- test
assert list(chunks([1, 2, 3, 4, 5], 2)) == [[1, 2], [3, 4], [5]]
# --- test
assert [len(c) for c in chunks("x" * 100, 7)] == [7] * 14 + [2]
# === flatten_recursively
def flatten(items):
    for item in items:
        if isinstance(item, (list, tuple)):
            yield from flatten(item)
        else:
            yield item
# --- test
assert list(flatten([1, [2, (3, [4])], 5])) == [1, 2, 3, 4, 5]
# === permutations_lazy
def permutations(items):
    if not items:
        yield []
    for i, item in enumerate(items):
        for rest in permutations(items[:i] + items[i + 1:]):
            yield [item] + rest
# --- test
assert list(permutations([1, 2, 3]))[3] == [2, 3, 1]
# --- test
assert sum(1 for _ in permutations(list(range(6)))) == 720
# --- test
assert next(permutations(list(range(50)))) == list(range(50))
# === sliding_window_deque
from collections import deque
def windows(items, n):
    window = deque(maxlen=n)
    for item in items:
        window.append(item)
        if len(window) == n:
            yield tuple(window)
# --- test
assert list(windows("abcd", 2)) == [("a", "b"), ("b", "c"), ("c", "d")]
# === raises_in_the_middle
def countdown(n):
    while True:
        if n < 0:
            raise ValueError("below zero")
        yield n
        n -= 1
# --- test
out = []
try:
    for x in countdown(2):
        out.append(x)
    assert False
except ValueError as e:
    assert str(e) == "below zero"
assert out == [2, 1, 0]
# === collatz_stops
def collatz(n):
    yield n
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        yield n
# --- test
assert list(collatz(6)) == [6, 3, 10, 5, 16, 8, 4, 2, 1]
# --- test
assert sum(1 for _ in collatz(27)) == 112
# === merge_of_sorted
import heapq
def merged(*lists):
    return heapq.merge(*lists)
# --- test
assert list(merged([1, 4], [2, 3], [0])) == [0, 1, 2, 3, 4]
# === groupby_runs
from itertools import groupby
def runs(text):
    return ((ch, len(list(group))) for ch, group in groupby(text))
# --- test
assert list(runs("aabc")) == [("a", 2), ("b", 1), ("c", 1)]
# === reversed_and_enumerate
def backwards(items): return reversed(items)
def numbered(items): return enumerate(items, 1)
# --- test
assert list(backwards([1, 2, 3])) == [3, 2, 1]
# --- test
assert dict(numbered("ab")) == {1: "a", 2: "b"}
# === regex_iterator
import re
def words(text):
    return (m.group() for m in re.finditer(r"\w+", text))
# --- test
assert list(words("to be, or")) == ["to", "be", "or"]
# === pascal_rows
def pascal():
    row = [1]
    while True:
        yield row
        row = [a + b for a, b in zip([0] + row, row + [0])]
# --- test
rows = pascal()
assert [next(rows) for _ in range(4)] == [[1], [1, 1], [1, 2, 1], [1, 3, 3, 1]]
# === own_iterator_class_without_state_asked
class Squares:
    def __init__(self, n): self.i, self.n = 0, n
    def __iter__(self): return self
    def __next__(self):
        if self.i >= self.n: raise StopIteration
        self.i += 1
        return self.i ** 2
def squares(n): return Squares(n)
# --- test
assert list(squares(4)) == [1, 4, 9, 16]
# --- test
assert 9 in squares(5) and max(squares(3)) == 9
# === two_generators_interleaved
def multiples(k):
    n = k
    while True:
        yield n
        n += k
# --- test
a, b = multiples(2), multiples(3)
assert [(next(a), next(b)) for _ in range(3)] == [(2, 3), (4, 6), (6, 9)]
# === tee_and_pairwise
from itertools import tee
def pairwise(items):
    a, b = tee(items)
    next(b, None)
    return zip(a, b)
# --- test
assert list(pairwise([1, 2, 3])) == [(1, 2), (2, 3)]
# --- test
assert list(pairwise(iter("abc"))) == [("a", "b"), ("b", "c")]
# === long_finite
def squares(n):
    for i in range(n):
        yield i * i
# --- test
assert sum(squares(100_000)) == sum(i * i for i in range(100_000))
# === empty_generator
def nothing():
    return
    yield
# --- test
assert list(nothing()) == [] and next(nothing(), "none") == "none"
# === random_walk_seeded
import random
def walk(seed):
    rng, x = random.Random(seed), 0
    while True:
        x += rng.choice((-1, 1))
        yield x
# --- test
w = walk(3)
steps = [next(w) for _ in range(100)]
assert all(abs(a - b) == 1 for a, b in zip(steps, steps[1:]))
# === coroutine_with_send
def averager():
    total = count = 0
    average = None
    while True:
        total += yield average
        count += 1
        average = total / count
# --- test
a = averager()
next(a)
assert a.send(10) == 10 and a.send(20) == 15
# === list_of_generators
def tables(n):
    def row(i):
        for j in range(1, 4):
            yield i * j
    return [row(i) for i in range(1, n + 1)]
# --- test
assert [list(row) for row in tables(2)] == [[1, 2, 3], [2, 4, 6]]
