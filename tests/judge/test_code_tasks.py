import json
import subprocess
import sys
from pathlib import Path

import pytest

from data.check_code_tasks import check, ignorant_programs, read_tasks
from judge.tasks import (
    CodeTask,
    asked_names,
    read_task,
    static_problems,
)
from lib.core.errors import ConfigError

ROOT = Path(__file__).parents[2]
ADD = {
    "prompt": "Implement `add(a, b)`.",
    "tests": ["assert add(1, 2) == 3", "assert add(2, 2) == 4"],
    "solution": "def add(a, b):\n    return a + b\n",
    "wrong": "def add(a, b):\n    return a - b\n",
}
SQUARE = {
    "prompt": "Read a number, print its square.",
    "stdio": [{"stdin": "3\n", "stdout": "9\n"}, {"stdin": "4\n", "stdout": "16\n"}],
    "solution": "print(int(input()) ** 2)\n",
}


def write(path, *rows):
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def problems(**changes):
    """The sentences about the row of `add`, changed; None removes a key."""
    task, sentences = read_task(ADD | changes)
    return sentences + (static_problems(task) if task else [])


@pytest.mark.parametrize(
    ("tests", "names"),
    [
        (["assert add(1, 2) == 3"], {"add"}),
        (["assert sorted(f(x)) == list(range(3))"], {"f", "x"}),
        (["import math\nassert math.isclose(f(1), 2)"], {"f"}),
        (["from math import isclose as near\nassert near(f(1), 2)"], {"f"}),
        (["import os.path\nassert os(f(1))"], {"f"}),
        (["def helper(x):\n    return f(x)\nassert helper(1) == 2"], {"f"}),
        (["def check(candidate):\n    assert candidate(1) == 2\ncheck(f)"], {"f"}),  # passed, not called
        (["g = lambda x: x\nassert g(f(1)) == 2"], {"f"}),
        (["s = Stack()\ns.push(1)\nassert s.pop() == 1"], {"Stack"}),
        (["assert all(f(g) for g in [1])"], {"f"}),
        (["assert decode(encode('a')) == 'a'"], {"decode", "encode"}),
        (["assert f(", "assert g(1)"], {"g"}),
        (["def helper(x): pass\nassert f(1)", "assert helper(1)"], {"f", "helper"}),  # the second does not see it
        (["\0", "\ud800", "", "(" * 5000, "-" * 50_000 + "1"], set()),
        ([], set()),
    ],
)
def test_asked_names(tests, names):
    assert asked_names(tests) == names


def test_what_the_setup_defines_is_no_candidates():
    assert asked_names(["assert same(f(1), 1)"], "def same(a, b):\n    return a == b") == {"f"}


@pytest.mark.parametrize(
    ("tests", "names"),
    [
        (["assert f(1) == 1", "assert f(len('a')) == 1"], ("f",)),
        (["assert True"], ()),
        (["assert decode(encode('a')) == 'a'"], ()),  # both halves: two identities would pass
    ],
)
def test_the_one_name_that_is_asked_for_is_the_entry_point(tests, names):
    assert CodeTask(prompt="Implement `decode(text)`.", tests=tests).callables == names


def test_a_sound_row_has_no_problem():
    assert problems() == []
    assert problems(anything=[1], entry_points=None, timeout_s=1, stdio=[]) == []  # null is an absent key, 1 a number
    assert static_problems(read_task(SQUARE)[0]) == []


