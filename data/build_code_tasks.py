"""Builds programming tasks of our own making, with tests, a solution and a wrong program each.

    python data/build_code_tasks.py --out data/code_tasks.jsonl --seed 0

The templates in data/code_task_templates/ say what is asked and solve it; inputs are hand-chosen or drawn by the seed.
What a test expects is computed by the solution, and the solution is checked: against an example worked out by hand,
in many families also against a second way to solve the task. Every task is verified before anything is written: its
solution passes all tests in time and leaves its arguments alone, its wrong program and the trivial ones fail.
"""

import argparse
import ast
import contextlib
import copy
import io
import json
import random
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from string import Template
from typing import Any

from code_task_templates import arithmetic, dynamic_programming, geometry, graphs, lists, strings
from code_task_templates.common import Family, Variant

TOPICS = {module.__name__.rpartition(".")[2]: module.FAMILIES
          for module in (strings, arithmetic, lists, dynamic_programming, graphs, geometry)}  # fmt: skip
TIMEOUT_S, MEMORY_MB = 2, 256  # a task's limits
POOL, LONGEST = 60, 600  # random inputs to choose from, characters of a test
HAND_CHOSEN, DRAWN = 3, 4  # tests of each kind; asserts may share a string, stdin programs get one drawn test less
TRIVIAL_RESULTS = ("None", "0", "1", "-1", "''", "[]", "()", "{}", "True", "False", "arguments[0]")
TRIVIAL_PROGRAMS = ("", "print(0)", "print(1)", "print(-1)", "print('YES')", "print('NO')", "print(input())",
                    "import sys; print(sys.stdin.read())")  # fmt: skip


def main() -> None:
    """Makes one row of every variant, verifies each, shuffles and writes them."""
    args = parse_arguments()
    rows = [
        build(topic, family, variant, number, random.Random(f"{args.seed} {topic} {family.name} {number}"))
        for topic, families in TOPICS.items()
        for family in families
        for number, variant in enumerate(family.variants, 1)
    ]
    for row in rows:
        verify(row)
    for key in ("id", "prompt", "solution"):
        require_distinct([row[key] for row in rows], key)
    random.Random(args.seed).shuffle(rows)  # so that a prefix of the file holds all topics
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with open(args.out, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    summarize(rows)


def parse_arguments() -> argparse.Namespace:
    """Returns the options."""
    result = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    result.add_argument("--out", type=Path, default=Path("data/code_tasks.jsonl"), metavar="FILE")
    result.add_argument("--seed", type=int, default=0)
    return result.parse_args()


def build(topic: str, family: Family, variant: Variant, number: int, rng: random.Random) -> dict:
    """Builds one row, on the example, the edge cases and the most telling inputs of a random pool."""
    where = f"{topic}/{family.name}-{number}"
    values = {"f": family.name} | variant.values
    wrong = family.wrong if isinstance(family.wrong, str) else spoilt(family.solution, family.wrong, where)
    texts = [fill(text, values, where) for text in (family.prompt, family.solution, wrong, family.oracle)]
    prompt, solution, wrong, oracle = texts
    solution, wrong = without_unused(solution), without_unused(wrong)
    name = "" if family.stdio else values["f"]
    run, run_wrong = runner(solution, name), runner(wrong, name)
    hand_chosen = distinct([variant.arguments, *family.edges, *variant.edges])
    pool = distinct([(variant.draw or family.draw)(rng) for _ in range(POOL)])
    check_example(run, variant, where)
    if oracle:
        check_oracle(run, runner(oracle, name), hand_chosen + pool, where)
    if family.stdio:
        hand_chosen = hand_chosen[:HAND_CHOSEN]
    hand_chosen.sort(key=lambda item: succeeds(run_wrong, item, run(item)))  # so that the wrong one fails few tests
    drawn = most_telling(run, run_wrong, hand_chosen, pool, DRAWN - family.stdio)
    stdio = [{"stdin": item, "stdout": run(item)} for item in hand_chosen + drawn] if family.stdio else []
    asserts = [] if family.stdio else [assertion(name, item, run(item)) for item in hand_chosen + drawn]
    return {
        "id": where,
        "topic": topic,
        "family": f"{topic}/{family.name}",  # its tasks are alike: none may be held out while another is trained on
        "prompt": prompt,
        "tests": packed(asserts[:-DRAWN]) + asserts[-DRAWN:],
        "stdio": stdio,
        "entry_points": [] if family.stdio else [name],
        "timeout_s": TIMEOUT_S,
        "memory_mb": MEMORY_MB,
        "solution": solution,
        "wrong": wrong,
    }


def spoilt(solution: str, replacements: dict[str, str], where: str) -> str:
    """Returns the solution with each replacement applied; raises SystemExit for one that changes nothing."""
    for old, new in replacements.items():
        require(old in solution, where, f"{old!r} is not in the solution")
        solution = solution.replace(old, new)
    return solution


def fill(text: str, values: dict[str, str], where: str) -> str:
    """Returns the text with the variant's values in place of its $words. Raises SystemExit where that fails."""
    try:
        return Template(text).substitute(values).strip() + ("\n" if "\n" in text else "")
    except (KeyError, ValueError) as error:
        raise SystemExit(f"{where}: cannot fill {text!r}: {error}") from None


def without_unused(program: str) -> str:
    """Returns the program without imports and local variables of its family that this variant does not use."""
    tree = ast.parse(program)
    loaded = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    rows = program.split("\n")
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Assign) and all(isinstance(target, ast.Name) for target in node.targets):
            names = [target.id for target in node.targets]
        if names and not loaded & set(names):
            del rows[node.lineno - 1 : node.end_lineno]
            return without_unused("\n".join(rows).strip() + "\n")
    return program


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


def check_example(run: Callable, variant: Variant, where: str) -> None:
    """Checks that the solution gives what a person worked out."""
    expected, found = variant.expected, run(variant.arguments)
    if isinstance(variant.arguments, str):
        expected, found = tidy(expected), tidy(found)
    require(same(expected, found), where, f"{variant.arguments!r} gives {found!r}, the example says {expected!r}")


def check_oracle(run: Callable, run_oracle: Callable, inputs: list, where: str) -> None:
    """Checks that the solution gives what another way to solve the task gives."""
    for item in inputs:
        found, expected = run(item), run_oracle(item)
        require(same(found, expected), where, f"{item!r} gives {found!r}, the oracle says {expected!r}")


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
    """Tells whether a program gives what is expected, within the time limit."""
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
    """Tells whether two values are equal and of one type: neither 1.0 for 1 nor a tuple for a list."""
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
    """Tells whether the solution's arguments are the same before and after the calls of a test."""
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
