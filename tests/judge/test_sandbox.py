"""The sandbox from outside: verdicts, the pool, the rungs, and the corpus of hostile programs.

All of the corpus, on a rung of your choice: `python tests/attack.py --rung R3`.
"""

import contextlib
import errno
import functools
import json
import math
import os
import platform
import re
import shutil
import signal
import struct
import subprocess
import sys
import sysconfig
import tempfile
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import honest
import pytest
from conftest import WHOLE, fewer, long

from judge import __main__, pool
from judge.corpus import attacks, controls, right_programs
from judge.isolation import check, try_rungs
from judge.jail import kernel
from judge.launch import RUNGS, WorkerLost, free_user, wall_factor, without_packages
from judge.pool import Sandbox, cores
from judge.syntax import DEFINITIONS, tree_of
from judge.worker import Program, Worker
from lib.core.errors import SandboxError

ROOT = Path(__file__).parents[2]
R4, R3, R1 = RUNGS
RIGHT = right_programs()
ON_LINUX = sys.platform == "linux"
FORGIVING = 30.0  # seconds, where a machine may be busy


@pytest.fixture(scope="module")
def worker(sandbox):
    with contextlib.closing(Worker(sandbox.rung)) as running:
        yield running


@pytest.fixture(scope="module")
def protected(sandbox):
    if not sandbox.rung.seccomp:
        pytest.skip(f"no rung above {sandbox.rung.name} holds here")
    return sandbox


@pytest.fixture(scope="module")
def why_not():
    """`why_not(rung)`: why it does not hold here, "" if it does."""
    return functools.cache(lambda rung: check(rung).why_not)


def program(source, *tests, **settings):
    source = textwrap.dedent(source)
    defined = [node.name for node in getattr(tree_of(source), "body", ()) if isinstance(node, DEFINITIONS)]
    settings = {"entry_points": tuple(defined), "timeout_s": 10.0} | settings
    return Program(source, tuple(map(textwrap.dedent, tests)), **settings)


@pytest.fixture(scope="module")
def judged(sandbox):
    """`judged(source, *tests, **settings)`: the verdict."""
    return lambda source, *tests, **settings: sandbox.judge([program(source, *tests, **settings)])[0]


@pytest.fixture(scope="module")
def names(judged):
    """`names(...)`: the names of the verdicts, as a list."""
    return lambda *args, **settings: [test.verdict for test in judged(*args, **settings).tests]


@pytest.fixture(scope="module")
def printed(sandbox):
    """`printed(source, stdin, stdout, ...)`: the verdicts on a program that reads and prints."""

    def judge(source, *streams, **settings):
        pairs = tuple(zip(streams[::2], streams[1::2], strict=True))
        return sandbox.judge([program(source, stdio=pairs, **{"timeout_s": 10.0} | settings)])[0].tests

    return judge


def python(*arguments, timeout=60.0, **settings):
    """A Python of its own, to its end."""
    settings = {"cwd": ROOT, "text": True, "capture_output": True} | settings
    return subprocess.run([sys.executable, *map(str, arguments)], timeout=timeout, **settings)


# --- verdicts ---

F = "def f(x):\n    return x + 1\n"


@pytest.mark.parametrize(
    ("verdict", "source", "test", "detail"),
    [
        ("pass", F, "assert f(1) == 2", ""),
        ("wrong", F, "y = 1\nassert f(y) == 3", "assert f(y) == 3; f(1) answered 2"),
        ("wrong", F, "assert f(1) == 3, f('a')", "assert f(1) == 3, f('a'); f(1) answered 2"),  # its message raises
        ("wrong", F, "for x in []:\n    assert f(x) == x", "no assert was reached"),
        ("exception", F, "assert f('a') == 2", "TypeError: can only concatenate"),
        ("exception", "def f(x):\n    raise KeyError('gone')", "assert f(1)", "KeyError: 'gone' in: assert f(1); f(1)"),
        ("exception", "def g(x): return x", "assert f(1) == 2", "NameError: name 'f' is not defined"),
        ("load_error", "def f(x:\n", "assert f(1) == 2", "raises SyntaxError"),
        ("load_error", F + "1 / 0", "assert f(1) == 2", "raises ZeroDivisionError"),
        ("exited", F + "exit = __import__('sys').exit\nexit()", "assert f(1) == 2", "raises SystemExit"),
        ("exited", "import sys\ndef f(x): sys.exit(0)", "assert f(1) == 2", "f(1) called sys.exit"),
        ("died", "import os\ndef f(x): os._exit(0)", "assert f(1) == 2", "ended while an answer was awaited"),
        ("died", "import os\ndef f(x): os.abort()", "assert f(1) == 2", "ended by signal"),
        ("died", "import ctypes\ndef f(x): ctypes.string_at(0)", "assert f(1) == 2", "ended by signal 11"),
        ("timeout", "def f(x):\n    while True: pass", "assert f(1) == 2", "no end after 0.2 s"),
        ("timeout", "import time\ntime.sleep(60)", "assert f(1) == 2", "no end after 0.2 s"),
        ("memory", "def f(x): return bytearray(10**9)", "assert f(1) == 2", "f(1) ran out of memory"),
        ("memory", "x = [0] * 10**9", "assert f(1) == 2", "raises MemoryError"),
        ("opaque", "def f(x): return object()", "assert f(1) == 2", "f(1) answered <object>"),
        ("wrong", "def f(x): return [f]", "assert f(1) == 2", "f(1) answered [<object>]"),
        ("opaque", "def f(x): return list(range(10**6))", "assert f(1) == 2", "more than 500,000 parts"),
        ("unsupported_test", F, "assert f(1 == 2", "the test does not parse: SyntaxError"),
        ("unsupported_test", F, "f(1) == 2", "the test asserts nothing"),
        ("unsupported_test", F, "assert f(lambda: 1) == 2", "an object of type function, which cannot leave the test"),
        ("unsupported_test", F, "assert f([0] * 10**6) == 2", "more than 500,000 parts"),
    ],
)
def test_each_verdict_has_its_cause_and_says_it(judged, verdict, source, test, detail):
    limit = 0.2 if verdict == "timeout" else 10.0
    [(name, text)] = judged(source, test, entry_points=("f",), timeout_s=limit).tests
    assert (name, detail in text) == (verdict, True), f"{name}: {text}"
    assert "\n" not in text and len(text) <= 300
    assert re.search(rf"^    (\w+, )*{name}\b", __main__.__doc__, re.MULTILINE), "the page does not list it"


def test_bytes_that_nobody_asked_for_are_against_the_protocol(judged):
    source = """
        import os
        def f(x):
            for fd in range(3, 32):
                try:
                    os.write(fd, b'\\2\\0\\0\\0{}')
                except OSError:
                    pass
            return x + 1
    """
    [(name, text)] = judged(source, "assert f(1) == 2").tests
    assert name == "protocol"
    assert "another question" in text or "nobody asked for" in text


def test_a_detail_does_nothing_to_a_terminal(judged, printed):
    source = "def f(x):\n    raise ValueError('\\x1b[2J\\r' * x)"
    [(name, text)] = judged(source, "assert f(1) == 2").tests
    assert name == "exception" and "2J" in text and text.isprintable()
    assert printed("raise ValueError('\\x1b[2J')", "", "")[0].detail.isprintable()


def test_setup_code_that_raises_is_the_fault_of_the_tests(judged):
    assert (
        judged(F, "assert f(1) == 2", "assert f(1) == 2", setup_code="import no_such_module").tests
        == (("unsupported_test", "setup_code raises ModuleNotFoundError: No module named 'no_such_module'"),) * 2
    )


def test_each_test_has_a_verdict_of_its_own(judged):
    verdict = judged(F, "assert f(1) == 2", "assert f(1) == 3", "assert f('') == 1", "assert f(0) == 1")
    assert [test.verdict for test in verdict.tests] == ["pass", "wrong", "exception", "pass"]
    assert not verdict.passed and verdict.pass_rate == 0.5 and verdict.scored
    assert judged(F, "assert f(1) == 2").passed


def test_after_the_end_of_the_program_nothing_passes(names):
    source = "import os\ndef f(x):\n    if x == 2: os._exit(0)\n    return x"
    assert names(source, "assert f(1) == 1", "assert f(2) == 2", "assert f(1) == 1") == ["pass", "died", "died"]


def test_a_program_without_tests_has_not_passed(judged):
    verdict = judged(F)
    assert verdict.tests == () and not verdict.passed and verdict.pass_rate == 0


def test_the_limit_is_of_all_tests_together(names):
    source = "import time\ndef f(x):\n    time.sleep(x)\n    return x"
    assert names(source, "assert f(0) == 0", "assert f(0.4) == 0.4", "assert f(0.4) == 0.4", timeout_s=0.6) == [
        "pass", "pass", "timeout",
    ]  # fmt: skip


def test_a_verdict_says_what_it_took(judged):
    source = "import time\ndef f(x):\n    b = bytearray(50 << 20)\n    b[::4096] = b'x' * len(b[::4096])\n"
    source += "    time.sleep(0.2)\n    return len(b)"
    verdict = judged(source, "assert f(1) == 50 << 20")
    assert verdict.passed
    assert 0.2 <= verdict.seconds < 10
    assert 50 << 20 <= verdict.memory_bytes < 500 << 20


# --- what a test may do ---


def test_exceptions_of_the_program_are_raised_in_the_test(names):
    source = """
        class Refused(ValueError):
            pass

        def f(x):
            if x < 0:
                raise Refused(f"got {x}")
            if x == 0:
                raise AssertionError("mine")
            if x == 1:
                {}["missing"]
            if x == 2:
                b"\\xff".decode()
            return x
    """
    expects = """
        try:
            f({x})
            assert False, "nothing was raised"
        except {kind} as error:
            assert {text!r} in str(error)
    """
    verdicts = names(
        source,
        expects.format(x=-1, kind="ValueError", text="got -1"),
        expects.format(x=-1, kind="(TypeError, ValueError)", text=""),
        expects.format(x=-1, kind="Exception", text="got -1"),
        expects.format(x=1, kind="KeyError", text="missing"),
        expects.format(x=1, kind="LookupError", text=""),
        expects.format(x=2, kind="ValueError", text=""),
        expects.format(x=7, kind="ValueError", text=""),
        expects.format(x=-1, kind="KeyError", text=""),
        "assert f(0) == 1",
    )
    assert verdicts == ["pass"] * 6 + ["wrong", "exception", "wrong"]


def test_arguments_are_changed_in_place(names):
    source = """
        def f(x):
            if isinstance(x, list):
                x.sort()
                x[0:0] = [None]
            elif isinstance(x, set):
                x.discard(1)
            elif isinstance(x, dict):
                x.pop("a")
                x["new"] = (1, [2])
            elif isinstance(x, bytearray):
                x[:] = b"new"

        def inner(x):
            x[0][1]["k"].append(3)
            return len(x)

        def both(a, b):
            a += b
            b.clear()
    """
    assert names(
        source,
        "x = [3, 1, 2]\nf(x)\nassert x == [None, 1, 2, 3]",
        "x = {1, 2}\nsame = x\nassert f(x) is None\nassert same == {2}",
        "x = {'a': 1, 'b': 2}\nf(x)\nassert x == {'b': 2, 'new': (1, [2])} and list(x) == ['b', 'new']",
        "x = bytearray(b'old')\nf(x)\nassert x == bytearray(b'new')",
        "x = [[0, {'k': []}]]\nassert inner(x) == 1\nassert x == [[0, {'k': [3]}]]",
        "a, b = [1], [2]\nboth(a, b)\nassert (a, b) == ([1, 2], [])",
        "x = [3, 1]\nf(x)\nassert x == [3, 1]",
    ) == ["pass"] * 6 + ["wrong"]


