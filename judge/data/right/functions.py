# === match_as_truth
import re
def is_email(text):
    return re.fullmatch(r"[\w.]+@[\w.]+\.\w+", text)
# --- test
assert is_email("a.b@c.org")
# --- test
assert not is_email("nobody")
# --- test
assert bool(is_email("x@y.z")) is True
# === search_as_truth
import re
def has_vowel(text): return re.search("[aeiou]", text)
# --- test
assert has_vowel("hello") and not has_vowel("rhythm")
# === object_as_truth
class Result:
    def __init__(self, ok): self.ok = ok
    def __bool__(self): return self.ok
def check(x): return Result(x > 0)
# --- test
assert check(1)
# --- test
assert not check(-1)
# --- test
assert (check(1) and True) is True
# === truth_by_length
class Basket:
    def __init__(self, n): self.n = n
    def __len__(self): return self.n
def basket(n): return Basket(n)
# --- test
assert basket(2) and not basket(0)
# === set_operations_as_truth
def common(a, b): return set(a) & set(b)
# --- test
assert common([1, 2], [2]) and not common([1], [2])
# === same_list_back
def rotate(a, k):
    k %= len(a)
    a[:] = a[-k:] + a[:-k]
    return a
# --- test
a = [1, 2, 3]
assert rotate(a, 1) is a and a == [3, 1, 2]
# === same_dictionary_back
def count(words, into):
    for word in words:
        into[word] = into.get(word, 0) + 1
    return into
# --- test
d = {}
assert count(["a", "a"], d) is d and d == {"a": 2}
# === same_list_of_lists_back
def transpose(m):
    for i in range(len(m)):
        for j in range(i):
            m[i][j], m[j][i] = m[j][i], m[i][j]
    return m
# --- test
m = [[1, 2], [3, 4]]
r = transpose(m)
assert r is m and m == [[1, 3], [2, 4]]
# === copy_is_another
def sorted_copy(a): return sorted(a)
# --- test
a = [2, 1]
b = sorted_copy(a)
assert b is not a and a == [2, 1] and b == [1, 2]
# === set_updated_in_place
def add_all(s, items):
    s |= set(items)
    return s
# --- test
s = {1}
assert add_all(s, [2]) is s and s == {1, 2}
# === rows_not_shared
def grid(n): return [[0] * n for _ in range(n)]
# --- test
g = grid(2)
g[0][0] = 1
assert g == [[1, 0], [0, 0]]
# === two_hundred_thousand_numbers
def prefix(a):
    out, total = [], 0
    for x in a:
        total += x
        out.append(total)
    return out
# --- test
r = prefix([1] * 200_000)
assert len(r) == 200_000 and r[-1] == 200_000
# === two_hundred_thousand_pairs
def pairs(n): return [(i, i * i) for i in range(n)]
# --- test
r = pairs(100_000)
assert r[-1] == (99_999, 99_999 ** 2)
# === long_dictionary
def squares(n): return {i: i * i for i in range(n)}
# --- test
assert squares(150_000)[149_999] == 149_999 ** 2
# === large_sieve
def primes(n):
    sieve = bytearray([1]) * (n + 1)
    sieve[:2] = b"\0\0"
    for i in range(2, int(n ** 0.5) + 1):
        if sieve[i]:
            sieve[i * i :: i] = bytes(len(range(i * i, n + 1, i)))
    return [i for i, p in enumerate(sieve) if p]
# --- test
assert len(primes(1_000_000)) == 78498
# === half_a_million_characters
def repeat(text, n): return text * n
# --- test
assert len(repeat("ab", 500_000)) == 1_000_000
# === exception_with_own_text
class ParseError(ValueError):
    def __init__(self, line, why):
        self.line, self.why = line, why
    def __str__(self):
        return f"line {self.line}: {self.why}"
def parse(text):
    for number, line in enumerate(text.splitlines(), 1):
        if "=" not in line:
            raise ParseError(number, "no value")
    return True
# --- test
assert parse("a=1")
# --- test
try:
    parse("a=1\nb")
    assert False
except ValueError as e:
    assert str(e) == "line 2: no value"
# === exception_by_name
class EmptyInput(Exception):
    """Nothing was given."""
def first(items):
    if not items:
        raise EmptyInput("no items")
    return items[0]
# --- test
try:
    first([])
    assert False
except Exception as e:
    assert type(e).__name__ == "EmptyInput" and "no items" in str(e)
# --- test
assert first("ab") == "a"
# === exception_message_from_super
class TooLong(Exception):
    def __init__(self, limit):
        super().__init__(f"longer than {limit}")
        self.limit = limit
def check(text, limit):
    if len(text) > limit:
        raise TooLong(limit)
    return text
# --- test
try:
    check("abc", 2)
    assert False
except Exception as e:
    assert str(e) == "longer than 2"
# === key_error_text
class Missing(KeyError):
    def __str__(self): return f"no {self.args[0]}"
def lookup(d, k):
    if k not in d:
        raise Missing(k)
    return d[k]
# --- test
try:
    lookup({}, "x")
    assert False
except KeyError as e:
    assert str(e) == "no x"
# === assert_raises_in_unittest
def reciprocal(x):
    if x == 0:
        raise ZeroDivisionError("no reciprocal")
    return 1 / x
# --- test
import unittest
case = unittest.TestCase()
with case.assertRaises(ZeroDivisionError):
    assert reciprocal(0) == 0
assert reciprocal(4) == 0.25
# --- test
import unittest
case = unittest.TestCase()
with case.assertRaisesRegex(ZeroDivisionError, "no recip"):
    assert reciprocal(0) is None
# === closures_and_callables
def make_adder(n):
    return lambda x: x + n
