"""Programs with a small mistake or two each, and what plain Python says of them test by test."""

import ast
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from judge.worker import Program

OTHER = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


def mutants(source: str, most: int, seed: int) -> Iterator[str]:
    """Yields `most` programs: in each another node of `source` is changed, and two nodes once all have been."""
    dice, count = random.Random(seed), len(_changes(ast.parse(source)))
    single = [[place] for place in dice.sample(range(count), min(most, count))]
    for chosen in single + [dice.choices(range(count), k=2) for _ in range(most - len(single))]:
        tree = ast.parse(source)
        changes = _changes(tree)
        for place in chosen:
            changes[place]()
        yield ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _changes(tree: ast.AST) -> list[Callable[[], None]]:
    """Returns the calls that change a node of `tree` each."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in OTHER:
            found.append(partial(setattr, node, "op", OTHER[type(node.op)]()))
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in OTHER:
            found.append(partial(node.ops.__setitem__, 0, OTHER[type(node.ops[0])]()))
        elif isinstance(node, ast.Constant) and type(node.value) in (int, bool, float):
            other = not node.value if isinstance(node.value, bool) else node.value + 1
            found.append(partial(setattr, node, "value", other))
        elif isinstance(node, ast.Return) and node.value is not None:
            found.append(partial(setattr, node, "value", ast.Constant(None)))
        elif isinstance(node, ast.If | ast.While):
            found.append(partial(setattr, node, "test", ast.UnaryOp(ast.Not(), node.test)))
        elif isinstance(node, ast.Assign | ast.AugAssign | ast.Expr):
            found.append(partial(setattr, node, "__class__", ast.Pass))
        elif isinstance(node, ast.Call) and len(node.args) >= 2 and not isinstance(node.args[0], ast.Starred):
            found.append(node.args.reverse)
    return found


MODULE = """
import sys, types
module = sys.modules["program"] = types.ModuleType("program")
module.__file__ = "program.py"
with open("program.py") as file:
    exec(compile(file.read(), "program.py", "exec"), vars(module))
"""


def plainly(program: Program, folder: Path, seconds: float) -> list[bool] | None:
    """Whether each test passes in plain Python, in a process of its own; None where all take about `seconds` or more.

    A script is run as such; what has tests is loaded as a module, and set-up and test follow in its namespace.
    """
    start, passed = time.monotonic(), []
    for test in program.tests:
        (folder / "program.py").write_text(f"{program.source}\n{program.setup_code}\n{test}\n", encoding="utf-8")
        passed.append(_output(["-c", MODULE], "", folder, 2 * seconds) is not None)
    (folder / "program.py").write_text(program.source, encoding="utf-8")
    for given, expected in program.stdio:
        output = _output(["program.py"], given, folder, 2 * seconds)
        passed.append(output is not None and output.split() == expected.split())
    return passed if time.monotonic() - start < seconds / 2 else None


def _output(words: list[str], given: str, folder: Path, seconds: float) -> str | None:
    """The output of a Python command, None if it fails."""
    command, named = [sys.executable, "-B", *words], {"capture_output": True, "text": True, "check": False}
    environment = {"PYTHONHASHSEED": "0", "PYTHONUTF8": "1"}
    try:
        done = subprocess.run(command, input=given, cwd=folder, env=environment, timeout=seconds, **named)
    except (subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    return None if done.returncode else done.stdout