def test_what_crosses_is_a_copy(names):
    source = "kept = []\ndef f(x):\n    kept.append(x)\n    return kept\n"
    assert names(source, "x = f(1)\nx.append(2)\nassert f(3) == [1, 3]") == ["pass"]


def test_iterators_can_be_used_and_not_compared(names):
    source = """
        def f():
            yield from (1, 2, 3)

        def g():
            return {"a": 1}.items()
    """
    assert (
        names(
            source,
            "assert list(f()) == [1, 2, 3]",
            "assert sum(f()) == 6 and max(f()) == 3 and 2 in f()",
            "i = f()\nassert next(i) == 1 and list(i) == [2, 3] and next(i, None) is None",
            "assert sorted(g()) == [('a', 1)] and len(g()) == 1 and dict(g()) == {'a': 1}",
            "assert f()",
            "assert f() == [1, 2, 3]",
            "assert [1, 2, 3] != f()",
            "assert {f(): 1}",
            "assert not f()",
            "assert list(f()) == [1, 2]",
        )
        == ["pass"] * 5 + ["opaque"] * 3 + ["wrong"] * 2
    )


STACK = """
    class Stack:
        limit = 9

        def __init__(self, items=()):
            self.items = list(items)

        def push(self, item, times=1):
            self.items += [item] * times
            return self

        def pop(self):
            return self.items.pop()

        def __len__(self):
            return len(self.items)

        def __getitem__(self, at):
            return self.items[at]

        def __setitem__(self, at, item):
            self.items[at] = item

        def __contains__(self, item):
            return item in self.items

        def __iter__(self):
            return iter(self.items)

        def __str__(self):
            return f"<{len(self)}>"

        def __eq__(self, other):
            return True

        __hash__ = None

    def total(stack):
        return sum(stack.items)

    def pair():
        return Stack([1]), {"second": Stack([2])}
"""
USES_OF_A_STACK = [
    "s = Stack()\ns.push(1)\ns.push(2, times=2)\nassert s.pop() == 2\nassert len(s) == 2",
    "s = Stack([5, 6])\nassert s[0] == 5 and s[-1] == 6",
    "s = Stack([5])\ns[0] = 7\nassert s[0] == 7",
    "s = Stack([5, 6])\nassert 5 in s and 7 not in s",
    "assert list(Stack([1, 2])) == [1, 2] and [x for x in Stack('ab')] == ['a', 'b']",
    "s = Stack([1])\nassert s.items == [1] and s.limit == 9",
    "assert total(Stack([1, 2])) == 3",
    "a, rest = pair()\nassert a[0] == 1 and total(rest['second']) == 2",
    "assert str(Stack([1])) == '<1>'",
    "s = Stack()\ntry:\n    s.pop()\n    assert False\nexcept IndexError:\n    assert len(s) == 0",
    "s = Stack([1])\nassert len(s.push(2)) == 2 and len(s) == 2",
]  # fmt: skip


def test_objects_with_state_are_used_by_their_methods(names):
    assert names(STACK, *USES_OF_A_STACK, stateful=True) == ["pass"] * len(USES_OF_A_STACK)


def test_without_leave_objects_have_nothing_but_what_no_value_has(names):
    source = """
        class Node:
            def __init__(self, value): self.value, self.left = value, None
            def total(self): return self.value
            def get(self): return 3
            def __eq__(self, other): return True
            def __len__(self): return 3
            def __iter__(self): return iter([0, 1, 2])
            def __sub__(self, other): return 0
            __hash__ = __call__ = __len__

        one = Node(1)
        def f(x): return Node(x)
        def same(x): return one
        def back(node): return node.value
        def adder(n): return lambda x: x + n
    """
    sound = ["f(3).value == 3", "f(3).left is None", "f(3).total() == back(f(3)) == 3", "f(3)", "adder(3)(4) == 7"]
    claims = [
        "f(3) == 3",
        "f(3) == f(3)",
        "same(1) == same(2)",
        "len(f(3)) == 3",
        "list(f(3)) == [0, 1, 2]",
        "{f(1): 1}",
    ]
    claims += ["f(3) - 3 == 0", "f(3).get() == 3", "str(f(3))", "1 in f(3)", "f(3) in [3]", "sorted([f(1), f(2)])"]
    assert names(source, *[f"assert {claim}" for claim in sound]) == ["pass"] * len(sound)
    assert names(source, *[f"assert {claim}" for claim in claims]) == ["opaque"] * len(claims)


def test_only_plain_data_is_compared(names):
    comparisons = ["Stack() == Stack()", "Stack() == 1", "1 == Stack()", "Stack() != 1", "Stack() in [1]"]
    comparisons += ["{Stack(): 1}", "Stack() < 1", "[Stack()] == [1]"]
    found = names(STACK, *[f"assert {comparison}" for comparison in comparisons], stateful=True)
    # the first asks for what only the program could know; its __hash__ is None
    assert found == [*["opaque"] * 5, "exception", *["opaque"] * 2]


def test_no_object_stands_in_for_a_set_or_a_text_by_its_own_methods(names):
    source = """
class Any:
    def symmetric_difference(self, other): return set()
    def removeprefix(self, other): return ''
def f(x): return Any()
"""
    tests = "assert f(3).symmetric_difference({0, 1, 2}) == set()", "assert f(3).removeprefix('abc') == ''"
    assert names(source, *tests, stateful=True) == ["opaque"] * 2
    assert names("def f(x): return set(range(x))", tests[0], stateful=True) == ["pass"]
    assert names("def f(x): return 'abc'", tests[1], stateful=True) == ["pass"]


def test_attributes_may_be_private_and_are_never_those_of_the_judge(names):
    test = "s = Stack([3])\ns._limit = 4\nassert s._limit == 4 and s.items == [3]"
    assert names(STACK, test, "assert Stack().missing == 1", stateful=True) == ["pass", "exception"]
    asked = ("_program", "_number", "_kind", "_content", "__dict__")
    tests = [f"e = Empty()\nassert e.{name} or True" for name in asked]
    assert names("class Empty:\n    pass", *tests, stateful=True) == ["exception"] * len(asked)


def test_an_attribute_that_is_set_is_no_argument_of_a_call(names):
    source = """
class Value:
    def __init__(self, x): self.x = x
    def __eq__(self, other): return self.x == other.x
class Only:
    one = None
    def __new__(cls, *args):
        Only.one = Only.one or object.__new__(cls)
        return Only.one
    def __init__(self, x): self.x = x
    def half(self): return Only.one
def make():
    class Config:
        limit = 1
    return Config
"""
    forged = "v = Only(8)\nw = Only(4)\nv.next = w\nassert v.half() == w"
    right = "a = Value(1)\nb = Value(1)\na.twin = b\nassert a == b", "C = make()\nC.limit = 3\nassert C.limit == 3"
    assert names(source, forged, *right, stateful=True) == ["opaque", "pass", "pass"]


def test_a_copy_of_tuples_into_lists_within_a_dictionary_is_the_same(names):
    source = """
class Graph:
    def __init__(self, edges): self.edges = {k: list(v) for k, v in edges.items()}
    def __eq__(self, other): return self.edges == other.edges
    def reversed(self):
        edges = {}
        for start, ends in self.edges.items():
            for end in ends: edges.setdefault(end, []).append(start)
        return Graph(edges)
"""
    test = "r = Graph({'a': ('b',)}).reversed()\nassert r == Graph({'b': ('a',)})"
    assert names(source, test, stateful=True) == ["pass"]


def test_nothing_computed_from_an_object_stands_in_for_a_value(protected):
    chosen = [attack for attack in attacks() if attack.kind == "computed"][:: fewer(1, 4)]
    programs = [case.program(timeout_s=10.0) for case in chosen]
    passed = zip(chosen, protected.judge(programs), strict=True)
    assert len(chosen) >= fewer(1000, 250) and not [each.name for each, verdict in passed if verdict.pass_rate]


def test_classes_are_tested_as_models_test_them(sandbox):
    chosen = [case for case in RIGHT if case.kind in ("classes", "structures", "modern")]
    verdicts = sandbox.judge([case.program() for case in chosen])
    assert len(chosen) >= 100
    assert not [*filter(None, map(honest.unexpected, chosen, verdicts))]


def test_a_program_can_not_give_itself_leave_for_objects(names):
    source = """
        import sys

        class Yes:
            def __contains__(self, item): return True
            def __len__(self): return 3
            def __getitem__(self, key): return 1
            def startswith(self, text): return True

        def f(*args):
            sys._getframe(1).f_locals["self"]._stateful = True
            return Yes()
    """
    tests = ["assert 5 in f(1)", "assert f(1).startswith('abc')", "assert f(2)[0] == 1 and len(f(3)) == 3"]
    assert set(names(source, *tests)) == {"opaque"}


def test_objects_can_be_linked_called_and_added(names):
    source = """
        class Node:
            def __init__(self, value): self.value, self.next = value, None
            def __add__(self, other): return Node(self.value + other.value)
            def __call__(self, x): return self.value * x
            def __neg__(self): return Node(-self.value)
            def handle(self, x): return x

        class Frozen:
            __slots__ = ()

        def length(node):
            count = 0
            while node is not None:
                count, node = count + 1, node.next
            return count
    """
    assert names(
        source,
        "a, b = Node(1), Node(2)\na.next = b\nassert length(a) == 2 and a.next.value == 2",
        "assert (Node(1) + Node(2)).value == 3 and (-Node(1)).value == -1",
        "assert Node(2)(4) == 8 and Node(1).handle(3) == 3",
        "f = Frozen()\nf.value = 5\nassert f.value == 5",
        stateful=True,
    ) == ["pass"] * 3 + ["exception"]


VECTORS = """
    class Vector:
        def __init__(self, *parts): self.parts = list(parts)
        def __add__(self, other): return Vector(*[a + b for a, b in zip(self.parts, other.parts)])
        def __mul__(self, by): return Vector(*[by * a for a in self.parts])
        __rmul__ = __mul__
        def __matmul__(self, other): return sum(a * b for a, b in zip(self.parts, other.parts))
        def __abs__(self): return (self @ self) ** 0.5
        def __contains__(self, part): return part in self.parts
        def __iter__(self): return iter(self.parts)
        def __float__(self): return float(abs(self))
        def __enter__(self): return self
        def __exit__(self, *_): pass
        def copy(self): return Vector(*self.parts)

    def vector(*parts): return Vector(*parts)
"""


