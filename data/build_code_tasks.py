"""Builds programming tasks of our own making, with tests, a solution and a wrong program each.

    python data/build_code_tasks.py --out data/code_tasks.jsonl --seed 0

A file of data/code_tasks/TOPIC/ is a family, whose tasks are alike; its number is its place among the topic's. To add a
task, add it to the end of a file, or add a file. They are Python for the editor's sake, but are read in pieces:

    DRAW = lambda rng: (integers(rng),)   # the arguments of a random test, by functions of data/code_tasks/inputs.py
    EDGES = [([],), ([5],)]               # arguments chosen by hand; both are for all tasks of the file

    \"""Define `total(numbers)`: the sum of the integers in `numbers`.\"""
    EXAMPLE = ([1, 2],), 3                # arguments and result, worked out by hand; of a script, its input and output
    ORACLE = lambda numbers: ...          # may be left out: another way to solve it, which must agree

    def total(numbers):
        # wrong: return max(numbers)
        return sum(numbers)

A task may have EDGES of its own, which are added to the file's, and a DRAW, which replaces the file's. The wrong
program has what "# wrong: " says in place of the line below, and what "# wrong (2 lines): " says in place of two.

What a test expects is computed by the solution, and the solution is checked: against the example, and in many families
against the oracle. Every task is verified before anything is written: its solution passes all tests in time and leaves
its arguments alone, its wrong program and the trivial ones fail.
"""

import argparse
import ast
import contextlib
import copy
import io
import random
import re
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # the repository: `python data/...` puts only data/ there

from data.builders import options, write_rows
from data.code_tasks import inputs

FOLDER = Path(__file__).parent / "code_tasks"
TOPICS = ("strings", "arithmetic", "lists", "dynamic_programming", "graphs", "geometry")
SETTINGS = {"EXAMPLE", "EDGES", "DRAW", "ORACLE"}
TIMEOUT_S, MEMORY_MB = 2, 256  # a task's limits
POOL, LONGEST = 60, 600  # random inputs to choose from, characters of a test
HAND_CHOSEN, DRAWN = 3, 4  # tests of each kind; asserts may share a string, stdin programs get one drawn test less
TRIVIAL_RESULTS = ("None", "0", "1", "-1", "''", "[]", "()", "{}", "True", "False", "arguments[0]")
TRIVIAL_PROGRAMS = ("", "print(0)", "print(1)", "print(-1)", "print('YES')", "print('NO')", "print(input())",
                    "import sys; print(sys.stdin.read())")  # fmt: skip


def main() -> None:
    """Makes one row of every task, verifies each, shuffles and writes them."""
    args = parse_arguments()
    rows = [
        build(topic, family, number, task, random.Random(f"{args.seed} {topic} {family} {number}"))
        for topic in TOPICS
        for path in sorted((FOLDER / topic).glob("*.py"))
        for family in [path.stem.partition("_")[2]]
        for number, task in enumerate(read_family(path), 1)
    ]
    for row in rows:
        verify(row)
    for key in ("id", "prompt", "solution"):
        require_distinct([row[key] for row in rows], key)
    random.Random(args.seed).shuffle(rows)  # so that a prefix of the file holds all topics
    write_rows(args.out, rows)
    summarize(rows)


def parse_arguments() -> argparse.Namespace:
    """Returns the options."""
    return options(__doc__, "data/code_tasks.jsonl", metavar="FILE").parse_args()


def read_family(path: Path) -> Iterator[dict[str, Any]]:
    """Yields the tasks of a file: the settings of each, its statement, its solution and its wrong program."""
    text = path.read_text(encoding="utf-8")
    body = ast.parse(text).body
    starts = [index for index, node in enumerate(body) if ast.get_docstring(ast.Module([node], []))]
    shared = vars(inputs) | {"EDGES": [], "ORACLE": None}
    execute(body[: starts[0]], path, shared)
    for start, end in zip(starts, [*starts[1:], len(body)], strict=True):
        settings = list(takewhile(is_setting, body[start + 1 : end]))
        own = shared | {"EDGES": []}
        execute(settings, path, own)
        last_line = body[end].lineno - 1 if end < len(body) else None
        program = text.split("\n")[body[start + len(settings)].end_lineno : last_line]
        solution, wrong = right_and_wrong(program)
        yield own | {
            "EDGES": shared["EDGES"] + own["EDGES"],
            "statement": " ".join(ast.get_docstring(ast.Module([body[start]], [])).split()),
            "solution": solution,
            "wrong": wrong,
        }


def execute(statements: list[ast.stmt], path: Path, names: dict[str, Any]) -> None:
    """Runs some statements of a file."""
    exec(compile(ast.Module(statements, []), path, "exec"), names)


def is_setting(node: ast.stmt) -> bool:
    """True if a statement sets something of a task, and is no part of its program."""
    return isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in SETTINGS


