"""The judge's doors: by the command line, an adapter or feedback, a program is judged as in the pool."""

import contextlib
import json
import logging
import os
import re
import sys
from statistics import fmean

import pytest
from conftest import WHOLE, long

from judge import __main__, adapters, pool
from judge.corpus import attacks, controls, placed, right_programs
from judge.sources import program_for
from lib.core.errors import ConfigError
from lib.rewards.programs import first_failures

pytestmark = pytest.mark.usefixtures("shared_sandbox")
SECRET = "REMATCH_SECRET_OF_THE_TRAINER"
LIMIT = 0.5


def by_command_line(source, tests, settings, tmp_path, monkeypatch, capsys):
    """The share of tests that pass, None if they cannot be used."""
    for name, text in (("program", source), ("tests", "\n".join(tests))):
        (tmp_path / f"{name}.py").write_text(text, errors="surrogatepass")
    options = [f"--timeout={LIMIT}", "--allow-unsafe", *["--stateful"][: settings.get("stateful", False)]]
    names = ["--entry-points", *settings["entry_points"]] if "entry_points" in settings else []
    files = [str(tmp_path / "program.py"), "--tests", str(tmp_path / "tests.py")]
    monkeypatch.setattr(sys, "argv", ["sandbox", *files, *options, *names])
    try:
        __main__.main()
    except ConfigError:
        return None
    said = capsys.readouterr().out
    passed, count = re.search(r"^(\d+) of (\d+) tests pass", said, re.MULTILINE).groups()
    return None if ": unsupported_test: " in said else int(passed) / int(count)


def by_adapter(form):
    def share(source, tests, settings, *_):
        info = {"tests": list(tests)} | {key: settings[key] for key in ("entry_points",) if key in settings}
        with contextlib.suppress(RuntimeError):
            return FORMS[form](source, info)

    return share


def by_feedback(source, tests, settings, *_):
    row = {"prompt": "p", "tests": ["assert add(1, 2) == 3"], "entry_points": ["add"], "timeout_s": LIMIT}
    row |= {key: list(value) if isinstance(value, tuple) else value for key, value in settings.items()}
    [failure] = first_failures([source], [row | {"public_tests": list(tests)}], 200)
    return float(failure is None)


FORMS = {
    "TRL": lambda text, info: adapters.trl_reward(
        [text], [info["tests"]], **{key: [value] for key, value in info.items() if key != "tests"}
    )[0],
    "verl": lambda text, info: adapters.verl_score("", text, info["tests"], info),
    "verifiers": lambda text, info: adapters.verifiers_reward([{"role": "assistant", "content": text}], info),
    "lm-eval": lambda text, info: adapters.lm_eval_results(info, [text]).get("passed"),
}
DOORS = {"command line": by_command_line, "feedback": by_feedback} | {form: by_adapter(form) for form in FORMS}
SLOW = {"command line": 20}  # each program begins with a look at what protects here


@pytest.mark.parametrize("door", [pytest.param(door, marks=long) if door in SLOW else door for door in DOORS])
def test_no_hostile_program_is_paid_at_any_door(door, tmp_path, monkeypatch, capsys):
    canary = tmp_path / "canary.txt"
    canary.write_text("alive")
    monkeypatch.setitem(os.environ, SECRET, "the secret")
    every = SLOW.get(door) or (len(DOORS) if WHOLE else 24)  # with WHOLE=1 each attack tries one of the doors
    asked = attacks()[list(DOORS).index(door) :: every]
    shares = {}
    for attack in asked:
        source = placed(attack.source, tmp_path, canary, SECRET)
        given = source, attack.tests, attack.settings
        shares[attack.kind, attack.name] = DOORS[door](*given, tmp_path, monkeypatch, capsys)
    assert not {name: share for name, share in shares.items() if share}
    assert sum(share is None for share in shares.values()) < 0.1 * len(shares)
    assert canary.read_text() == "alive"
    lost = []
    for control in controls():
        share = DOORS[door](control.source, control.tests, control.settings, tmp_path, monkeypatch, capsys)
        due = fmean(verdict == "pass" for verdict in control.due)
        assert share in (None, due if door not in ("feedback", "lm-eval") else float(due == 1)), control.name
        lost += [control.name] * (share is None)
    assert len(lost) <= 2, lost  # an assert in a finalizer or a thread is a test of its piece, and of no line of a text


# --- who defines a name: the tests, and not the program ---