def test_classes_that_tests_call_may_have_operators(names):
    uses = [
        "Vector(1, 2) @ Vector(3, 4) == 11 and abs(Vector(3, 4)) == 5 and float(Vector(0, 2)) == 2.0",
        "(2 * Vector(1, 2) + Vector(3, 3)).parts == [5, 7]",
        "2 in Vector(1, 2) and 3 not in Vector(1, 2)",
        "abs(Vector(1, 2) + Vector(2, 2)) == 5",
        "sum([Vector(1), Vector(2)], Vector(0)).parts == [3]",
        "(vector(1, 2) * 2).parts == [2, 4] and (Vector(1).copy() + vector(2)).parts == [3]",
        "2 in vector(1, 2) and 3 not in Vector(1, 2).copy()",  # looked for here, among their items
        "abs(vector(3, 4)) == 5 and round(float(vector(3, 4).copy()), 1) == 5.0",
    ]
    tests = [f"assert {use}" for use in uses] + ["with Vector(3, 4) as v:\n    assert 3 in v and abs(v) == 5"]
    assert names(VECTORS, *tests, stateful=True) == ["pass"] * len(tests)


def test_a_program_cannot_swallow_a_failed_assert(names):
    guard = """
        class Guard:
            number = 1
            def __enter__(self): return self
            def __exit__(self, *_): return True
    """
    blocks = ["raise ValueError", "assert guard.number == 2", "assert guard.size", "int('')\n    assert guard.number"]
    tests = [f"with Guard() as guard:\n    {block}\nassert guard.number == 1" for block in blocks]
    assert names(guard, *tests, stateful=True) == ["pass", "wrong", "exception", "exception"]


@pytest.mark.parametrize("answer", ["0", "0.0", "self"])
def test_no_object_stands_in_for_a_value(names, answer):
    source = f"""
        class Yes:
            def __getattr__(self, name): return lambda *args: True
            def __sub__(self, other): return {answer}
            def __abs__(self): return 0
            def __contains__(self, item): return True
            def __iter__(self): return iter([1])
            __rsub__ = __mod__ = __xor__ = __sub__
            __float__ = __int__ = __round__ = lambda self, *args: 0

        def total(*args): return Yes()

        class Till:
            def __init__(self, *args): self.sums = [Yes()]
            def total(self): return Yes()
            name = property(total)
            __sub__ = __rsub__ = Yes.__sub__
            __abs__ = Yes.__abs__
    """
    claims = ["abs({} - 2.5) < 1e-9", "-1e-9 < 2.5 - {}", "round({} - 2.5, 3) == 0", "int({} % 3) == 0", "7 in {}"]
    claims += ["len({} ^ {{3}}) == 0", "abs({} - {}) == 0", "not {}.isalpha()", "{}.startswith('x')", "2.5 - {} == 0"]
    values = ["total(1)", "Till(1).total()", "Till(1).name", "Till(1).sums[0]"]
    tests = [f"assert {claim.format(value, value)}" for claim in claims for value in values]
    tests += ["assert abs(Till(2.5) - 2.5) < 1e-9", "assert abs(2.5 - Till(2.5)) < 1e-9"]
    assert "pass" not in names(source, *tests, stateful=True)


def test_iterators_and_views_may_be_arguments(names):
    source = "def f(items): return sum(items)\ndef g(items): return next(items)"
    calls = [
        "f(i * i for i in range(4)) == 14",
        "f(map(int, '12')) == 3",
        "f({1: 2}.values()) == 2",
        "g(iter([7])) == 7",
    ]
    assert names(source, *[f"assert {call}" for call in calls]) == ["pass"] * len(calls)


def test_arguments_of_other_kinds_are_carried_over_too(names):
    source = """
        def f(things): things["x"] = 5
        def g(things): things.append(1)
        def h(things): things.append(lambda: 0)
    """
    tests = [
        "import collections\nc = collections.Counter(a=1)\nf(c)\nassert c == {'a': 1, 'x': 5} and c['none'] == 0",
        "import collections\nd = collections.defaultdict(list)\nf(d)\nassert d == {'x': 5} and d['y'] == []",
        "import collections\no = collections.OrderedDict(b=1)\nf(o)\nassert list(o.items()) == [('b', 1), ('x', 5)]",
        "import collections\nq = collections.deque([0])\ng(q)\nassert list(q) == [0, 1]",
        "class Own(list): pass\nx = Own([0])\ng(x)\nassert x == [0, 1] and type(x) is Own",
        "a = [1, 2]\nh(a)\nassert a == [1, 2]",
    ]
    assert names(source, *tests) == ["pass"] * 5 + ["wrong"]


def test_an_object_of_no_use_is_nothing_in_particular(names):
    source = "def f(): return object()\ndef g(): return {}.keys()"
    claims = ["callable(f())", "hasattr(f(), '__len__')", "isinstance(f(), a.Iterator)", "[x for x in f()]"]
    claims += ["len(f()) == 1", "isinstance(g(), a.Iterator)", "1 in f()", "f()[0]", "str(f())"]
    found = names(source, *[f"import collections.abc as a\nassert {claim}" for claim in claims])
    assert set(found) <= {"opaque", "wrong"}


def test_an_iterator_with_state_comes_to_its_end(names):
    source = """
        class Two:
            def __init__(self): self.left = 2
            def __iter__(self): return self
            def __next__(self):
                if not self.left: raise StopIteration
                self.left -= 1
                return self.left
    """
    tests = ["t = Two()\nassert [next(t), next(t), next(t, None)] == [1, 0, None]", "assert list(Two()) == [1, 0]"]
    tests += ["t = Two()\nnext(t)\nnext(t)\ntry:\n    next(t)\n    assert False\nexcept StopIteration:\n    pass"]
    assert names(source, *tests, stateful=True) == ["pass"] * 3


def test_entry_points_are_the_programs_alone(judged):
    source, setup = "def f(): return 1\ndef same(a, b): return True", "def same(a, b): return a == b"
    for name, settings in (("same", {"setup_code": setup}), ("len", {"entry_points": ("f", "len")})):
        [verdict] = judged(source, "assert same(f(), 2)", **settings).tests
        assert verdict.verdict == "unsupported_test" and name in verdict.detail


def test_helpers_may_assert(names):
    check = "def check(f):\n    assert f(1) == 2\n    assert f(2) == 3"
    tests = ["check(f)", "try:\n    check(f)\nexcept Exception:\n    pass"]
    assert names(F, *tests, setup_code=check) == ["pass"] * 2
    assert names("def f(x): return 2", *tests, setup_code=check) == ["wrong"] * 2
    assert names("def f(x): return []", "for x in f(1): assert x", setup_code="assert True") == ["wrong"]


def test_a_call_that_must_raise(names):
    must = "try:\n    f(-1)\n    assert False, 'no error'\nexcept ValueError:\n    pass"
    anything = must.replace("ValueError", "Exception")
    assert names("def f(x): raise ValueError", must, anything) == ["pass", "pass"]
    assert names("def f(x): return x", must, anything) == ["wrong", "wrong"]
    assert names("def f(x): raise KeyError", must, anything) == ["exception", "pass"]
    otherwise = "try:\n    f(-1)\nexcept ValueError:\n    pass\nelse:\n    assert False"
    assert names("def f(x): raise ValueError", otherwise) == ["pass"]
    assert names("def f(x): return x", otherwise) == ["wrong"]
    suppressed = "import contextlib\nwith contextlib.suppress(ValueError):\n    f(-1)\n    assert False"
    assert names("def f(x): raise ValueError", suppressed) == ["wrong"]


CATCHES = """
def catch(check):
    try: check()
    except Exception: return
---
def catch(check):
    try:
        return check()
    except (KeyError, TypeError, AssertionError) as error:
        print(error)
---
import contextlib
def catch(check):
    with contextlib.ExitStack() as stack:
        stack.push(lambda *_: True)
        check()
---
import concurrent.futures
def catch(check):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return pool.submit(check).exception()
---
import unittest
class Case(unittest.TestCase):
    def runTest(self):
        with self.subTest():
            self.check()
def catch(check):
    case = Case()
    case.check = check
    case.run()
---
import threading
def catch(check):
    threading.Timer(0, check).start()
"""
A_THREAD = "from {} import {} as Thread\nt = Thread(target=f, args=('a',))\nt.start()\nt.join()\nassert f(1) == 2"


@pytest.mark.parametrize("kind", [("threading", "Thread"), ("multiprocessing.dummy", "Process")])
def test_what_a_thread_of_a_test_raises_is_noted(names, kind):
    assert names(F, A_THREAD.format(*kind)) == ["exception"]
    assert names(F, A_THREAD.format(*kind).replace("'a'", "1")) == ["pass"]


@pytest.mark.parametrize("catch", CATCHES.split("---\n"))
def test_what_an_assert_raises_is_noted_whoever_catches_it(judged, catch):
    checks = ["assert f(1) == 2", "assert 2 == f(1), f(2)", "x = f(1)\n    assert x == 2"]
    tests = [f"def check():\n    {check}\ncatch(check)\nassert check" for check in checks]
    for error in ("KeyError('gone')", "TypeError", "AssertionError(3)"):
        verdicts = judged(f"def f(x): raise {error}", *tests, setup_code=catch).tests
        assert {test.verdict for test in verdicts} <= {"exception", "wrong"}, verdicts
        assert all("f(1) raised" in test.detail for test in verdicts)
    assert judged(F, *tests, setup_code=catch).passed
    assert judged("def f(x): return x", *tests, setup_code=catch).pass_rate == 0


EXPECTS = """
def raises(kind, *args):
    try:
        f(*args)
    except kind:
        return True
    return False
assert raises(ValueError, -1)
---
def expect(kind, call):
    try:
        call()
    except kind:
        return
    assert False, "nothing was raised"
expect(ValueError, lambda: f(-1))
---
for x in (-1, -2):
    try:
        f(x)
    except ValueError:
        continue
    raise AssertionError(x)
---
import unittest
with unittest.TestCase().assertRaises(ValueError) as caught:
    f(-1)
assert "neg" in str(caught.exception)
---
try:
    assert f(1) == 2
    f(-1)
    assert False
except ValueError:
    pass
---
try:
    for x in (-1, -2):
        f(x)
        assert False, x
except ValueError as error:
    assert error.args
---
seen = []
for x in (0, -1):
    try:
        y = f(x)
        assert y == 1
    except ValueError:
        seen.append(x)
assert seen == [-1]
---
def check(x, wanted):
    y = f(x)
    assert y == wanted
for x, wanted in ((1, 2), (-1, "ValueError")):
    try:
        check(x, wanted)
    except Exception as error:
        assert type(error).__name__ == wanted
"""


def test_a_test_may_expect_an_error_in_its_own_words(names):
    """All of these mean to catch what the program raises."""
    source = "def f(x):\n    if x < 0:\n        raise ValueError('negative')\n    return x + 1\n"
    tests = EXPECTS.split("---\n")
    assert names(source, *tests) == ["pass"] * len(tests)
    assert "pass" not in names("def f(x):\n    return None", *tests)
    assert "pass" not in names("def f(x):\n    raise KeyError", *tests)


def test_what_the_set_up_catches_is_its_own_business(names):
    setup = "try:\n    import no_such_module\n    assert no_such_module\nexcept ImportError:\n    pass\n"
    setup += "try:\n    assert 1 > 2\nexcept AssertionError:\n    pass"
    assert names(F, "assert f(1) == 2", "assert f(1) == 3", setup_code=setup) == ["pass", "wrong"]