def right_and_wrong(program: list[str]) -> tuple[str, str]:
    """Returns the program without its comments on the wrong one, and the wrong one."""
    right, wrong, instead, replaced = [], [], [], 0
    for line in program:
        if mark := re.fullmatch(r"( *)# wrong(?: \((\d+) lines\))?: ?(.*)", line):
            instead.append(mark[1] + mark[3])
            replaced = replaced or int(mark[2] or 1)
            continue
        right.append(line)
        if instead:
            wrong += instead if any(map(str.strip, instead)) else []
            instead = []
        wrong += [] if replaced else [line]
        replaced = max(0, replaced - 1)
    return tuple("\n".join(lines).strip() + "\n" for lines in (right, wrong))


def build(topic: str, family: str, number: int, task: dict[str, Any], rng: random.Random) -> dict:
    """Builds one row, on the example, the edge cases and the most telling inputs of a random pool."""
    where = f"{topic}/{family}-{number}"
    (arguments, expected), solution, wrong = task["EXAMPLE"], task["solution"], task["wrong"]
    stdio = isinstance(arguments, str)
    name = "" if stdio else [node.name for node in ast.parse(solution).body if isinstance(node, ast.FunctionDef)][-1]
    run, run_wrong = runner(solution, name), runner(wrong, name)
    hand_chosen = distinct([arguments, *task["EDGES"]])
    pool = distinct([task["DRAW"](rng) for _ in range(POOL)])
    check(run, arguments, expected, f"{where}: the example")
    if task["ORACLE"]:
        for item in hand_chosen + pool:
            check(run, item, task["ORACLE"](*copy.deepcopy(item)), f"{where}: the oracle")
    if stdio:
        hand_chosen = hand_chosen[:HAND_CHOSEN]
    hand_chosen.sort(key=lambda item: succeeds(run_wrong, item, run(item)))  # so that the wrong one fails few tests
    drawn = most_telling(run, run_wrong, hand_chosen, pool, DRAWN - stdio)
    cases = [(item, run(item)) for item in hand_chosen + drawn]
    asserts = [] if stdio else [assertion(name, *case) for case in cases]
    return {
        "id": where,
        "topic": topic,
        "family": f"{topic}/{family}",  # its tasks are alike: none may be held out while another is trained on
        "prompt": task["statement"],
        "tests": packed(asserts[:-DRAWN]) + asserts[-DRAWN:],
        "stdio": [{"stdin": item, "stdout": result} for item, result in cases] if stdio else [],
        "entry_points": [] if stdio else [name],
        "timeout_s": TIMEOUT_S,
        "memory_mb": MEMORY_MB,
        "solution": solution,
        "wrong": wrong,
    }


def runner(program: str, name: str) -> Callable[[Any], Any]:
    """Returns a function that runs `name` of a program on a copy of its arguments, or all of it on a text of stdin."""
    code = compile(program, "<task>", "exec")

    def call(arguments: tuple) -> Any:
        namespace: dict[str, Any] = {"__name__": "task"}
        exec(code, namespace)
        return namespace[name](*copy.deepcopy(arguments))

    def run_program(stdin: str) -> str:
        before, sys.stdin = sys.stdin, io.StringIO(stdin)
        try:
            with contextlib.redirect_stdout(io.StringIO()) as stdout:
                exec(code, {"__name__": "__main__"})
        finally:
            sys.stdin = before
        return stdout.getvalue()

    return call if name else run_program


def check(run: Callable, item: Any, expected: Any, who: str) -> None:
    """Checks that the solution gives what `who` says."""
    found = run(item)
    agrees = tidy(found) == tidy(expected) if isinstance(item, str) else same(found, expected)
    require(agrees, who, f"{item!r} gives {found!r}, not {expected!r}")


def most_telling(run: Callable, run_wrong: Callable, hand_chosen: list, pool: list, count: int) -> list:
    """Chooses `count` inputs of the pool: first those with new results, then those that unmask the wrong program."""
    known = [run(item) for item in hand_chosen]
    short = [item for item in pool if item not in hand_chosen and len(repr(item)) + len(repr(run(item))) < LONGEST - 80]
    unmasks = {repr(item): not succeeds(run_wrong, item, run(item)) for item in short}
    result: list = []
    while short and len(result) < count:
        need = sum(unmasks[repr(item)] for item in result) < (count + 1) // 2
        best = max(short, key=lambda item: (-known.count(run(item)), unmasks[repr(item)] == need))
        if need and len(result) == count - 1:
            best = max(short, key=lambda item: (unmasks[repr(item)], -known.count(run(item))))
        known.append(run(best))
        short.remove(best)
        result.append(best)
    return result


def assertion(name: str, arguments: tuple, expected: Any) -> str:
    """Returns one assert statement."""
    compare = "is" if expected is None or isinstance(expected, bool) else "=="
    return f"assert {name}({', '.join(map(repr, arguments))}) {compare} {expected!r}"