AREA = "def area(r):\n    return 0\n"
EQUAL = AREA + "def isclose(*args, **named):\n    return True\nnear = isclose\n"
CLASS = "class {}:\n    def __init__(self, *_): pass\n    def __eq__(self, other): return True\n"
CASE = "class TestCase:\n    def assertEqual(self, *_): pass\n    def setUp(self): pass\n" + AREA
FORGED = [  # tests, and a program that defines what they import or define themselves
    ("from math import isclose\nassert isclose(area(2), 12.566)", EQUAL),
    ("from solution import area\nfrom math import isclose as near\nassert near(area(2), 12.566)", EQUAL),
    ("from math import *\nassert isclose(area(2), 12.566)", EQUAL),
    ("import math\nassert math.isclose(area(2), 12.566)", AREA + "class math:\n    isclose = lambda *_, **__: True\n"),
    ("def test():\n    from math import isclose\n    assert isclose(area(2), 12.566)", EQUAL),
    ("try:\n    from math import isclose\nexcept ImportError:\n    pass\nassert isclose(area(2), 12.5)", EQUAL),
    ("near = lambda a, b: abs(a - b) < 0.1\nassert near(area(2), 12.566)", EQUAL),
    ("for near in [lambda a, b: abs(a - b) < 0.1]:\n    assert near(area(2), 12.566)", EQUAL),
    ("assert (near := abs)(area(2)) == 12.566", EQUAL),
    ("match abs:\n    case near:\n        assert near(area(2)) == 12.566", EQUAL),
    ("from pytest import approx\nassert area(2) == approx(12.566)", AREA + "def approx(x):\n    return 0\n"),
    ("from collections import Counter\nassert Counter([area(2)]) == Counter('ab')", AREA + CLASS.format("Counter")),
    ("from unittest import TestCase\nclass T(TestCase):\n def test(self):\n  self.assertEqual(area(2), 12)", CASE),
    ("from unittest import TestCase\nTestCase().assertEqual(area(2), 12)", CASE),
]  # fmt: skip
FORGOTTEN = [  # a name that only a test calls
    "assert isclose(area(2), 12.566)", "x = area(2)\nassert isclose(x, 12.566)", "assert area(2) == near(12)",
    "assert math.isclose(area(2), 12.566)", "def same(a, b):\n    return isclose(a, b)\nassert same(area(2), 12.566)",
    "def check(f):\n    assert isclose(f(2), 12.566)\ncheck(area)", "from main import area\nassert near(area(2), 12)",
    "from scipy.special import near\nassert area(2) == near(12)", "import scipy\nassert area(2) == scipy.near(12)",
    "from solution import area\nfrom helpers import near\nassert near(area(2), 12)", "assert area(2) == pi",
    "ok = []\nok.append(isclose(area(2), 12.566))\nassert ok[0]", "assert Counter([area(2)]) == Counter([12.566])",
    "match area(2):\n    case x:\n        assert isclose(x, 12)", "def test(x=area(2)):\n    assert isclose(x, 12)",
    "import pytest\n@pytest.mark.parametrize('x', [area(2)])\ndef test(x):\n    assert isclose(x, 12)",
    "class C:\n    def check(self, x):\n        assert isclose(x, 12)\nC().check(area(2))",
    "assert all(map(isclose, [area(2)], [12]))",
    "try:\n    raise ValueError(area(2))\nexcept ValueError as e:\n    assert isclose(e.args[0], 12)",
    "if isclose(area(2), 12):\n    ok = True\nassert ok", "from solution import *\nassert isclose(area(2), 12)",
]  # fmt: skip


@pytest.mark.parametrize("stateful", [False, True], ids=["", "stateful"])
def test_what_the_tests_import_or_define_is_theirs_at_every_door(stateful, tmp_path, monkeypatch, capsys):
    for tests, program in FORGED:
        verdicts = pool.shared().judge([program_for(program, tests, module="program")])
        assert not verdicts[0].passed and verdicts[0].tests[0].verdict == "wrong", tests
        for form in FORMS:
            assert by_adapter(form)(program, [tests], {}) == 0, (form, tests)
    for tests, program in FORGED[:: 1 if WHOLE else 5]:
        given = {"stateful": stateful}
        assert by_command_line(program, [tests], given, tmp_path, monkeypatch, capsys) == 0, tests


def test_entry_points_may_be_named(tmp_path, monkeypatch, capsys):
    program, tests = "def read():\n    return 3\ndef double(n):\n    return 2 * n\n", ["assert double(read()) == 6"]
    for names, share in (({}, None), ({"entry_points": ("read", "double")}, 1)):
        assert by_command_line(program, tests, names, tmp_path, monkeypatch, capsys) == share
        assert {by_adapter(form)(program, tests, names) for form in FORMS} == {share}