def test_an_assert_may_run_until_an_iterator_is_at_its_end(names):
    loop = "items = iter(f(3))\ntry:\n    while True:\n        assert next(items) == 7\nexcept StopIteration:\n    pass"
    assert names("def f(n):\n    return [7] * n", loop) == ["pass"]
    assert names("def f(n):\n    return [7, 8]", loop) == ["wrong"]
    assert names("def f(n):\n    return []", loop) == ["wrong"]
    quiet = "import contextlib\nitems = iter(f(3))\nwith contextlib.suppress(StopIteration):\n"
    quiet += "    while True:\n        assert next(items) == 7"
    assert names("def f(n):\n    return [7] * n", quiet) == ["pass"]
    assert names("def f(n):\n    return []", "list(map(lambda n: check(n), [1]))\nassert f", setup_code=(
        "def check(n):\n    assert next(iter(f(n))) == 7")) == ["exception"]  # fmt: skip


def test_stop_iteration_does_not_end_a_loop_of_the_test(names):
    test = "assert all(map(lambda case: f(case) == 1, [1, 2]))"
    assert names("def f(x): raise StopIteration", test, test.replace("==", "!=")) == ["exception"] * 2
    for name in ("UnicodeDecodeError", "ValueError", "Own"):  # of a builtin's name, or of none
        source = f"class {name}(StopIteration): pass\ndef f(x): raise {name}()"
        assert names(source, test, "assert sum(map(f, [1])) == 0", entry_points=("f",)) == ["exception"] * 2


def test_set_up_is_made_anew_for_each_test(names):
    source = "def f(items):\n    items.clear()\n    return 0"
    tests = ["assert f(CASES) == 0 and CASES == []", "assert CASES == [1, 2] and f([]) == 0"]
    assert names(source, *tests, setup_code="CASES = [1, 2]") == ["pass", "pass"]


@pytest.mark.parametrize(
    "odd",
    [
        "class Odd(Exception):\n    def __str__(self): return 1 / 0\nraise Odd",
        "class Odd(Exception):\n    def __str__(self): raise SystemExit\n    __repr__ = __str__\nassert [][Odd()]",
        "raise KeyError(f(10**5000))",
        "table = {}\nassert table[f(10**5000)]",
        "raise ValueError(gone())",
        "class Odd(list):\n    def __repr__(self): raise OSError\nassert f(1) == h(Odd())",
    ],
)
@pytest.mark.parametrize("stateful", [False, True])
def test_a_text_that_can_not_be_made_costs_no_other_test(names, odd, stateful):
    source = F + "class gone:\n    def __str__(self): raise SystemExit\ndef h(x): return x"
    right = "assert f(1) == 2"
    settings = {"entry_points": ("f", "gone", "h"), "stateful": stateful}
    first, second, third = names(source, right, f"{right}\n{odd}", right, **settings)
    assert (first, third) == ("pass", "pass") and second in ("exception", "opaque", "exited", "wrong")


def test_a_lone_carriage_return_ends_a_line(judged):
    tests = [right := "assert f(1) == 2", f"{right}\rx = 3\r\r\nassert f(2) == x\rassert f(3) == x\x0c", "\r" + right]
    one, other, last = judged(F, *tests).tests
    assert (one.verdict, last.verdict) == ("pass", "pass")
    assert other == ("wrong", "assert f(3) == x; f(3) answered 4")


def test_what_a_call_changed_is_carried_over_whatever_became_of_it(names):
    source = """
        def f(items, fails=False):
            items.append(1)
            if fails:
                raise KeyError(3)

        def g(items):
            items.append(object())
            return 3
    """
    assert (
        names(
            source,
            "x = []\nf(items=x)\nassert x == [1]",
            "x = []\ntry:\n    f(x, True)\nexcept KeyError as error:\n    assert error.args == (3,) and x == [1]",
            "assert g([]) == 3",
        )
        == ["pass"] * 3
    )


def test_dates_are_plain_data(names):
    source = "import datetime\ndef f(d): return d + datetime.timedelta(1)"
    tests = ["from datetime import date\nassert f(date(2020, 2, 28)) == date(2020, 2, 29)",
             "from datetime import datetime\nassert f(datetime(2020, 1, 1, 5)) == datetime(2020, 1, 2, 5)"]  # fmt: skip
    assert names(source, *tests) == ["pass", "pass"]


def test_threads_are_bounded_and_do_not_spoil_the_next_program(protected):
    """Threads that need no address space, by a call of their own; as many as there may be."""
    bomb = """
        import ctypes, platform, threading
        def f(n):
            started = 0
            try:
                for _ in range(n):
                    threading.stack_size(65536)
                    threading.Thread(target=threading.Event().wait, daemon=True).start()
                    started += 1
            except RuntimeError:
                pass
            return started
    """
    holds = program(bomb + "    g = f\n", "assert 10 < f(4000) < 700\nf(1)", memory_mb=1024)
    assert protected.judge([holds])[0].passed
    thread = (
        "import threading\ndef f():\n    t = threading.Thread(target=print)\n    t.start()\n    t.join()\n    return 1"
    )
    assert protected.judge([program(thread, "assert f() == 1")])[0].passed


@pytest.mark.parametrize(
    "source",
    [
        "import os\no = os.fdopen(1, 'w')\no.write('5')",
        "o = open(1, 'w')\no.write('5')",
        "import io, sys\nprint(5)\nsys.stdout = io.StringIO()",
        "import sys\nprint(5, flush=True)\nsys.stdout = None",
        "import sys\nprint(5)\nsys.stdout.close()",
        "import sys\nprint(len(sys.argv) + 4)",
        "import sys\nsys.stderr.write('.' * 10**6)\nprint(5)",
    ],
)
def test_a_script_prints_as_it_would_elsewhere(printed, source):
    assert [test.verdict for test in printed(source, "", "5")] == ["pass"]


def test_an_output_may_be_as_long_as_what_is_expected(printed):
    assert printed("print('x' * 300_000)", "", "x" * 300_000)[0].verdict == "pass"


def test_a_failed_script_shows_its_own_lines_alone(sandbox):
    run = sandbox.run(Program("def g():\n    raise ValueError('no')\ng()"))
    assert run.ending == "exception"
    assert run.stderr.splitlines()[0] == "Traceback (most recent call last):"
    assert "judge/jail" not in run.stderr and run.stderr.endswith("ValueError: no\n")


def test_an_empty_answer_proves_nothing(names):
    assert names(
        "def f(): return []",
        "for x in f():\n    assert x > 0",
        "if f():\n    assert True",
        "def inner():\n    assert True\nf()",
        "assert all(x > 0 for x in f())",
    ) == ["wrong"] * 3 + ["pass"]


def test_a_test_can_not_swallow_a_verdict(names):
    swallow = "try:\n    assert {}\nexcept:\n    pass"
    source = "import sys, os\ndef f(x):\n    if x: sys.exit()\n    return object()\ndef g(): os._exit(0)"
    assert names(
        source,
        "assert True\n" + swallow.format("f(0) == 1"),
        "assert True\n" + swallow.format("f(1) == 1"),
        "assert True\n" + swallow.format("g() == 1"),
        "assert True",
    ) == ["opaque", "exited", "died", "died"]
    assert names(source, "while True:\n    try:\n        assert f(0) == 1\n    finally:\n        break") == ["opaque"]


def test_helpers_of_the_tests_see_the_program(names):
    setup = "import math\nBASE = 10\ndef twice(x):\n    return f(x) + f(x)\n"
    assert names(F, "assert twice(1) == 4", "assert math.floor(f(0.5)) + BASE == 11", setup_code=setup) == ["pass"] * 2


def test_the_program_does_not_see_the_tests(names):
    source = (
        "def f(x):\n    import sys\n    return [BASE, twice] if 'BASE' in globals() else sys.modules.get('tests', 1)"
    )
    assert names(source, "assert f(1) == 1", setup_code="BASE = 10\ndef twice(x): pass") == ["pass"]


def test_tests_do_not_see_each_other(names):
    assert names(F, "x = 1\nf = None\nassert x", "assert x", "assert f(1) == 2", setup_code="x = 0") == [
        "pass", "wrong", "pass",
    ]  # fmt: skip


def test_a_program_can_not_replace_a_builtin_of_the_tests(names):
    source = "def len(x): return 5\ndef f(x): return x\ndef sorted(x): return [1]"
    assert names(source, "assert len(f([])) == 0", "assert sorted(f([2])) == [2]", entry_points=("f",)) == ["pass"] * 2


@pytest.mark.parametrize("seed", [0, 7])
def test_chance_is_the_same_in_each_run(sandbox, seed):
    source = (
        "import random\ndef f(): return [random.random() for _ in range(3)]\ndef g(): return list(set('abcdefgh'))\n"
    )
    tests = ["assert f() == 0", "assert g() == 0", "assert random.random() < 0"]
    runs = [program(source + f"# {i}", *tests, setup_code="import random", seed=seed) for i in range(4)]
    answers = [verdict.tests for verdict in sandbox.judge(runs)]
    assert len(set(answers)) == 1
    assert all(test.verdict == "wrong" for test in answers[0])


def test_another_seed_is_another_chance(judged):
    source = "import random\ndef f(): return random.random()"
    one, other = (judged(source, "assert f() == 0", seed=seed).tests for seed in (1, 2))
    assert one != other


COUNTS = """
    import fcntl, os

    def runs_before(fd):
        # counts in the flags of what it has open, as binary digits
        flags = (os.O_APPEND, os.O_NONBLOCK)
        now = fcntl.fcntl(fd, fcntl.F_GETFL)
        count = sum(bool(now & flag) << digit for digit, flag in enumerate(flags))
        after = sum(flag for digit, flag in enumerate(flags) if count + 1 >> digit & 1)
        fcntl.fcntl(fd, fcntl.F_SETFL, after)
        return count
"""


def test_a_program_leaves_no_flags_for_the_next(worker):
    for fd in (0, 1, 2):
        for _ in range(3):
            first, second = f"assert runs_before({fd}) == 0", f"assert runs_before({fd}) == 1"
            assert worker.judge(program(COUNTS, first, second)).passed


MARKS = """
import ctypes, os, sys, threading, time
def refused(action, *arguments):
    try:
        return action(*arguments)
    except OSError:
        return "refused"
def first_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(threading.get_native_id()))
    thread.start()
    thread.join()
    return found
folder = os.path.dirname(os.__file__)
print([(info.st_ino, info.st_atime_ns, info.st_mtime_ns) for info in map(os.fstat, (0, 1, 2))], refused(os.pipe),
      ctypes.CDLL(None).sysinfo(bytes(200)), refused(time.clock_gettime, ~os.getppid() << 3 | 2))
print(os.getpid(), os.getppid(), first_thread(), refused(os.readlink, "/proc/self"), refused(os.lstat, "/proc/1"),
      [refused(lambda: os.stat(f"{folder}/{name}").st_atime_ns) for name in ("this.py", "wsgiref")])
"""
LEAVES_MARKS = """
import mmap, os, sys, threading
for _ in range(40):
    thread = threading.Thread(target=mmap.mmap, args=(-1, 4096))
    thread.start()
    thread.join()
    os.eventfd(0)
folder = os.path.dirname(os.__file__)
print(len(sys.stdin.read()), open(f"{folder}/this.py").read(9), os.listdir(f"{folder}/wsgiref"), file=sys.stderr)
"""


