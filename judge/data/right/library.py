# === every_module
import importlib, sys
SKIPPED = {"antigravity", "this", "idlelib", "lib2to3", "tkinter", "turtle", "turtledemo", "ensurepip", "test", "curses",
           "nis", "ossaudiodev", "readline", "spwd", "crypt", "msilib", "winreg", "winsound", "msvcrt", "nt", "dbm"}
OPTIONAL = {"_curses", "sqlite3", "lzma", "bz2", "ssl"}
def missing():
    found = []
    for name in sorted(sys.stdlib_module_names - SKIPPED - OPTIONAL):
        if not name.startswith("_"):
            try:
                importlib.import_module(name)
            except ImportError as error:
                found.append(f"{name}: {error}")
    return found
# --- test
assert missing() == []
# === every_codec
import codecs
NAMES = """ascii big5 cp037 cp1250 cp1251 cp1252 cp437 cp850 cp932 euc_jp euc_kr gb18030 gbk hex idna iso2022_jp iso8859_1
iso8859_15 koi8_r koi8_u latin_1 mac_roman punycode raw_unicode_escape rot13 shift_jis unicode_escape utf_16 utf_16_be
utf_32 utf_7 utf_8_sig base64 bz2 quopri uu zlib""".split()
def missing():
    out = []
    for name in NAMES:
        try:
            codecs.lookup(name)
        except LookupError:
            out.append(name)
    return out
# --- test
assert missing() == []
# === round_trips_of_codecs
def mojibake(text, wrong):
    return text.encode("utf-8").decode(wrong)
def caesar(text):
    import codecs
    return codecs.encode(text, "rot13")
# --- test
assert mojibake("é", "latin-1") == "Ã©" and mojibake("é", "cp1252") == "Ã©"
# --- test
assert caesar("Hello") == "Uryyb"
# === regex_log_parser
import re
from collections import defaultdict
LINE = re.compile(r"(?P<ip>\d+(?:\.\d+){3}) .*? \"(?P<verb>[A-Z]+) (?P<path>\S+)")
def hits(lines):
    out = defaultdict(list)
    for line in lines:
        if m := LINE.match(line):
            out[m["ip"]].append((m["verb"], m["path"]))
    return out
# --- test
assert hits(['1.2.3.4 - - "GET /a HTTP/1.1"', "noise"]) == {"1.2.3.4": [("GET", "/a")]}
# === calendar_and_dates
import calendar
from datetime import date, datetime, timedelta
def workdays(a, b):
    return sum((a + timedelta(i)).weekday() < 5 for i in range((b - a).days))
def last_friday(y, m):
    return max(w[calendar.FRIDAY] for w in calendar.monthcalendar(y, m))
def parse(text):
    return datetime.strptime(text, "%d %b %Y %H:%M").isoformat()
# --- test
from datetime import date
assert workdays(date(2024, 1, 1), date(2024, 1, 8)) == 5
# --- test
assert last_friday(2024, 5) == 31 and parse("03 Feb 2021 04:05") == "2021-02-03T04:05:00"
# === time_zones
from datetime import datetime
from zoneinfo import ZoneInfo
def in_tokyo(text):
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo("UTC")).astimezone(ZoneInfo("Asia/Tokyo")).hour
# --- test
assert in_tokyo("2024-06-01T20:00:00") == 5
# === hashing_and_base64
import base64, hashlib, hmac, zlib
def digests(text):
    data = text.encode()
    return {"md5": hashlib.md5(data).hexdigest()[:8], "sha": hashlib.sha256(data).hexdigest()[:8],
            "b64": base64.b64encode(data).decode(), "crc": zlib.crc32(data),
            "mac": hmac.new(b"k", data, "sha1").hexdigest()[:6]}
# --- test
d = digests("abc")
assert d["md5"] == "90015098" and d["sha"] == "ba7816bf" and d["b64"] == "YWJj" and d["crc"] == 891568578
# === statistics_and_fractions
import statistics
from fractions import Fraction
def summary(x):
    return statistics.median(x), round(statistics.pstdev(x), 3), statistics.mode(x)