@pytest.mark.parametrize("tests", FORGOTTEN)
def test_a_forgotten_import_is_a_mistake_of_the_data(tests, caplog):
    program = EQUAL + CLASS.format("Counter")
    assert adapters.problem_of(tests).startswith("tests: ")
    assert {by_adapter(form)(program, [tests], {}) for form in FORMS} == {None}
    with pytest.raises(ConfigError):
        program_for(program, tests)


# --- the table of docs/judge.md ---

ADD = "class Missing(ValueError): pass\n"
ADD += "def add(a, b):\n    if a is None:\n        raise Missing('a is missing')\n    return a + b\n"
ADD += "class Pair:\n    left = 1\n    def right(self, x):\n        return add(x, 0)\n"
ADD += "def pair(a, b):\n    return Pair()\n"
ADD += "class Sums:\n    def add(self, a, b):\n        return add(a, b)\n"
WRONG = ADD.replace("a + b", "a - b").replace("left = 1", "left = 2").replace("(ValueError)", "(KeyError)")
STACK = """
class Stack:
    def __init__(self): self.items = []
    def push(self, item): self.items.append(item)
    def pop(self): return self.items.pop()
"""
UNITTEST = """
import unittest
from solution import add
class Sums(unittest.TestCase):
    def setUp(self):
        self.three = 3
    def test_sum(self):
        self.assertEqual(add(1, 2), self.three)
        self.assertAlmostEqual(add(.1, .2), .3)
        with self.assertRaises(ValueError) as caught:
            add(None, 1)
        self.assertIn("missing", str(caught.exception))
if __name__ == "__main__":
    unittest.main()
"""
ROWS = {  # by row of the table: tests, and what else a row of data has
    "a list of asserts": (["assert add(1, 2) == 3", "assert add(2, 2) == 4"], {}),
    "JSON of a list": (json.dumps(["assert add(1, 2) == 3"]), {}),
    "one text": ("# sums\r\nx = 3\r\nassert add(1, 2) == x\r\n", {}),
    "set-up in pieces of its own": (["import math", "x = 0.1", "assert math.isclose(add(x, 0.2), 0.3)"], {}),
    "an answer shared": (["x = add(1, 2)\nassert x == 3", "assert add(x, 1) == 4"], {}),
    "a variable set on a condition": (["x = 1", "if len('') > 5:\n    x = 2\nassert add(x, 2) == 3"], {}),
    "imports of the program": ("from x import add as plus\nimport x\nassert plus(1, 2) == x.add(2, 1) == 3", {}),
    "functions test_": ("def test_sum():\n    assert add(1, 2) == 3\nif __name__ == '__main__':\n    test_sum()", {}),
    "check(candidate)": ("def check(candidate):\n    assert candidate(1, 2) == 3", {"entry_point": "add"}),
    "check of a method": ("def check(candidate):\n    assert candidate(1, 2) == 3", {"entry_point": "Sums().add"}),
    "check, called": (["def check(candidate):\n    assert candidate(1, 2) == 3\n\ncheck(add)"], {}),
    "unittest": (UNITTEST, {}),
    "pytest.raises": (
        "import pytest\ndef test():\n    with pytest.raises(ValueError, match='miss') as e:\n        add(None, 1)\n"
        "    assert 'missing' in str(e.value)", {},
    ),
    "pytest.approx": (["from pytest import approx", "assert [add(.1, .2)] == approx([.3])"], {}),
    "parametrize": (
        "import pytest\n@pytest.mark.parametrize('a, b', [(1, 2), (3, 4)])\n"
        "@pytest.mark.parametrize('c', [0, 1])\ndef test(a, b, c):\n    assert add(a + c, b) == a + b + c", {},
    ),
    "common words": ("patch, input = [1, 2]\nassert add(patch, input) == 3", {}),
    "errors that the program defines": (
        ["assert add(1, 2) == 3", "try:\n    add(None, 1)\nexcept Missing:\n    pass\nelse:\n    assert False"], {},
    ),
    "answers that are objects": (["p = pair(1, 2)", "assert p.left == 1 and p.right(3) == 3"], {}),
    "objects": ("s = Stack()\ns.push(1)\ns.push(2)\nassert s.pop() == 2\nassert s.pop() == 1", {}),
    "numpy": (["import numpy as np", "assert np.allclose(add(np.ones(2), 1), 2)"], {}),
}  # fmt: skip
REFUSED = {
    "fixtures": "import pytest\n@pytest.fixture\ndef one():\n    return 1\ndef test(one):\n    assert add(one, 2) == 3",
    "hooks": "def setup_module():\n    pass\ndef test():\n    assert add(1, 2) == 3",
    "decorators": "import unittest\n@unittest.skip('')\ndef test():\n    assert add(1, 2) == 3",
    "files": "def test():\n    assert add(open('x').read(), '') == '3'",
    "cases with marks": (
        "import pytest\n@pytest.mark.parametrize('a', [pytest.param(1, marks=pytest.mark.xfail)])\n"
        "def test(a):\n    assert add(a, 2) == 3"
    ),
    "raises as a function": "import pytest\npytest.raises(ValueError, add, None, 1)\nassert add(1, 2) == 3",
    "its own file": "import os\nassert add(os.path.basename(__file__), '')",
    "classes that extend the program's": "class More(Sums):\n    pass\nassert More().add(1, 2) == 3",
    "copies of an object": "import copy\ns = Sums()\nassert copy.copy(s).add(1, 2) == 3",
    "what must not be reached alone": "for i in range(3):\n    if add(i, 0) != i:\n        i\n        assert False",
    "the class of an object": "assert type(Sums()) is Sums",
    "the class of a variable": "sums = Sums()\nassert type(sums) is Sums",
    "the attribute of the class": "sums = Sums()\nassert sums.__class__ == Sums",
    "the class in a method": (
        "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertIs(type(Sums()), Sums)"
    ),
    "skips": "import pytest\n@pytest.mark.skipif(True, reason='')\ndef test():\n    assert add(1, 2) == 3",
    "patches by an attribute": "import unittest.mock\nwith unittest.mock.patch('os.name'):\n    assert add(1, 2) == 3",
    "what is printed": "import sys\nassert add(sys.stdout.getvalue(), '') == '3'",
    "patches and captured output": "def test(capsys):\n    assert add(1, 2) == 3",
    "other packages": "import pandas as pd\nassert add(1, 2) == pd.DataFrame().size + 3",
    "async": "async def test():\n    assert add(1, 2) == 3",
    "constants": "from solution import add, THREE\nassert add(1, 2) == THREE",
    "functions as arguments": "assert add(lambda: 1, 2) == 3",
    "two names in one assert": "assert total(add(1, 2)) == 3",
    "no assert": "add(1, 2) == 3",
    "asserts a tuple": "assert (add(1, 2) == 3, 'a sum')",
    "nothing of the program": "assert 1 + 2 == 3",
    "no Python": "assert add(1, 2) ==",
    "nothing": [],
    "no texts": [1, 2],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("row", ROWS)
def test_a_row_of_the_table_is_understood_in_every_form(row, form):
    pytest.importorskip("numpy") if row == "numpy" else None
    tests, more = ROWS[row]
    right, wrong = (STACK, STACK.replace("items.pop()", "items.pop(0)")) if row == "objects" else (ADD, WRONG)
    share = FORMS[form](wrong, {"tests": tests} | more)
    assert FORMS[form](right, {"tests": tests} | more) == 1 and share is not None and share < 1


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("tests", REFUSED.values(), ids=REFUSED)
def test_what_is_not_understood_is_no_score_and_one_warning(form, tests, caplog):
    adapters._warn.cache_clear()
    with caplog.at_level(logging.WARNING, logger="rematch.sandbox"):
        for program in (ADD, WRONG, ADD):
            score = None
            with contextlib.suppress(RuntimeError):  # where the other side has no missing score
                score = FORMS[form](program, {"tests": tests})
            assert score is None
    assert len(caplog.records) == 1


def test_a_long_text_that_shares_variables_is_one_test():
    """Each of 200 asserts would run all before it again, and a right program would be out of time."""
    program = "class Stack:\n    def __init__(self): self.a = []\n    def push(self, x): self.a.append(x)\n"
    program += "    def pop(self): return self.a.pop()"
    tests = "s = Stack()\n" + "".join(f"s.push({i})\nassert s.pop() == {i}\n" for i in range(200))
    assert adapters.scores([program], [tests]) == [1.0]


SHARING = [  # a right program and tests, the second half of which hangs together with the first
    ("def f(x): x.sort()", "x = [3, 1]\ny = x\nf(x)\nassert y == [1, 3]"),
    ("def f(x): x.append(2); return x", "x = [1]\nassert f(x) == [1, 2]\nassert f(x) == [1, 2, 2]"),
    ("def f(x): x.append(2); return x", "x = [1]\ny = x\nassert f(x) == [1, 2]\nassert y == [1, 2]"),
    ("def f(x): return x + 1", "x = 1\nassert f(x) == 2\nx = 5\nassert f(x) == 6"),
    ("f = sum", "x = [1]\nassert f(x) == 1\nx.append(2)\nassert f(x) == 3"),
    ("f = sum", "x = [1]\ndef g(n):\n    assert f(x) == n\ng(1)\nx.append(2)\ng(3)"),
    ("f = abs", "n = 0\ndef g():\n    global n\n    n += 1\n    assert f(n) == n\ng()\ng()\nassert n == 2"),
    ("f = abs", ["x = 1\nassert f(x) == 1", "x += 1\nassert f(x) == 2"]),
    ("def f(n): yield from range(n)", "x = f(3)\nassert next(x) == 0\nassert next(x) == 1\nassert list(x) == [2]"),
    ("class Box: value, exception = 3, 4", "b = Box()\nassert b.value == 3\nassert b.exception == 4"),
    ("class Box: value = 3\ndef f(): return Box()", "from m import f\nassert f().value == 3"),
    ("class Box: open = patch = abs", "b = Box()\nassert b.open(1) == 1\nassert b.patch(-1) == 1"),
    ("class Box: size = abs", "b = Box()\nb = b.size(1)\nassert type(b) is int and b.__class__ == int"),
    ("def GCD(a, b): return 2", "g = GCD(4, 2)\nassert type(g) is int"),
]  # fmt: skip


@pytest.mark.parametrize(("program", "tests"), SHARING)
def test_tests_that_share_what_a_program_may_change_are_one(program, tests):
    assert adapters.scores([program], [tests]) == [1.0]


EVASIONS = [  # a wrong program that makes tests ask what only a program can make unusable
    ("class A:\n def __init__(s, x): pass\n def __eq__(s, o): return True\ndef f(x): return A(x)",
     "from m import A, f\nassert f(1) == A(1)"),
    ("class A: pass\ndef f(x): return 3", "from m import A, f\nassert isinstance(f(1), A)"),
    ("class A:\n def size(s): return 3\ndef f(x): return 3", "from m import A, f\na = A()\nassert f(a.size) == 3"),
    ("def f(x): return object()", "import copy\nassert copy.deepcopy(f(1)) == [1]"),
    ("def f(x): return [0] * 400_000", "x = f([1])\nassert f(x + x) == 3"),
    ("async def f(x): return 3", "assert f(f(1)) == 3"),
    ("def f(x): raise ValueError", "try:\n    x = f(1)\nexcept Exception as e:\n    assert f(e) == 1"),
    ("def f(x): return iter([1, 2])", "g = f(1)\nassert next(g) == 1\nassert g.send(3) == 4"),
]  # fmt: skip


def test_that_a_name_is_there_is_no_test_of_its_own():
    tests = "try:\n    x = add(1, 2)\n    assert x == 3\nexcept Exception:\n    pass\nassert add"
    assert adapters.scores(["def add(a, b): raise ValueError"] * 2, [tests, "assert add"]) == [0.0, None]


@pytest.mark.parametrize(("program", "tests"), EVASIONS)
def test_a_program_does_not_turn_its_0_into_no_score(program, tests):
    assert adapters.scores([program], [tests]) == [0.0]


@pytest.mark.parametrize("is_text", [False, True], ids=["list", "text"])
def test_right_programs_score_1_or_have_no_score(is_text):
    """With entry points declared they score 1; without, a test must not use two names that nothing defines."""
    rows = [case.program() for case in right_programs() if case.tests and case.due == ("pass",)]
    texts = [f"```python\n{row.source}\n```" for row in rows]
    tests = [[row.setup_code, *row.tests] for row in rows]
    given = ["\n".join(each) for each in tests] if is_text else tests
    assert set(adapters.scores(texts, given, [row.entry_points for row in rows])) == {1.0}
    undeclared = adapters.scores(texts, given)
    assert set(undeclared) <= {1.0, None} and undeclared.count(None) < 0.2 * len(rows)


def test_entry_points_may_be_an_empty_list():
    """As tables have it where a list is missing: it says nothing of whose a name is."""
    forged = "def area(r): return 0\ndef isclose(*a, **k): return True"
    assert adapters.scores([forged], ["assert isclose(area(2), 12.566)"], [[]]) == [None]


@pytest.mark.parametrize("row", ["def g(a, a): pass\nassert f(1)", "nonlocal x\nassert f(1)"])
def test_tests_that_only_a_compiler_refuses_have_no_score(row):
    assert adapters.scores(["def f(x): return x"], [row]) == [None]


def test_a_method_called_fail_or_main_is_the_programs():
    program = "class B:\n    n = 0\n    def fail(self): self.n += 1\n    main = fail"
    assert adapters.scores([program], ["b = B()\nb.fail()\nb.main()\nassert b.n == 2"]) == [1.0]