def test_numbers_tell_a_program_nothing_of_the_one_before(protected, why_not):
    for rung in (R4, R3):
        if why_not(rung):
            continue
        with contextlib.closing(Worker(rung)) as fresh:
            before = fresh.run(Program(MARKS)).stdout.splitlines()
            fresh.run(Program(LEAVES_MARKS), "some text")
            assert fresh.judge(program("import os\ndef f():\n    os._exit(0)", "assert f()")).scored
            after = fresh.run(Program(MARKS)).stdout.splitlines()
        assert len(before) == 2 and before[0] == after[0] and before[0].endswith("refused -1 refused")
        assert rung != R4 or before == after


def test_event_loops_wake_without_pipes(names):
    source = """
        import asyncio, threading
        async def later(n):
            return await asyncio.to_thread(lambda: n + 1)
        async def both(n):
            return await asyncio.gather(later(n), later(n + 1))
        def f(n):
            return asyncio.run(both(n)) + asyncio.run(both(n))
    """
    assert names(source, "assert f(1) == [2, 3, 2, 3]", entry_points=("f",)) == ["pass"]


# --- programs that read and print ---

SQUARE = "print(int(input()) ** 2)"


def test_the_output_is_compared_but_for_blanks_at_the_ends(printed):
    assert printed(SQUARE, "3\n", "9\n", "4", "16", "5\n", "26\n") == (
        ("pass", ""), ("pass", ""), ("wrong", "line 1 of the output: got '25', expected '26'"),
    )  # fmt: skip
    source = "print('a  ')\nprint(' b')\nprint()\nprint('c', end='')\nprint()\nprint()"
    [(name, _), (other, text)] = printed(source, "", "a\n b   \n\nc", "", "a\nb\n\nc\n")
    assert (name, other) == ("pass", "wrong")
    assert text == "line 2 of the output: got ' b', expected 'b'"
    assert printed("print(1)", "", "1\n2")[0] == ("wrong", "line 2 of the output: got nothing, expected '2'")
    assert printed("print(1)\nprint(2)", "", "1")[0] == ("wrong", "line 2 of the output: got '2', expected nothing")
    assert printed("pass", "", "")[0].verdict == "pass"


@pytest.mark.parametrize("read", ["pathlib.Path('/dev/stdin').read_text()", "io.open('/dev/stdin').read()"])
def test_a_script_opens_its_streams_by_name(printed, read):
    source = f"import io, pathlib\nx = {read}\nwith pathlib.Path('/dev/stdout').open('w') as out: out.write(x)"
    assert printed(source, "3\n", "3")[0].verdict == "pass"


@pytest.mark.parametrize("end", ["sys.exit(0)", "sys.exit()", "exit()", "quit()", "exit(0)", "raise SystemExit"])
def test_a_script_may_say_that_it_is_done(printed, end):
    assert printed(f"import sys\nprint(1)\n{end}\nprint(2)", "", "1")[0].verdict == "pass"


@pytest.mark.parametrize(
    ("source", "verdict", "detail"),
    [
        ("print(1)\nexit(1)", "exception", ""),
        ("print(1)\nexit('sorry')", "exception", "sorry"),
        ("print(1)\nexit(256 + 1)", "exception", ""),
        ("print(1)\nraise ValueError('no')", "exception", "ValueError: no"),
        ("print(1)\ninput()", "exception", "EOFError"),
        ("print(1)\nimport os\nos.abort()", "died", ""),
        ("print(1)\nimport ctypes\nctypes.string_at(0)", "died", ""),
        ("print(1)\nimport os\nos.kill(os.getpid(), 9)", "exception", "PermissionError"),
        ("print(1", "load_error", "SyntaxError"),
        ("print(1)\nx = [0] * 10**9", "memory", "MemoryError"),
        ("while True: print('x' * 100)", "output_limit", ""),
        ("print(1)\nraise KeyboardInterrupt", "exception", "KeyboardInterrupt"),
    ],
)
def test_a_script_that_fails_has_not_answered(printed, source, verdict, detail):
    [(name, text)] = printed(source, "", "1")
    assert (name, detail in text) == (verdict, True), f"{name}: {text}"


def test_standard_error_is_no_answer_and_has_an_end(printed):
    assert printed("import sys\nprint(1)\nsys.stderr.write('x' * 200_000)", "", "1")[0].verdict == "pass"
    [(name, _)] = printed("import sys\nprint(1)\nwhile True: sys.stderr.write('x' * 10_000)", "", "1")
    assert name in ("output_limit", "exception")


def test_a_script_runs_as_the_main_program(printed):
    source = "import sys\nif __name__ == '__main__':\n    for line in sys.stdin:\n        print(line.strip()[::-1])"
    assert printed(source, "ab\ncd\n", "ba\ndc", "é€\n", "€é")[1].verdict == "pass"
    assert [test.verdict for test in printed("print(input(), input())", "a\n", "a", "a\nb\n", "a b")] == [
        "exception", "pass",
    ]  # fmt: skip


def test_a_script_that_is_late_is_not_started_again(printed):
    source = "import time\nn = input()\nwhile n == 'stop': time.sleep(1)\nprint(n)"
    tests = printed(source, "1", "1", "stop", "stop", "1", "1", "1", "1", timeout_s=0.5)
    assert [test.verdict for test in tests] == ["pass"] + ["timeout"] * 3


def test_all_inputs_share_one_limit(printed):
    tests = printed("import time\ntime.sleep(0.3)\nprint(1)", *["", "1"] * 4, timeout_s=0.8)
    assert [test.verdict for test in tests] == ["pass", "pass", "timeout", "timeout"]


def test_threads_and_exit_functions_run_to_their_end(printed):
    source = """
        import atexit, threading, time
        atexit.register(print, "third")
        def work():
            time.sleep(0.1)
            print("second")
        threading.Thread(target=work).start()
        print("first")
    """
    assert printed(source, "", "first\nsecond\nthird")[0] == ("pass", "")


def test_a_script_that_exits_ends_as_python_does(printed):
    """sys.exit waits for threads, and calls what was registered."""
    source = "import atexit, sys\natexit.register(print, 'second')\nprint('first')\nsys.exit(0)"
    assert printed(source, "", "first\nsecond")[0] == ("pass", "")


def test_bytes_that_are_no_text_are_wrong(printed):
    write = "import sys\nsys.stdout.buffer.write({})"
    assert printed(write.format(r"b'\xff\xfe9'"), "", "9")[0].verdict == "wrong"
    assert printed(write.format(r"b'9\0'"), "", "9")[0].verdict == "wrong"
    assert printed(write.format(r"b'\xc3\xa9'"), "", "é")[0].verdict == "pass"


def test_a_script_that_reads_nothing_may_have_a_long_input(printed):
    assert printed("print(1)", "x" * 1_000_000, "1")[0].verdict == "pass"
    assert printed("import sys\nprint(len(sys.stdin.read()))", "x" * 1_000_000, "1000000")[0].verdict == "pass"


# --- sources ---


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (F + "\0", {"load_error"}),
        (F + "x = '\ud800'", {"load_error"}),
        (F + "#" * 100_000_000, {"load_error"}),
        ("é" * 200_000, {"load_error"}),
        ("x = " + "[" * 10_000 + "]" * 10_000, {"load_error", "memory"}),
        ("x = " + "-" * 100_000 + "1", {"load_error", "memory", "died"}),
        ("x = " + "+".join(["1"] * 30_000) + "\n" + F, {"load_error", "memory", "died", "pass"}),
        ("", {"exception"}),
        ("\ufeff" + F, {"pass"}),
        (F.replace("\n", "\r\n"), {"pass"}),
        (F.replace("\n", "\r"), {"pass"}),
        ("# coding: latin-1\n" + F + "assert 'é' == '\\xe9'", {"pass"}),
        (F.rstrip() + "  # no line end", {"pass"}),
    ],
    ids=["NUL", "surrogate", "100 MB", "long letters", "brackets", "minus", "sum", "empty", "BOM", "CRLF", "CR",
         "cookie", "no line end"],
)  # fmt: skip
def test_every_source_has_a_verdict_in_time(sandbox, source, expected):
    started = time.monotonic()
    [verdict] = sandbox.judge([Program(source, ("assert f(1) == 2",), entry_points=("f",), timeout_s=2.0)])
    assert time.monotonic() - started < FORGIVING
    assert verdict.tests[0].verdict in expected
    with contextlib.closing(Worker(sandbox.rung)) as fresh:  # none of its reports is there to be read by mistake
        asked = fresh.judge(Program(source, stdio=(("", "no"), ("", "no")), timeout_s=2.0))
    assert len(asked.tests) == 2 and (expected != {"load_error"} or {test.verdict for test in asked.tests} == expected)
    script = sandbox.run(Program(source, timeout_s=2.0))
    ending = "finished" if expected in ({"pass"}, {"exception"}) else script.ending
    assert script.ending == ending
    assert script.ending in {"finished", "load_error", "memory", "died", "exception"}


# --- the pool ---