def egyptian(n, d):
    out, f = [], Fraction(n, d)
    while f:
        k = -(-f.denominator // f.numerator)
        out.append(k)
        f -= Fraction(1, k)
    return out
# --- test
assert summary([1, 2, 2, 5]) == (2.0, 1.5, 2) and egyptian(6, 7) == [2, 3, 42]
# === text_wrapping
import textwrap, string
def justify(text, width):
    return [line.center(width) for line in textwrap.wrap(text, width)]
def fill(template, **values):
    return string.Template(template).safe_substitute(values)
# --- test
assert justify("aaa bb cc", 6) == ["aaa bb", "  cc  "]
# --- test
assert fill("$a and $b", a=1) == "1 and $b"
# === difflib_closest
import difflib
def suggest(word, words): return difflib.get_close_matches(word, words, n=1)
# --- test
assert suggest("appel", ["ape", "apple", "peach"]) == ["apple"]
# === heap_dijkstra
import heapq
from math import inf
def shortest(graph, start):
    best, heap = {start: 0}, [(0, start)]
    while heap:
        d, v = heapq.heappop(heap)
        if d > best.get(v, inf):
            continue
        for u, w in graph.get(v, {}).items():
            if d + w < best.get(u, inf):
                best[u] = d + w
                heapq.heappush(heap, (d + w, u))
    return best
# --- test
assert shortest({"a": {"b": 1, "c": 5}, "b": {"c": 2}}, "a") == {"a": 0, "b": 1, "c": 3}
# === functools_tools
from functools import cache, cmp_to_key, lru_cache, partial, reduce, singledispatch
@cache
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
def largest(numbers):
    return "".join(sorted(map(str, numbers), key=cmp_to_key(lambda a, b: (a + b < b + a) - (a + b > b + a))))
@singledispatch
def describe(x): return "thing"
@describe.register
def _(x: int): return "number"
@describe.register(list)
def _(x): return f"{len(x)} things"
# --- test
assert fib(80) == 23416728348467685 and largest([3, 30, 34]) == "34330"
# --- test
assert [describe(1), describe([1, 2]), describe("")] == ["number", "2 things", "thing"]
# === operator_and_bisect
import bisect
from operator import attrgetter, itemgetter, mul
def rank(rows, key): return sorted(rows, key=itemgetter(key))
def grade(score): return "FDCBA"[bisect.bisect([60, 70, 80, 90], score)]
# --- test
assert rank([{"n": 2}, {"n": 1}], "n")[0]["n"] == 1 and [grade(s) for s in (33, 89, 90)] == ["F", "B", "A"]
# === enum_and_dataclass_inside
from dataclasses import asdict, dataclass, field
from enum import Enum, auto
class Colour(Enum):
    RED = auto()
    BLUE = auto()
@dataclass(order=True)
class Job:
    priority: int
    name: str = field(compare=False)
def plan(pairs):
    return [job.name for job in sorted(Job(p, n) for p, n in pairs)]
def mixed(name): return Colour[name].value, asdict(Job(1, name))
# --- test
assert plan([(2, "b"), (1, "a")]) == ["a", "b"] and mixed("BLUE") == (2, {"priority": 1, "name": "BLUE"})
# === xml_and_html
import html
import xml.etree.ElementTree as ET
def titles(text): return [e.text for e in ET.fromstring(text).iter("t")]
def escape(text): return html.escape(text)
# --- test
assert titles("<r><t>a</t><x><t>b</t></x></r>") == ["a", "b"] and escape("<&>") == "&lt;&amp;&gt;"
# === urls
from urllib.parse import parse_qs, quote, urljoin, urlparse
def query(url): return {k: v[0] for k, v in parse_qs(urlparse(url).query).items()}
# --- test
assert query("http://x.y/z?a=1&b=c%20d") == {"a": "1", "b": "c d"}
# === sqlite_in_memory
import sqlite3
def top(rows):
    db = sqlite3.connect(":memory:")
    db.execute("create table t (name text, n int)")
    db.executemany("insert into t values (?, ?)", rows)
    return db.execute("select name, sum(n) from t group by name order by 2 desc").fetchone()
# --- test
assert top([("a", 1), ("b", 5), ("a", 2)]) == ("b", 5)
# === compression
import bz2, gzip, io, lzma, zipfile
def sizes(data):
    return [len(f(data)) < len(data) for f in (gzip.compress, bz2.compress, lzma.compress)]
def zipped(names):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as z:
        for name in names:
            z.writestr(name, name * 3)
    return {i.filename: i.file_size for i in zipfile.ZipFile(buffer).infolist()}
# --- test
assert sizes(b"a" * 1000) == [True] * 3 and zipped(["x", "yy"]) == {"x": 3, "yy": 6}
# === ast_and_tokenize
import ast, io, tokenize
def names(code): return sorted({n.id for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Name)})
def comments(code):
    return [t.string for t in tokenize.generate_tokens(io.StringIO(code).readline) if t.type == tokenize.COMMENT]