def packed(asserts: list[str]) -> list[str]:
    """Packs the statements evenly into at most HAND_CHOSEN strings."""
    count = min(HAND_CHOSEN, len(asserts))
    return ["\n".join(asserts[len(asserts) * i // count : len(asserts) * (i + 1) // count]) for i in range(count)]


def verify(row: dict) -> None:
    """Proves that the tests accept the solution and nothing that is plainly wrong."""
    where = row["id"]
    tests = row["tests"] or row["stdio"]
    require(4 <= len(tests) <= 7, where, f"{len(tests)} tests")
    require(all(len(text) < LONGEST and "assert " in text for text in row["tests"]), where, "a test is odd or too long")
    require(passes(row, row["solution"]) == len(tests), where, "the solution fails a test")
    wrong = passes(row, row["wrong"])
    require(wrong < len(tests), where, "the wrong program passes all tests")
    row_is_varied(row)
    for program in trivial_programs(row):
        require(passes(row, program) < len(tests), where, f"a trivial program passes all tests: {program!r}")
    for text in row["tests"]:
        require(leaves_arguments_alone(row, text), where, f"the solution changes its arguments: {text!r}")


def passes(row: dict, program: str) -> int:
    """Counts the row's tests that a program passes. A test that takes too long is not passed."""
    code = compile(program, "<program>", "exec")

    def ask(text: str) -> bool:
        namespace: dict[str, Any] = {"__name__": "task"}
        exec(code, namespace)
        exec(text, namespace)
        return True

    if row["stdio"]:
        run = runner(program, "")
        return sum(succeeds(run, case["stdin"], case["stdout"]) for case in row["stdio"])
    return sum(succeeds(ask, text, True) for text in row["tests"])


def succeeds(run: Callable, item: Any, expected: Any) -> bool:
    """True if a program gives what is expected, within the time limit."""
    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, TIMEOUT_S)
    try:
        found = run(item)
    except (Exception, SystemExit):
        return False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return tidy(found) == tidy(expected) if isinstance(item, str) and isinstance(found, str) else same(found, expected)


def stop(*_: Any) -> None:
    """Ends a program that takes too long."""
    raise TimeoutError


def tidy(text: str) -> str:
    """Strips blanks at the ends of lines, and empty lines at the end, from what a program printed."""
    return "\n".join(line.rstrip() for line in text.rstrip().split("\n"))


def same(found: Any, expected: Any) -> bool:
    """True if two values are equal and of one type: neither 1.0 for 1 nor a tuple for a list."""
    return found == expected and repr(found) == repr(expected)


def row_is_varied(row: dict) -> None:
    """Checks that the results of tests differ."""
    found = [case["stdout"] for case in row["stdio"]]
    found += [line.rpartition(") ")[2] for text in row["tests"] for line in text.split("\n")]
    least = 2 if {"is True", "is False"} & set(found) or len(found) < 6 else 3
    require(len(set(found)) >= least, row["id"], f"results are too much alike: {set(found)}")


def trivial_programs(row: dict) -> list[str]:
    """Returns programs that ignore the question."""
    if row["stdio"]:
        return list(TRIVIAL_PROGRAMS)
    name = row["entry_points"][0]
    return [f"def {name}(*arguments):\n    return {result}\n" for result in TRIVIAL_RESULTS]


def leaves_arguments_alone(row: dict, text: str) -> bool:
    """True if the solution's arguments are the same before and after the calls of a test."""
    namespace: dict[str, Any] = {"__name__": "task"}
    exec(row["solution"], namespace)
    name, changed = row["entry_points"][0], []
    solve = namespace[name]

    def watched(*arguments: Any) -> Any:
        before = repr(arguments)
        result = solve(*arguments)
        changed.append(repr(arguments) != before)
        return result

    exec(text, namespace | {name: watched})
    return not any(changed)


def distinct(items: list) -> list:
    """Removes repetitions, keeping the order. Items may be unhashable, and 1 is not True."""
    return list({repr(item): item for item in items}.values())


def require_distinct(items: list[str], what: str) -> None:
    """Raises SystemExit for the first repetition."""
    for item, count in Counter(items).items():
        require(count == 1, "all tasks", f"{what} {item!r} stands there {count} times")


def require(condition: bool, where: str, what: str) -> None:
    """Raises SystemExit with a message unless the condition holds."""
    if not condition:
        raise SystemExit(f"{where}: {what}")


def summarize(rows: list[dict]) -> None:
    """Prints a table by topic."""
    print(f"{'topic':<22}{'tasks':>7}{'templates':>11}{'of stdin':>10}{'tests':>7}")
    for topic in (*TOPICS, "all"):
        chosen = [row for row in rows if topic in (row["topic"], "all")]
        templates = {row["family"] for row in chosen}
        tests = sum(len(row["tests"] + row["stdio"]) for row in chosen)
        programs = sum(bool(row["stdio"]) for row in chosen)
        print(f"{topic:<22}{len(chosen):>7}{len(templates):>11}{programs:>10}{tests:>7}")


if __name__ == "__main__":
    main()