def processes():
    """{pid: (parent, command line)} of this machine."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                found[int(folder.name)] = int(parent), (folder / "cmdline").read_bytes()
    return found


def descendants(pid):
    """{pid: command line} of what a process has started, and of what that has."""
    every, found, generation = processes(), {}, {pid}
    while generation:
        generation = {child for child, (parent, _) in every.items() if parent in generation}
        found |= {child: every[child][1] for child in generation}
    return found


def workers_of(pid):
    """What the sandboxes of a process have started directly: zygotes, or bubblewrap around them."""
    every = processes()
    return [child for child, (parent, command) in every.items() if parent == pid and b"judge.jail.zygote" in command]


def wait_until(condition, seconds=FORGIVING):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc here")


def numbered(number, right=True):
    body = f"def f(x):\n    return x + {number if right else number + 1}\n"
    return program(body, f"assert f(1) == {number + 1}", f"assert f({number}) == {2 * number}")


@needs_proc
def test_no_verdict_is_lost_when_workers_are_killed(protected):
    with Sandbox(workers=2, rung=protected.rung.name) as sandbox:
        many, most = fewer(1000, 300), fewer(16, 4)
        programs = [numbered(number, right=number % 2 == 0) for number in range(many)]
        futures = [sandbox.submit(program) for program in programs]
        killed, seen = [], set()
        while not futures[-1].done():
            there = {worker._process.pid for worker in list(sandbox._workers)}  # those that have started
            for pid in sorted(there & seen)[:1] if len(killed) < most else ():  # one that may have judged something
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
            seen = there
            time.sleep(0.15)
        verdicts = sandbox.judge(programs)
        assert [verdict.passed for verdict in verdicts] == [number % 2 == 0 for number in range(many)]
        assert {test.verdict for verdict in verdicts[1::2] for test in verdict.tests} == {"wrong"}
        assert len(killed) >= 2 and sandbox.counts["lost workers"] >= 2
        assert sandbox.counts["programs"] == sandbox.counts["remembered"] == many
        assert sandbox.counts["without verdict"] == 0


def test_equal_programs_are_run_once(sandbox):
    before = sandbox.counts.copy()
    one, other = numbered(123_456), numbered(123_457)
    verdicts = sandbox.judge([one, other, one, numbered(123_456)])
    counts = sandbox.counts - before
    assert (counts["programs"], counts["remembered"]) == (2, 2)
    assert verdicts[0] is verdicts[2] is verdicts[3]
    assert sandbox.judge([numbered(123_456, right=False)])[0].pass_rate == 0


def test_verdicts_are_remembered_up_to_a_number(protected, monkeypatch):
    monkeypatch.setattr(pool, "MOST_REMEMBERED", 310)  # 31 for each of these programs
    wrong = [program("def f(x): return x", *[f"assert f('{'x' * 200}') == {n}"] * 30) for n in range(20)]
    with Sandbox(workers=1, rung=protected.rung.name) as sandbox:
        verdicts = [sandbox.judge([source])[0] for source in wrong]
        assert max(sum(len(test.detail) for test in verdict.tests) for verdict in verdicts) <= 6000
        assert len(sandbox._known) == 10
        before = sandbox.counts["programs"]
        sandbox.judge(wrong[-5:])
        assert sandbox.counts["programs"] == before  # those asked for last are remembered
        sandbox.judge(wrong[:1])
        assert sandbox.counts["programs"] == before + 1


def sleeper(seconds, mark=0, **settings):
    source = f"import time\ndef f():\n    time.sleep({seconds})\n    return {mark}"
    return program(source, f"assert f() == {mark}", **{"timeout_s": 60.0} | settings)


def test_closing_cancels_what_waits(protected):
    running = Sandbox(workers=1, rung=protected.rung.name)
    futures = [running.submit(sleeper(0.3, mark)) for mark in range(20)]
    assert futures[0].result(FORGIVING).passed
    started = time.monotonic()
    running.close()
    running.close()
    assert time.monotonic() - started < 4  # twenty of them would take 6
    assert all(future.done() for future in futures)
    errors = [future.exception() for future in futures]
    assert sum(isinstance(error, SandboxError) for error in errors) >= 10
    assert {type(error) for error in errors} == {type(None), SandboxError}
    for late in (running.submit(sleeper(0)), running.submit(sleeper(0))):
        with pytest.raises(SandboxError, match="closed"):
            late.result(FORGIVING)
    with pytest.raises(SandboxError, match="closed"):
        running.run(Program("print(1)"))


def test_closing_survives_a_caller_who_cancels(protected):
    running = Sandbox(workers=1, rung=protected.rung.name)
    try:
        futures = [running.submit(sleeper(0.2, mark)) for mark in range(5)]
        futures[-1].cancel()
    finally:
        running.close()
    assert all(future.done() for future in futures)
    assert not any(thread.is_alive() for thread in running._threads)


def test_many_threads_all_get_their_own(sandbox):
    def ask(number):
        right = sandbox.judge([numbered(5000 + number), numbered(5000 + number, right=False), numbered(4999)])
        run = sandbox.run(Program("print(input())", timeout_s=60), str(number))
        return [verdict.pass_rate for verdict in right], run.stdout

    with ThreadPoolExecutor(64) as threads:
        answers = list(threads.map(ask, range(64)))
    assert answers == [([1.0, 0.0, 1.0], f"{number}\n") for number in range(64)]


FORKED = """
import os, sys, time
from judge.pool import Sandbox
from judge.worker import Program

def program(seconds):
    source = f"import time\\ndef f():\\n    time.sleep({seconds})\\n    return 1"
    return Program(source, ("assert f() == 1",), entry_points=("f",), timeout_s=60)

with Sandbox(1, allow_unsafe=True) as sandbox:
    assert sandbox.judge([program(0)])[0].passed
    waiting = sandbox.submit(program(0.8))
    child = os.fork()
    if child == 0:
        for again in (program(0.1), program(0.1), program(0.8)):
            try:
                sandbox.submit(again).result(2)
                print("judged", flush=True)
            except RuntimeError as error:
                print(error, flush=True)
            except BaseException as error:
                print("waits for ever", flush=True)
        sandbox.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert waiting.result(60).passed
    assert sandbox.judge([program(0.2)])[0].passed
"""


def test_a_forked_child_is_told_to_make_its_own():
    done = python("-c", FORKED)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines == ["a sandbox does not survive a fork: make another one in the child"] * 3


@needs_proc
def test_no_descriptor_is_left_behind(worker):
    def count(pid):
        return len(os.listdir(f"/proc/{pid}/fd"))

    def everyone():
        inside = [pid for pid, line in descendants(worker._process.pid).items() if b"judge.jail.zygote" in line]
        try:
            return [count(pid) for pid in (os.getpid(), worker._process.pid, *inside)]
        except PermissionError:  # a zygote hides from its own user
            return [count(os.getpid())]

    kinds = [
        numbered(1), numbered(1, right=False), program("import os\nos._exit(1)", "assert f()"),
        program("\0", "assert f()"),
        program("import sys\nsys.exit()", "assert f()"), program(F, stdio=(("", ""),)),
        program("print('x' * 100_000)", stdio=(("x" * 100_000, ""),)),
    ]  # fmt: skip
    for kind in kinds:
        worker.judge(kind)
    before = everyone()
    for number in range(fewer(300, 60)):
        worker.judge(kinds[number % len(kinds)])
    assert everyone() == before


HOLDER = """
import sys, time
from judge.pool import Sandbox
from judge.worker import Program

sandbox = Sandbox(2, allow_unsafe=True)
source = "import time\\ndef f():\\n    time.sleep(50)\\ndef g():\\n    while True: pass"
for test in ("f() == 1", "g() == 1"):
    sandbox.submit(Program(source, (f"assert {test}",), entry_points=("f", "g"), timeout_s=50))
print("ready", flush=True)
time.sleep(60)
"""


@needs_proc
def test_everything_ends_with_a_trainer_that_is_killed():
    with subprocess.Popen([sys.executable, "-c", HOLDER], cwd=ROOT, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "ready\n"
        assert wait_until(lambda: sum(b"judge.jail.zygote" in line for line in descendants(holder.pid).values()) >= 6)
        theirs = descendants(holder.pid)
        holder.kill()
        holder.wait()
    started = time.monotonic()
    assert wait_until(lambda: not theirs.keys() & processes().keys(), seconds=10)
    assert time.monotonic() - started < 5


BROKEN = """
import shutil, sys
from pathlib import Path
import judge.pool
from lib.core.errors import run_script
from judge.pool import Sandbox
from judge.worker import Program

def main():
    with Sandbox(1, allow_unsafe=True) as sandbox:
        judge.pool.STARTS = 3
        shutil.rmtree(sys.argv[1] + "/judge/jail")
        sandbox.judge([Program("x = 1", ("assert x",))])
    return 0