# --- test
assert names("a = b + c") == ["a", "b", "c"] and comments("x = 1  # one\n") == ["# one"]
# === safe_evaluator
import ast, operator
OPS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
def evaluate(text):
    def go(node):
        if isinstance(node, ast.BinOp): return OPS[type(node.op)](go(node.left), go(node.right))
        if isinstance(node, ast.UnaryOp): return -go(node.operand)
        if isinstance(node, ast.Constant): return node.value
        raise ValueError("unsupported")
    return go(ast.parse(text, mode="eval").body)
# --- test
assert evaluate("2 + 3 * -4") == -10
# --- test
try:
    evaluate("__import__('os')")
    assert False
except ValueError as e:
    assert str(e) == "unsupported"
# === getsource_of_itself
import inspect
def shout(text):
    """Upper case."""
    return text.upper() + "!"
def about():
    return inspect.getsource(shout).splitlines()[0], inspect.signature(shout).parameters["text"].name, shout.__doc__
# --- test
assert about() == ("def shout(text):", "text", "Upper case.")
# === source_of_a_class
import inspect
class Robot:
    def walk(self): return 1
    def talk(self): return 2
def methods(): return [n for n, _ in inspect.getmembers(Robot, inspect.isfunction)], "def talk" in inspect.getsource(Robot)
# --- test
assert methods() == (["talk", "walk"], True)
# === own_file
import os
from pathlib import Path
HERE = os.path.dirname(os.path.abspath(__file__))
def stem(): return Path(__file__).stem
# --- test
assert stem() == "solution"
# === traceback_text
import traceback
def last_line(f=lambda: 1 / 0):
    try:
        f()
    except ZeroDivisionError:
        return traceback.format_exc().strip().splitlines()[-1]
# --- test
assert last_line() == "ZeroDivisionError: division by zero"
# === doctest_run
import doctest, sys
def add(a, b):
    """
    >>> add(2, 3)
    5
    """
    return a + b
def failures():
    return doctest.testmod(sys.modules[__name__]).failed
# --- test
assert failures() == 0
# === decimal_context
from decimal import ROUND_HALF_UP, Decimal, getcontext
def pi(digits):
    getcontext().prec = digits + 2
    total, k = Decimal(0), 0
    while k < digits:
        total += (Decimal(4) / (8 * k + 1) - Decimal(2) / (8 * k + 4) - Decimal(1) / (8 * k + 5) - Decimal(1) / (8 * k + 6)) / 16 ** k
        k += 1
    return str(total)[: digits + 2]