GIVEN, BAD, SUM = (
    {"entry_points": ["add"]},
    {"entry_points": ["add", "Bad"]},
    {"entry_points": ["Sum"], "stateful": True},
)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"prompt": None}, "prompt: missing"),
        ({"prompt": 3}, "prompt: got 3, expected a valid string"),
        ({"prompt": " \n"}, "prompt: got only whitespace"),
        ({"prompt": "a\ud800"}, r"prompt: holds '\ud800', NUL or half of a surrogate pair"),
        ({"prompt": "a\0"}, "prompt: holds '\\x00'"),
        ({"tests": "assert add(1, 2) == 3"}, "tests: got 'assert add(1, 2) == 3', expected a valid list"),
        ({"tests": [1]}, "tests[0]: got 1, expected a valid string"),
        ({"tests": None}, "got neither of tests and stdio"),
        ({"tests": []}, "got neither of tests and stdio"),
        ({"stdio": [{"stdin": "", "stdout": "1"}]}, "got both of tests and stdio"),
        ({"stdio": [{"stdin": ""}]}, "stdio[0].stdout: missing"),
        ({"stdio": [["", "1"]]}, "stdio[0]: got ['', '1'], expected"),
        ({"timeout_s": "2"}, "timeout_s: got '2', expected a valid number"),
        ({"timeout_s": True}, "timeout_s: got True, expected a valid number"),
        ({"timeout_s": 0.05}, "timeout_s: got 0.05, expected greater than or equal to 0.1"),
        ({"timeout_s": float("nan")}, "timeout_s: got nan"),
        ({"timeout_s": float("inf")}, "timeout_s: got inf"),
        ({"timeout_s": 10**400}, "timeout_s: got 1000"),
        ({"memory_mb": 5000}, "memory_mb: got 5000, expected less than or equal to 4096"),
        ({"memory_mb": 256.0}, "memory_mb: got 256.0, expected a valid integer"),
        ({"entry_points": "add"}, "entry_points: got 'add', expected a valid list"),
        ({"stateful": 1}, "stateful: got 1, expected a valid boolean"),
        ({"wrong": [None]}, "wrong[0]: got None, expected a valid string"),
        ({"entry_point": "add"}, "key 'entry_point' means nothing here; did you mean 'entry_points'?"),
        ({"tests": ["assert add(1, 2) =="]}, "tests[0]: does not parse (line 1: invalid syntax)"),
        ({"tests": ["assert add(1, 2) == 3\nreturn"]}, "tests[0]: does not parse (line 2: 'return' outside function)"),
        ({"tests": ["assert add(1, 2) == '\0'"]}, "tests[0]: holds '\\x00'"),
        ({"tests": ["assert add(1, 2) == 3 #" + "é" * 50_000]}, "tests[0]: got more than 100,000 bytes"),
        ({"tests": ["add(1, 2)"]}, "tests[0]: has no assert statement"),
        ({"tests": [""], "entry_points": ["add"]}, "tests[0]: has no assert statement"),
        ({"tests": ["assert add(1, 2) == 3", "x = 1\nassert x"]}, "tests[1]: never calls add"),
        ({"tests": ["add(1, 2)\nassert len([1]) == 1"]}, "tests[0]: line 2 asserts something about constants only"),
        ({"tests": ["assert (add(1, 2) == 3, 'text')"]}, "tests[0]: line 1 asserts a tuple"),
        ({"tests": ["assert f(g(1))"]}, "entry_points: cannot be inferred, the tests call f, g; declare entry_points"),
        ({"tests": ["assert len('a')"]}, "the tests call nothing that a candidate could define"),
        ({"entry_points": ["sum"], "tests": ["assert sum([1]) == 1"]}, "entry_points: 'sum' is a builtin"),
        ({"entry_points": ["add two"]}, "entry_points: 'add two' is not a function name"),
        ({"setup_code": "def add(a, b): pass", "entry_points": ["add"]}, "entry_points: 'add' is bound by the tests"),
        ({"tests": [f"x = 1\nassert add(1, 2) != 0x{'f' * 3600}"]}, "tests[0]: line 2 has an integer of more than"),
        ({"setup_code": "def"}, "setup_code: does not parse"),
        ({"solution": "def"}, "solution: does not parse"),
        ({"tests": ["assert add(1, other(2)) == 3"], **GIVEN}, "tests: nothing defines other"),
        ({"tests": ["assert add(lambda: 1, 2) == 3"]}, "passes a lambda to add; functions cannot cross the process"),
        ({"tests": ["assert add([len], 2) == 3"]}, "passes 'len' to add"),
        ({"tests": ["def key(x): pass\nassert add(1, b={'a': key}) == 3"]}, "tests[0]: line 2 passes 'key' to add"),
        ({"setup_code": "class Node: pass", "tests": ["assert add(Node, 2) == 3"]}, "passes 'Node' to add"),
        ({"tests": ["assert isinstance(add(1, 2), (int, Sum))"], **GIVEN}, "tests: nothing defines Sum"),
        ({"tests": ["assert type(Sum(1)) is Sum"], **SUM}, "line 1 asks for the type of an object of the candidate"),
        (
            {"tests": ["s = Sum(1)\ns.parts.append(2)\nassert s.parts == [2]"], **SUM},
            "line 2 changes s.parts, a copy",
        ),
    ],
    ids=str,
)
def test_each_mistake_has_its_sentence(changes, sentence):
    assert any(sentence in text for text in problems(**changes)), problems(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"tests": ["try:\n    add(1, '2')\n    assert False\nexcept TypeError:\n    pass"]},
        {"tests": ["len = 3\nassert add(len, 2) == 5"]},  # no longer a function
        {"tests": ["assert add(len('a'), max([1, 2], key=lambda x: -x)) == 2"]},  # its result crosses, not the lambda
        {"tests": ["class Node: pass\nassert not isinstance(add(1, 2), Node)"]},
        {"tests": ["assert isinstance(add(1, 2), int | float)"]},
        {"tests": ["def check(candidate):\n    assert candidate(1, 2) == 3\ncheck(add)"], "entry_points": ["add"]},
        {"setup_code": "def same(a, b):\n    return a == b", "tests": ["assert same(add(1, 2), 3)"]},
        {"tests": ["x = add(1, 2)\nassert x == 3"]},
        {"tests": [r"assert add('\d', '') == '\\d'"]},
        {"tests": ["assert add(1, 2) == 3\nassert True, 'never told'"]},
        {"tests": ["try:\n    add(1)\n    assert False\nexcept TypeError:\n    assert True"]},
        {"tests": ["assert Sum(1).total() == Sum(2).total()"], **SUM},
        {"tests": ["assert Sum(1) == 1 and Sum(2) > Sum(1) and max(Sum(1), Sum(2)) == (2,)"], **SUM},
        {"tests": ["assert Sum(1) + Sum(2) == Sum(3) and str(Sum(1) + Sum(2)) and isinstance(Sum(1), Sum)"], **SUM},
        {"tests": ["try:\n    add(1)\n    assert False\nexcept Bad:\n    pass\nassert add.calls == 1"], **BAD},
        {"tests": ["seen, s = [], Sum(1)\nseen.append(s)\ns.append(2)\nassert seen[0].parts == [1, 2]"], **SUM},
        {"tests": ["assert add('abc'.count('a'), 2) == 3"]},
        {"tests": ["from itertools import count\nassert add(next(count(1)), 2) == 3"]},
    ],
    ids=str,
)
def test_what_is_sound_is_left_alone(changes):
    assert problems(**changes) == []