run_script(main)
"""


def copied_library(folder):
    for name in ("judge", "lib"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def test_workers_that_do_not_start_end_the_run_with_the_reason(tmp_path):
    done = python("-c", BROKEN, copied_library(tmp_path), cwd=tmp_path)
    assert done.returncode == 5
    assert len(done.stderr.splitlines()) == 1
    assert "times in a row" in done.stderr and "No module named 'judge.jail'" in done.stderr
    assert "--self-test" in done.stderr


@long
@needs_proc
def test_too_many_programs_without_a_verdict_end_the_run(protected):
    """A worker is killed as often as it has a certain program, and no program has a verdict that nobody gave."""
    others = set(workers_of(os.getpid()))
    with Sandbox(workers=2, rung="R3") as sandbox:  # where the zygote is the process that we have started
        assert all(verdict.passed for verdict in sandbox.judge([numbered(number) for number in range(220)]))
        futures = [sandbox.submit(sleeper(50, mark)) for mark in range(3)]
        while not all(future.done() for future in futures):
            every = processes()
            for pid in set(workers_of(os.getpid())) - others:
                if any(parent == pid for parent, _ in every.values()):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.03)
        for future in futures:
            verdict = future.result()
            assert [test.verdict for test in verdict.tests] == ["infra_error"]
            assert not verdict.scored and not verdict.passed
        assert sandbox.counts["without verdict"] == 3 and sandbox.counts["lost workers"] == 12
        with pytest.raises(SandboxError, match="no verdict on 3 of 223 programs") as raised:
            sandbox.judge([numbered(0)])
        assert raised.value.exit_code == 5


def test_a_program_gets_no_more_than_the_sandbox_has(protected):
    with Sandbox(workers=1, rung=protected.rung.name, max_timeout_s=0.5, max_memory_mb=64) as sandbox:
        greedy = program("def f():\n    return len(bytearray(100 << 20))", "assert f() == 100 << 20", memory_mb=10_000)
        endless = program("def f():\n    while True: pass", "assert f()", timeout_s=1000.0)
        verdicts = [verdict.tests[0] for verdict in sandbox.judge([greedy, endless])]
        assert [verdicts[0].verdict, *verdicts[1]] == ["memory", "timeout", "no end after 0.5 s"]
        assert sandbox.run(replaced(endless, source="while True: pass")).ending == "timeout"


def replaced(original, **changes):
    return Program(**{**vars(original), **changes})


# --- numpy ---

ARRAYS = "import numpy as np\ndef f(n):\n    return np.arange(n) * 2\ndef g():\n    return np.random.rand()\n"
USES = ["assert f(3).tolist() == [0, 2, 4]", "assert g() == g.__class__", "assert sum(f(3)) == 6"]


def test_numpy_is_there_where_it_is_asked_for():
    pytest.importorskip("numpy")
    with Sandbox(workers=1, allow_unsafe=True, numpy=True) as running:
        one, other = (running.judge([program(ARRAYS + comment, *USES)])[0].tests for comment in ("", "#"))
        assert [test.verdict for test in one] == ["pass", "wrong", "pass"]
        assert one == other  # chance too


def test_without_numpy_its_import_fails(judged):
    [(name, text)] = judged(ARRAYS, USES[0]).tests
    assert name == "load_error"
    assert "ModuleNotFoundError" in text and "numpy" in text


# --- the rungs ---

WITHOUT = """
import ctypes, os, struct, sys
program = bytes.fromhex(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
if os.geteuid():  # bubblewrap of root needs its privileges, anybody else may set no filter with them
    libc.prctl(38, *map(ctypes.c_ulong, (1, 0, 0, 0)))
buffer = ctypes.create_string_buffer(program, len(program))
header = ctypes.create_string_buffer(struct.pack("@HP", len(program) // 8, ctypes.addressof(buffer)))
if libc.prctl(22, ctypes.c_ulong(2), header, ctypes.c_ulong(0), ctypes.c_ulong(0)):
    raise OSError(ctypes.get_errno(), "no filter")
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""
ON_ARM = platform.machine() == "aarch64"
NO_LANDLOCK = [(444, None, 38), (445, None, 38), (446, None, 38)]
NO_SECCOMP = [(277 if ON_ARM else 317, None, 1), (167 if ON_ARM else 157, (0x15, 22), 1)]  # prctl(PR_SET_SECCOMP)
NO_NAMESPACES = [(97 if ON_ARM else 272, None, 1), (220 if ON_ARM else 56, (0x45, 0x7E020000), 1), (435, None, 38)]


def denied(calls):
    """A filter of (number, condition on the first argument, errno), in hexadecimal."""
    program = []
    for number, condition, error in calls:
        refuse = [(0x06, 0, 0, 0x00050000 | error)]
        if condition is not None:
            code, value = condition
            refuse = [(0x20, 0, 0, 16), (code, 0, 1, value), *refuse]
        program += [(0x20, 0, 0, 0), (0x15, 0, len(refuse), number), *refuse]
    program.append((0x06, 0, 0, 0x7FFF0000))
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in program).hex()


def sandbox_without(calls, *arguments, **settings):
    """`python -m judge` where the kernel refuses some calls."""
    return python("-c", WITHOUT, denied(calls), "-m", "judge", *arguments, **settings)


@pytest.fixture
def added(tmp_path):
    """A right program and its tests, as arguments."""
    (tmp_path / "program.py").write_text("def add(a, b):\n    return a + b\n")
    (tmp_path / "tests.py").write_text("assert add(1, 2) == 3\nassert add(2, 2) == 4\n")
    return [tmp_path / "program.py", "--tests", tmp_path / "tests.py"]


needs_both = pytest.mark.skipif(
    not ON_LINUX or platform.machine() not in ("x86_64", "aarch64"), reason="needs Linux on x86_64 or aarch64"
)


@needs_both
@pytest.mark.parametrize("missing", [NO_LANDLOCK, NO_SECCOMP], ids=["Landlock", "seccomp"])
def test_without_landlock_or_seccomp_there_is_no_protection_unless_somebody_wants_none(protected, added, missing):
    done = sandbox_without(missing, "--self-test")
    assert done.returncode == 5
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1 and "allow_unsafe" in done.stderr
    assert all(f"{rung.name}: " in done.stderr for rung in (R4, R3))
    done = sandbox_without(missing, *added, "--allow-unsafe")
    assert done.returncode == 0, done.stderr
    assert "2 of 2 tests pass" in done.stdout and "sandbox R1" in done.stdout


def test_what_is_installed_beside_the_library_is_not_read(protected, tmp_path):
    library, system = tmp_path / "python3.99", tmp_path / "lib"
    for folder in (library / "json", library / "site-packages" / "secret", system / "python3" / "dist-packages"):
        folder.mkdir(parents=True)
    for file in (library / "os.py", library / "site-packages" / "secret" / "key.py", system / "libc.so"):
        file.write_text("")
    (library / "config").symlink_to(tmp_path)
    (tmp_path / "plain").mkdir()
    found = without_packages(tuple(map(str, (library, system, tmp_path / "plain"))))
    expected = {library / "json", library / "os.py", system / "libc.so", tmp_path / "plain"}
    assert [set(map(Path, part)) for part in found] == [expected, {library, system, system / "python3"}]
    folder = Path(sysconfig.get_path("stdlib"))
    installed = [file for file in folder.glob("*-packages/*/*.py") if file.stat().st_size]
    source = (
        "def f(path):\n    try:\n        return open(path).read(1) != ''\n    except OSError:\n        return None\n"
    )
    tests = [f"assert f({str(file)!r}) is None" for file in installed[:3]]
    assert protected.judge([program(source, "assert f('/etc/passwd') is None", *tests)])[0].passed


@needs_both
@pytest.mark.parametrize("why", ["no namespaces", "no bubblewrap"])
def test_without_bubblewrap_the_next_rung_is_taken(why, why_not, added, tmp_path):
    if why_not(R3) or not shutil.which("bwrap"):
        pytest.skip("R3 does not hold here, or bubblewrap is not installed")
    if why == "no namespaces":
        done = sandbox_without(NO_NAMESPACES, *added)
    else:
        done = python("-m", "judge", *added, env={**os.environ, "PATH": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert "sandbox R3" in done.stdout


def test_what_every_rung_below_the_first_gives_is_refused_there(protected):
    taken = protected.checks[-1]
    assert taken.rung == protected.rung and not taken.why_not
    assert len(taken.attempts) >= 15 and all(refused for _, refused in taken.attempts)


def test_the_lowest_rung_gives_nothing_and_says_so():
    with pytest.raises(SandboxError) as raised:
        try_rungs("R1")
    assert raised.value.exit_code == 5
    [only] = try_rungs("R1", allow_unsafe=True)
    assert only.rung == R1
    assert not dict(only.attempts)["open a socket"]


@pytest.fixture(scope="module")
def for_nobody():
    """A copy that everybody can read, and a Python that everybody can execute."""
    if not ON_LINUX or os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    with tempfile.TemporaryDirectory(prefix="rematch-nobody-") as name:
        folder = copied_library(Path(name))
        (folder / "tests").mkdir()
        (folder / "home").mkdir()
        shutil.copy(ROOT / "tests/attack.py", folder / "tests")
        folder.chmod(0o755)
        (folder / "home").chmod(0o777)
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder / "home"), "TMPDIR": str(folder / "home")}

        def run(interpreter, *arguments):
            return subprocess.run(
                [interpreter, "-B", *arguments], cwd=folder, env=environment, user=65534, group=65534, extra_groups=[],
                capture_output=True, text=True, timeout=60,
            )  # fmt: skip

        for interpreter in (sys.executable, "/usr/bin/python3"):
            with contextlib.suppress(OSError):
                question = "import sys; assert (3, 11) <= sys.version_info; import judge.pool"
                if run(interpreter, "-c", question).returncode == 0:
                    yield functools.partial(run, interpreter)
                    return
        pytest.skip("no Python that another user could execute")


def test_nobody_has_a_sandbox_too(protected, for_nobody):
    done = for_nobody("-m", "judge", "--self-test")
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line.endswith(": taken")]
    assert "YES" not in done.stdout.replace("YES  see names, sizes and times of files", "")


# --- the corpus ---


def left_by(findings):
    """What a run has left behind; the processes of another sandbox on this machine have a parent that lives."""
    every = processes()
    orphans = {f"process {pid}" for pid, (parent, _) in every.items() if parent == 1}
    return [thing for thing in findings["left"] if not thing.startswith("process ") or thing in orphans]


def found_by(done):
    """What an attack found, without what was late, which a busy machine explains."""
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr, done.stderr
    findings = json.loads(done.stdout.splitlines()[-1])
    assert findings["attacks"] > 0
    bad = {name: findings[name] for name in ("controls", "forged", "faults") if findings[name]}
    assert not bad and not left_by(findings), findings
    assert len(findings["unexpected"]) <= findings["attacks"] // 8, "something breaks the attacks, not their success"
    assert done.returncode == int(bool(findings["late"] or findings["left"]))
    return findings


def test_no_hostile_program_has_its_way(protected):
    options = ("--json", "--workers", 4, "--limit", 0.5, "--every", fewer(1, 8))
    findings = found_by(python("tests/attack.py", *options, timeout=500.0, start_new_session=True))
    assert findings["rung"] == protected.rung.name
    assert findings["attacks"] >= fewer(400, 50)


@long
def test_on_the_rung_below_neither(why_not):
    if why_not(R3):
        pytest.skip(f"R3 does not hold here: {why_not(R3)}")
    kinds = "exit_call kernel ptrace signals children files secrets sockets"
    findings = found_by(python("-c", PART, "R3", *kinds.split(), timeout=300.0, start_new_session=True))
    assert findings["rung"] == "R3"
    assert findings["by_kind"].keys() == set(kinds.split())


# What `tests/attack.py --rung R` does with some kinds of programs, without trying the rung again.
PART = """
import json, os, sys, tempfile
from pathlib import Path

sys.path.insert(0, "tests")
import attack
from judge.launch import RUNGS

os.environ[attack.SECRET] = "the secret"
attack.ATTACKS = [each for each in attack.ATTACKS if each.kind in sys.argv[2:]]
(rung,) = [rung for rung in RUNGS if rung.name == sys.argv[1]]
with tempfile.TemporaryDirectory(prefix="rematch-home-") as home:
    findings = attack.attack(rung, Path(home), 4, "", 0.5, 1)
attack.show(findings)
print(json.dumps(vars(findings)))
sys.exit(bool(findings.late or findings.left))
"""


def test_a_judge_that_refuses_everything_has_shown_nothing(protected, monkeypatch, tmp_path, capsys):
    monkeypatch.syspath_prepend(str(ROOT / "tests"))
    import attack

    unfair = [replace(control, source="refused(", due=("pass",) * 3) for control in controls()]
    monkeypatch.setattr(attack, "CONTROLS", tuple(unfair))
    findings = attack.attack(protected.rung, tmp_path, 1, "control/")
    attack.show(findings)
    assert len(findings.controls) == len(unfair)
    assert "VOID" in capsys.readouterr().out


def test_nobody_else_is_forged_or_reached_either(protected, for_nobody):
    found_by(for_nobody("tests/attack.py", "--json", "--only", "early_replies", "--every", str(fewer(1, 3))))


# --- right programs ---


def test_most_right_programs_of_the_corpus_are_judged_right():
    assert len(RIGHT) >= 350
    assert sum(case.due != ("pass",) for case in RIGHT) <= 0.02 * len(RIGHT)


@pytest.mark.parametrize("rung", [R4, R3], ids=["R4", "R3"])
def test_right_programs_are_judged_right(why_not, rung):
    pytest.importorskip("numpy")
    if why_not(rung):
        pytest.skip(f"{rung.name} does not hold here: {why_not(rung)}")
    chosen = RIGHT if WHOLE else RIGHT[RUNGS.index(rung) :: 12]
    with Sandbox(2, rung=rung.name, numpy=True) as running:
        verdicts = running.judge([case.program() for case in chosen])
    odd = [honest.unexpected(each, verdict) for each, verdict in zip(chosen, verdicts, strict=True)]
    assert not list(filter(None, odd))


ZONES = """
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

def hours_ahead(zone, month):
    try:
        return datetime(2024, month, 1, tzinfo=ZoneInfo(zone)).utcoffset() / timedelta(hours=1)
    except ZoneInfoNotFoundError:
        return None
"""
MAPPED = """
import mmap, sys
with mmap.mmap(sys.stdin.fileno(), 0, prot=mmap.PROT_READ) as whole:
    print(whole.size(), whole.readline(), whole[-3:])
with mmap.mmap(0, 4, access=mmap.ACCESS_READ) as head:
    print(head[:], len(mmap.mmap(-1, 64)))
"""


@pytest.mark.parametrize("rung", [R4, R3], ids=["R4", "R3"])
def test_time_zones_and_mapped_input_need_no_file_by_name(why_not, rung):
    if why_not(rung):
        pytest.skip(f"{rung.name} does not hold here: {why_not(rung)}")
    tests = (
        "assert hours_ahead('Asia/Kolkata', 1) == 5.5",
        "assert (hours_ahead('America/Argentina/Ushuaia', 1), hours_ahead('UTC', 1)) == (-3, 0)",
        "assert hours_ahead('Europe/Lisbon', 7) - hours_ahead('Europe/Lisbon', 1) == 1",
        "assert hours_ahead('Europe/Atlantis', 1) is None",
        "from zoneinfo import ZoneInfo\nassert hours_ahead(ZoneInfo('Asia/Tokyo').key, 1) == 9",
    )  # fmt: skip
    mapped = (("first\nlast\n", "11 b'first\\n' b'st\\n'\nb'firs' 64\n"),)
    with contextlib.closing(Worker(rung)) as worker:
        assert worker.judge(Program(ZONES, tests, entry_points=("hours_ahead",), timeout_s=10.0)).passed
        assert worker.judge(Program(MAPPED, stdio=mapped, timeout_s=10.0)).passed


def test_to_enter_the_jail_is_nobodys_time(worker, monkeypatch):
    """A hundred inputs are a hundred processes; of the time that one takes, most is not the program's."""
    reports, exchange = [], worker._exchange

    def noted(*args):
        report, received = exchange(*args)
        reports.append(report)
        return report, received

    monkeypatch.setattr(worker, "_exchange", noted)
    for _ in range(30):
        run = worker.run(Program(SQUARE, timeout_s=10.0), "3\n")
        assert (run.ending, run.stdout) == ("finished", "9\n")
    assert len(reports) == 30 and any(report["seconds"] < report["cpu"] for report in reports)


# --- threads ---

BOMB = """
import threading, time
def f(refusals):
    # counted by what is refused: on a busy machine a second may be too short to start many
    threading.stack_size(65536)
    started = 0
    while refusals:
        try:
            threading.Thread(target=threading.Event().wait, daemon=True).start()
            started += 1
        except RuntimeError:
            refusals -= 1
            time.sleep(0.002)
    return started
"""
CROWDED = """
import json, sys, threading, time
from judge.pool import Sandbox
from judge.worker import Program

BOMB, ONE = sys.argv[1:3]
bombs = [Program(f"{BOMB}# {n}", ("assert f(400) < 0",), entry_points=("f",), memory_mb=1024) for n in range(6)]
right = [Program(f"{ONE}# {n}", ("assert f() == 8",), entry_points=("f",), timeout_s=20.0) for n in range(12)]
mixed = [each for n in range(6) for each in (bombs[n], *right[2 * n : 2 * n + 2])]
with Sandbox(4, rung=sys.argv[3] or None) as sandbox:
    futures = [sandbox.submit(each) for each in mixed]
    lived = 0
    while not all(future.done() for future in futures):
        thread = threading.Thread(target=time.sleep, args=(0.01,))
        thread.start()
        thread.join()
        lived += 1
    verdicts = [future.result() for future in futures]
    print(json.dumps({
        "rung": sandbox.rung.name, "lived": lived, "counts": sandbox.counts,
        "right": [test.verdict for n, each in enumerate(verdicts) if n % 3 for test in each.tests],
        "bombs": [test.verdict for n, each in enumerate(verdicts) if n % 3 == 0 for test in each.tests],
    }))
"""
EIGHT_THREADS = """
import threading
def f():
    done = []
    threads = [threading.Thread(target=done.append, args=(n,)) for n in range(8)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    return len(done)
"""


def judged_in_a_crowd(done):
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["lived"] > 0 and set(told["right"]) == {"pass"} and "pass" not in told["bombs"], told
    return told


def test_bombs_of_threads_leave_the_trainer_and_right_programs_theirs_in_a_container(protected, tmp_path):
    """Root's workers have users of their own: what they share is the container's limit."""
    group = Path(f"/sys/fs/cgroup/pids/rematch-test-{os.getpid()}")
    try:
        group.mkdir()
    except OSError:
        pytest.skip("needs root, and a tree of cgroups for pids")
    try:
        (group / "pids.max").write_text("1000")
        join = f"open({str(group / 'cgroup.procs')!r}, 'w').write('0')\n"
        judged_in_a_crowd(python("-c", join + CROWDED, BOMB, EIGHT_THREADS, protected.rung.name, timeout=200.0))
        assert "max 0" in (group / "pids.events").read_text()  # nobody ever wanted more than there is
    finally:
        wait_until(lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()


def test_bombs_of_threads_leave_neighbours_of_the_same_user_theirs(protected, for_nobody, why_not):
    if why_not(R3):
        pytest.skip("R3 does not hold here")
    limited = "import resource\nresource.setrlimit(resource.RLIMIT_NPROC, (1000, 1000))\n"
    told = judged_in_a_crowd(for_nobody("-c", limited + CROWDED, BOMB, EIGHT_THREADS, "R3"))
    assert told["rung"] == "R3"


USER_OF_A_WORKER = """
from judge.jail import kernel
from judge.launch import RUNGS
from judge.worker import Program, Worker
kernel.NOBODIES = range(64_997, 65_000)
worker = Worker(RUNGS[1])
print(worker.run(Program("import os\\nprint(os.getuid())")).stdout, end="")
"""


def a_user_is_free():
    with contextlib.suppress(WorkerLost):
        free_user()[1].close()
        return True
    return False


def test_workers_of_root_never_share_a_user(protected, why_not, monkeypatch):
    if os.geteuid() or why_not(R3):
        pytest.skip("needs root and R3")
    monkeypatch.setattr(kernel, "NOBODIES", range(64_997, 65_000))
    with contextlib.ExitStack() as stack:
        workers = [stack.enter_context(contextlib.closing(Worker(rung))) for rung in (R3, protected.rung)]
        users = [int(worker.run(Program("import os\nprint(os.getuid())")).stdout) for worker in workers]
        assert int(python("-c", USER_OF_A_WORKER).stdout) == 64_999 and users == [64_997, 64_998]
        assert wait_until(a_user_is_free)  # what that script started may outlive it for a moment
        stack.enter_context(contextlib.closing(Worker(R3)))
        with pytest.raises(WorkerLost, match="users 64997 to 64999"):
            Worker(R3)
        workers[0].close()
        stack.enter_context(contextlib.closing(Worker(R3)))


@long
def test_a_lack_of_processes_passes(protected, monkeypatch):
    lacking = [OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))] * 6

    def start(*args):
        if lacking:
            raise WorkerLost(str(lacking.pop()))
        return Worker(*args)

    with Sandbox(1, rung=protected.rung.name) as running:
        monkeypatch.setattr(pool, "Worker", start)
        assert running.judge([numbered(1)])[0].passed
    monkeypatch.setattr(pool, "STARTS", 3)
    with Sandbox(1, rung=protected.rung.name) as running:
        lacking.extend([OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))] * 3)
        with pytest.raises(SandboxError, match="Cannot allocate memory"):
            running.judge([numbered(2)])