def cents(x): return Decimal(str(x)).quantize(Decimal("0.01"), ROUND_HALF_UP)
# --- test
from decimal import Decimal
assert pi(20) == "3.14159265358979323846" and cents(2.675) == Decimal("2.68")
# === random_seeded_shuffle
import random, secrets
def deal(seed):
    rng = random.Random(seed)
    deck = list(range(52))
    rng.shuffle(deck)
    return deck
def token(n): return len(secrets.token_hex(n))
# --- test
assert deal(1) == deal(1) != deal(2) and sorted(deal(3)) == list(range(52)) and token(8) == 16
# === weak_references
import gc, weakref
class Node: pass
def is_collected():
    node = Node()
    ref = weakref.ref(node)
    del node
    gc.collect()
    return ref() is None
# --- test
assert is_collected()
# === typing_protocols
from typing import Generic, Protocol, TypeVar, runtime_checkable
T = TypeVar("T")
@runtime_checkable
class Sized2(Protocol):
    def size(self) -> int: ...
class Box(Generic[T]):
    def __init__(self, item: T): self.item = item
    def size(self) -> int: return 1
def check(x): return isinstance(Box(x), Sized2), Box[int](x).item
# --- test
assert check(5) == (True, 5)
# === uuid_and_platform
import platform, uuid
def same(name): return uuid.uuid5(uuid.NAMESPACE_DNS, name) == uuid.uuid5(uuid.NAMESPACE_DNS, name)
def version(): return platform.python_version_tuple()[0]
# --- test
assert same("x.org") and version() == "3"
# === pickle_and_copy
import copy, pickle
class P:
    def __init__(self): self.x = [1]
def clones():
    p = P()
    q, r = copy.deepcopy(p), pickle.loads(pickle.dumps(p))
    q.x.append(2)
    return p.x, q.x, r.x
# --- test
assert clones() == ([1], [1, 2], [1])
# === unicode_names
import unicodedata
def strip_accents(text):
    return "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")
# --- test
assert strip_accents("Crème Brûlée") == "Creme Brulee"
# === argparse_of_a_list
import argparse, shlex
def options(line):
    p = argparse.ArgumentParser(exit_on_error=False)
    p.add_argument("-n", type=int, default=1)
    p.add_argument("names", nargs="*")
    return vars(p.parse_args(shlex.split(line)))
# --- test
assert options("-n 3 a 'b c'") == {"n": 3, "names": ["a", "b c"]}
# === configparser_and_toml
import configparser
def section(text, name):
    c = configparser.ConfigParser()
    c.read_string(text)
    return dict(c[name])
# --- test
assert section("[a]\nx = 1\n", "a") == {"x": "1"}
# === graphlib_order
from graphlib import CycleError, TopologicalSorter
def order(deps):
    try:
        return list(TopologicalSorter(deps).static_order())
    except CycleError:
        return None
# --- test
assert order({"b": {"a"}, "c": {"b"}}) == ["a", "b", "c"] and order({"a": {"b"}, "b": {"a"}}) is None
# === cmath_and_colours
import cmath, colorsys
def quadratic(a, b, c):
    d = cmath.sqrt(b * b - 4 * a * c)
    return (-b + d) / (2 * a), (-b - d) / (2 * a)
def hue(r, g, b): return round(colorsys.rgb_to_hsv(r, g, b)[0] * 360)
# --- test
assert quadratic(1, 2, 5) == (-1 + 2j, -1 - 2j) and hue(0, 1, 0) == 120
# === struct_and_array
import array, struct
def pack(n): return struct.pack("<I", n).hex()
def running(values):
    a = array.array("i", values)
    for i in range(1, len(a)): a[i] += a[i - 1]
    return a.tolist()
# --- test
assert pack(258) == "02010000" and running([1, 2, 3]) == [1, 3, 6]
# === temp_files
# expected: exception
import tempfile
def roundtrip(text):
    with tempfile.NamedTemporaryFile("w+") as f:
        f.write(text)
        f.seek(0)
        return f.read()
# --- test
assert roundtrip("x") == "x"