def test_all_bad_lines_are_told_not_only_the_first(tmp_path):
    path = tmp_path / "tasks.jsonl"
    lines = ["\ufeff" + json.dumps(ADD), "", "[1]", "{", "null", "[" * 100_000, json.dumps(SQUARE)]
    path.write_bytes("\n".join(lines).encode() + b"\n\xff\n")
    rows, bad = read_tasks(path)
    assert [(line, row["prompt"]) for line, row in rows] == [(1, ADD["prompt"]), (7, SQUARE["prompt"])]
    assert [line for line, _ in bad] == [3, 4, 5, 6, 8]
    assert "got list, expected a JSON object" in bad[0][1]
    with pytest.raises(ConfigError, match="give a readable file"):
        read_tasks(tmp_path)


def test_a_report_counts_and_caps(tmp_path):
    path = write(tmp_path / "tasks.jsonl", ADD, ADD, SQUARE, *["x\x1b"] * 30)
    report = check(path, None)
    assert (len(report.rows), report.tests, report.solutions) == (3, 6, 3)
    assert report.problems[2] == ["prompt: the same as in line 1; remove one of the rows"]
    assert report.clean == [ADD, SQUARE]
    assert [(entry["line"], entry["row"]) for entry in report.quarantine[:2]] == [(2, ADD), (4, None)]
    text = report.text(shown=5)
    assert f"{path}:2: prompt: the same" in text and "\x1b" not in text
    assert text.endswith("... and 26 more")  # 31 problems
    assert "no program was run" in text


def test_a_report_of_an_odd_row_can_be_printed(tmp_path):
    row = ADD | {"entry_points": ["\x1b[31m\n"], "stdi\ud800": 1}
    text = check(write(tmp_path / "tasks.jsonl", row), None).text()
    text.encode()
    assert "\x1b" not in text