@pytest.mark.parametrize("version", [1, 2])
def test_limits_of_a_container_are_seen(version, tmp_path, monkeypatch):
    files = {"pids.max": "max", "pids.current": "90"}, {"pids.max": "1000", "pids.current": "100"}
    quotas = [
        {"cpu.cfs_quota_us": "-1", "cpu.cfs_period_us": "100000"},
        {"cpu.cfs_quota_us": "150000", "cpu.cfs_period_us": "100000"},
    ]
    if version == 2:
        quotas = [{"cpu.max": "max 100000"}, {"cpu.max": "150000 100000"}]
    for controller, levels in (("pids", files), ("cpu", quotas)):
        for folder, contents in zip(("a/b", "a"), levels, strict=True):
            place = tmp_path / (controller if version == 1 else "") / folder
            place.mkdir(parents=True, exist_ok=True)
            for name, text in contents.items():
                (place / name).write_text(text + "\n")
    own = tmp_path / "own"
    own.write_text("8:pids:/a/b\n4:cpu,cpuacct:/a/b\n" if version == 1 else "0::/a/b\n")
    if version == 1:
        (tmp_path / "cpu").rename(tmp_path / "cpu,cpuacct")
    monkeypatch.setattr(kernel, "_CGROUPS", tmp_path)
    monkeypatch.setattr(kernel, "_OWN_CGROUPS", own)
    assert kernel.cpu_quota() == 1.5 and cores() == min(2, len(os.sched_getaffinity(0)))
    assert wall_factor(1) == 5 and wall_factor(3) == 10
    (tmp_path / "own").write_text("0::/elsewhere\n")  # a container that does not know its own name
    assert kernel.cpu_quota() == math.inf and kernel.most_threads(1) == 512
    own.write_text("8:pids:/a/b\n" if version == 1 else "0::/a/b\n")
    assert 8 * kernel.most_threads(8) <= 900 - 225 and kernel.most_threads(1) == 512


# --- the command line ---


def test_the_self_test_names_the_rung_and_what_was_tried(protected):
    done = python("-m", "judge", "--self-test")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    taken = [line for line in lines if line.startswith(f"{protected.rung.name}  ")]
    assert len(taken) == 1 and taken[0].endswith(": taken")
    for what, _ in protected.checks[-1].attempts:
        assert f"  not  {what}" in lines
    assert "programs per second" in lines[-1]


def test_a_program_is_judged_by_a_file_of_tests(tmp_path):
    file, tests = tmp_path / "program.py", tmp_path / "tests.py"
    file.write_text("def add(a, b):\n    return a + b\n")
    tests.write_text("import math\ndef near(a, b):\n    return math.isclose(a, b)\nassert add(1, 2) == 3\n"
                     "assert near(add(0.1, 0.2), 0.3)\n")  # fmt: skip
    arguments = ["-m", "judge", file, "--tests", tests, "--allow-unsafe"]
    done = python(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("test 1: pass: assert add(1, 2) == 3\ntest 2: pass: ")
    file.write_text("def add(a, b):\n    return a - b\n")
    done = python(*arguments)
    assert (done.returncode, done.stderr) == (1, "")
    assert "test 1: wrong: assert add(1, 2) == 3; add(1, 2) answered -1\n" in done.stdout
    assert "0 of 2 tests pass" in done.stdout


def test_a_script_is_run_with_an_input(tmp_path):
    file, stdin = tmp_path / "program.py", tmp_path / "input.txt"
    file.write_text("print(int(input()) * 2)\n")
    stdin.write_text("21\n")
    done = python("-m", "judge", file, "--stdin", stdin, "--allow-unsafe")
    assert (done.returncode, done.stdout) == (0, "42\n")
    assert done.stderr.startswith("finished; ")
    stdin.write_text("x\n")
    done = python("-m", "judge", file, "--stdin", stdin, "--allow-unsafe")
    assert (done.returncode, done.stdout) == (1, "")
    assert "ValueError" in done.stderr and done.stderr.splitlines()[-1].startswith("exception; ")


@pytest.mark.parametrize("missing", ["program", "tests", "stdin"])
def test_a_file_that_is_missing_is_named(tmp_path, missing):
    for name in {"program", "tests", "stdin"} - {missing}:
        (tmp_path / name).write_text("assert True\n")
    options = ["--stdin", tmp_path / "stdin"] if missing == "stdin" else ["--tests", tmp_path / "tests"]
    done = python("-m", "judge", tmp_path / "program", *options, "--allow-unsafe")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ") and len(done.stderr.splitlines()) == 1
    assert str(tmp_path / missing) in done.stderr


def test_tests_that_are_none_are_a_mistake(tmp_path):
    (tmp_path / "program").write_text(F)
    for text in ("assert f(1) ==", "f(1) == 2\n"):
        (tmp_path / "tests").write_text(text)
        done = python("-m", "judge", tmp_path / "program", "--tests", tmp_path / "tests", "--allow-unsafe")
        assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert python("-m", "judge").returncode == 2