def compose(n): return make_adder(n)(10)
# --- test
assert compose(5) == 15
# === unpacking_and_walrus
def stats(*values, **weights):
    total = sum(w * v for v, w in zip(values, weights.values()))
    return total if (n := sum(weights.values())) == 0 else total / n
# --- test
assert stats(1, 3, a=1, b=1) == 2.0
# === match_statement
def area(shape):
    match shape:
        case {"kind": "circle", "r": r}: return round(3.14159 * r * r, 2)
        case ["rect", w, h]: return w * h
        case _: return None
# --- test
assert area({"kind": "circle", "r": 1}) == 3.14 and area(["rect", 2, 3]) == 6 and area("?") is None
# === n_queens
def queens(n):
    def place(row, cols, a, b):
        if row == n: return 1
        return sum(place(row + 1, cols | {c}, a | {row - c}, b | {row + c})
                   for c in range(n) if c not in cols and row - c not in a and row + c not in b)
    return place(0, frozenset(), frozenset(), frozenset())
# --- test
assert queens(6) == 4
# === sudoku_checker
def valid(board):
    units = [[(r, c) for c in range(9)] for r in range(9)] + [[(r, c) for r in range(9)] for c in range(9)]
    units += [[(r + i, c + j) for i in range(3) for j in range(3)] for r in (0, 3, 6) for c in (0, 3, 6)]
    for unit in units:
        seen = [board[r][c] for r, c in unit if board[r][c] != "."]
        if len(seen) != len(set(seen)):
            return False
    return True
# --- test
b = [["."] * 9 for _ in range(9)]
b[0][0] = b[8][8] = "5"
assert valid(b)
b[1][1] = "5"
assert not valid(b)
# === knapsack
def knapsack(items, room):
    best = [0] * (room + 1)
    for weight, value in items:
        for w in range(room, weight - 1, -1):
            best[w] = max(best[w], best[w - weight] + value)
    return best[room]
# --- test
assert knapsack([(1, 1), (3, 4), (4, 5), (5, 7)], 7) == 9
# === edit_distance
from functools import lru_cache
def distance(a, b):
    @lru_cache(None)
    def d(i, j):
        if not i or not j: return i + j
        return min(d(i - 1, j) + 1, d(i, j - 1) + 1, d(i - 1, j - 1) + (a[i - 1] != b[j - 1]))
    return d(len(a), len(b))
# --- test
assert distance("kitten", "sitting") == 3
# === roman_numerals
def to_roman(n):
    table = [(1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"),
             (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]
    out = ""
    for value, digits in table:
        while n >= value:
            out, n = out + digits, n - value
    return out
# --- test
assert to_roman(1994) == "MCMXCIV" and to_roman(3888) == "MMMDCCCLXXXVIII"
# === spiral
def spiral(m):
    out = []
    while m:
        out += m[0]
        m = [list(r) for r in zip(*m[1:])][::-1]
    return out
# --- test
assert spiral([[1, 2, 3], [4, 5, 6], [7, 8, 9]]) == [1, 2, 3, 6, 9, 8, 7, 4, 5]
# === shunting_yard
def rpn(text):
    out, stack, order = [], [], {"+": 1, "-": 1, "*": 2, "/": 2}
    for token in text.split():
        if token in order:
            while stack and stack[-1] != "(" and order[stack[-1]] >= order[token]:
                out.append(stack.pop())
            stack.append(token)
        elif token == "(":
            stack.append(token)
        elif token == ")":
            while (top := stack.pop()) != "(":
                out.append(top)
        else:
            out.append(token)
    return " ".join(out + stack[::-1])
# --- test
assert rpn("3 + 4 * ( 2 - 1 )") == "3 4 2 1 - * +"
# === deep_recursion
import sys
sys.setrecursionlimit(20_000)
def depth(n): return 0 if n == 0 else 1 + depth(n - 1)
# --- test
assert depth(5_000) == 5_000
# === big_integers
def fact(n): return 1 if n < 2 else n * fact(n - 1)
def power(a, b, m): return pow(a, b, m)
# --- test
assert fact(60) % 10**9 == 0 and len(str(fact(200))) == 375 and power(3, 10**18, 10**9 + 7) == 246336683
# === tuples_and_frozensets_nested
def partitions(n, most=None):
    if n == 0: return {()}
    return {(k, *rest) for k in range(min(n, most or n), 0, -1) for rest in partitions(n - k, k)}
# --- test
assert partitions(4) == {(4,), (3, 1), (2, 2), (2, 1, 1), (1, 1, 1, 1)}
# === class_inside_only
class Parser:
    def __init__(self, text): self.text, self.at = text, 0
    def value(self):
        start = self.at
        while self.at < len(self.text) and self.text[self.at].isdigit():
            self.at += 1
        return int(self.text[start:self.at])
    def sum(self):
        total = self.value()
        while self.at < len(self.text):
            self.at += 1
            total += self.value()
        return total
def add_up(text): return Parser(text).sum()
# --- test
assert add_up("1+20+3") == 24
# === prints_while_it_works
def noisy(n):
    print("working on", n)
    for i in range(3): print("." * i)
    return n + 1
# --- test
assert noisy(1) == 2
# === main_guard
def greet(name): return f"Hello, {name}!"
if __name__ == "__main__":
    print(greet(input()))
# --- test
assert greet("you") == "Hello, you!"
# === subclass_results_as_builtins
from collections import Counter, OrderedDict, defaultdict, namedtuple
Pair = namedtuple("Pair", "a b")
def kinds(): return Counter("aab"), defaultdict(list, x=[1]), OrderedDict(b=1), Pair(1, 2)
# --- test
assert kinds() == ({"a": 2, "b": 1}, {"x": [1]}, {"b": 1}, (1, 2))