def test_solutions_pass_and_wrong_programs_do_not(tmp_path, sandbox):
    rows = [ADD, SQUARE, {key: ADD[key] for key in ("tests",)} | {"prompt": "No solution to `add(a, b)`."}]
    told = []
    report = check(write(tmp_path / "tasks.jsonl", *rows), sandbox, lambda done, rows: told.append((done, rows)))
    assert report.problems == {}
    assert (report.solutions, report.verified) == (2, 2)
    assert (report.wrong, report.refused) == (1 + 11 + 2 + 11, 1 + 11 + 2 + 11)
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert "not verified (no solution)  1" in report.text()


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (ADD | {"solution": "def add(a, b):\n    return 3\n"}, "the solution fails tests[1] (wrong: "),
        (ADD | {"solution": "def sub(a, b):\n    return 3\n"}, "the solution fails tests[0] ("),
        (SQUARE | {"solution": "print(9)"}, "the solution fails stdio[1] (wrong: "),
        (ADD | {"wrong": ["", ADD["solution"]]}, "wrong[1] passes all tests"),
        (ADD | {"tests": ["assert add(1, 2) != 4"]}, "a program that always returns None"),
        (ADD | {"tests": ["assert add(3, 0) == 3"]}, "a program that always returns its first argument"),
        (ADD | {"tests": ["assert not add(0, 0)"]}, "a program that always returns []"),
        (
            {
                "prompt": "Define `total(xs)`.",
                "tests": ["for n in range(9):\n    xs = list(range(n))\n    assert total(xs) == sum(xs)"],
            },
            "a program that always empties its arguments and returns 0",
        ),
        (
            ADD | {"tests": ["try:\n    add(1)\n    assert False\nexcept TypeError:\n    pass"]},
            "a program that always raises TypeError",
        ),
        (
            ADD | {"tests": ["try:\n    x = add(1, 2)\nexcept Exception:\n    x = 3\nassert x == 3"]},
            "a program that always raises Exception",
        ),
        (SQUARE | {"stdio": [{"stdin": "1\n", "stdout": "1\n"}]}, "a program that always prints its input"),
        (
            SQUARE | {"stdio": [{"stdin": "1\n", "stdout": ""}], "solution": "input()"},
            "a program that always prints nothing",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_weak_tests_and_bad_solutions_are_found(tmp_path, sandbox, row, sentence):
    report = check(write(tmp_path / "tasks.jsonl", row), sandbox)
    assert any(sentence in text for text in report.problems[1]), report.problems


def test_rows_that_read_badly_are_not_run(tmp_path, sandbox):
    row = ADD | {"tests": ["assert add(1, lambda: 2) == 3"]}
    report = check(write(tmp_path / "tasks.jsonl", row), sandbox)
    assert report.wrong == report.verified == 0
    assert len(report.problems[1]) == 1


def test_programs_that_know_nothing_are_programs():
    task = CodeTask.model_validate(ADD)
    answers = []
    for what, source in ignorant_programs(task):
        names = {}
        exec(source, names)
        if what.startswith("raises"):
            with pytest.raises(Exception, match="refused"):
                names["add"](7, b=8)
            continue
        answers.append([names["add"](7, 8), names["add"](b=9)])
    assert answers[:8] == [[value] * 2 for value in (None, 0, 1, True, False, "", [])] + [[7, 9]]
    assert answers[8:] == [[[], []], [0, 0]]


def run(*arguments):
    command = [sys.executable, ROOT / "data/check_code_tasks.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_command_parts_the_rows_and_tells_by_its_exit_code(tmp_path):
    bad = ADD | {"prompt": "x", "tests": ["assert True"]}
    path, clean = write(tmp_path / "tasks.jsonl", ADD, bad), tmp_path / "a/good.jsonl"
    quarantine = tmp_path / "bad.jsonl"
    result = run(path, "--allow-unsafe", "--workers", "2", "--clean", clean, "--quarantine", quarantine)
    assert result.returncode == 2, result.stderr
    assert (
        "solutions verified          1 of 2" in result.stdout and f"{path}:2: tests[0]: line 1 asserts" in result.stdout
    )
    assert [json.loads(line) for line in clean.read_text().splitlines()] == [ADD]
    (entry,) = map(json.loads, quarantine.read_text().splitlines())
    assert entry["line"] == 2 and entry["row"] == bad and len(entry["problems"]) == 2
    assert run(clean, "--static").returncode == 0


def test_the_command_does_not_overwrite_its_input(tmp_path):
    path = write(tmp_path / "tasks.jsonl", ADD)
    result = run(path, "--static", "--clean", tmp_path / "." / "tasks.jsonl")
    assert result.returncode == 2 and "one path twice" in result.stderr
    assert "Traceback" not in result.stderr
