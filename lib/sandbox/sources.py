"""Python source, read without running it: the names that it defines, and the tests in a file of tests."""

import ast
import builtins
from collections.abc import Collection, Sequence

from lib.core.errors import ConfigError
from lib.sandbox.worker import Program


def split_tests(text: str, names: Collection[str], where: str) -> tuple[str, tuple[str, ...]]:
    """Splits a file of tests into set-up and tests. `names`: what the program defines. Raises ConfigError.

    A test is a top-level statement that asserts, or a function `test_...`, preceded by the earlier statements that use
    the program. All other statements are set-up. Imports of the program itself are left out.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise ConfigError(f"{where}: the tests do not parse ({error}); fix them") from error
    setup, before, tests = [], [], []
    theirs = set(names)  # and variables computed from them
    for statement in tree.body:
        source = ast.get_source_segment(text, statement)
        nodes = list(ast.walk(statement))
        if isinstance(statement, ast.ImportFrom) and {alias.name for alias in statement.names} <= set(names):
            continue
        if isinstance(statement, ast.FunctionDef) and statement.name.startswith("test_"):
            tests.append("\n".join([*before, source, f"{statement.name}()"]))
        elif isinstance(statement, ast.FunctionDef | ast.ClassDef):
            setup.append(source)
        elif any(isinstance(node, ast.Assert) for node in nodes):
            tests.append("\n".join([*before, source]))
        elif any(isinstance(node, ast.Name) and node.id in theirs for node in nodes):
            before.append(source)
            theirs |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        else:
            setup.append(source)
    if not tests:
        raise ConfigError(f"{where}: got no assert at top level and no function test_..., expected at least one test")
    return "\n".join(setup), tuple(tests)


def defined_names(source: str) -> tuple[str, ...]:
    """Returns the names of functions and classes at the top level of Python source, () if it does not parse."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    return tuple(node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef))


def program_for(source: str, tests: str | Sequence[str], entry_points: Collection[str] | None = None) -> Program:
    """Returns a program with its tests: pieces of Python, or one text to be split. Raises ConfigError without a test.

    `entry_points`: what the tests may use of it; by default every name that they read and nothing in them binds, so
    that the tests decide it, and not the program. Where they use a class of it, by a capitalised name, they may use its
    objects too.
    """
    names = free_names(tests if isinstance(tests, str) else "\n".join(tests)) if entry_points is None else entry_points
    setup, pieces = split_tests(tests, names, "tests") if isinstance(tests, str) else ("", tuple(tests))
    if not pieces:
        raise ConfigError("tests: got an empty list, expected at least one piece of Python with an assert")
    stateful = any(name.lstrip("_")[:1].isupper() for name in names)
    return Program(source, pieces, entry_points=tuple(names), setup_code=setup, stateful=stateful)


def free_names(tests: str) -> tuple[str, ...]:
    """Returns the names that Python source reads and binds nowhere, builtins left out; () if it does not parse."""
    try:
        nodes = list(ast.walk(ast.parse(tests)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    names = dict.fromkeys(node.id for node in nodes if isinstance(node, ast.Name))
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    bound |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    bound |= {(node.asname or node.name).partition(".")[0] for node in nodes if isinstance(node, ast.alias)}
    bound |= {node.name for node in nodes if isinstance(node, ast.ExceptHandler) and node.name}
    return tuple(name for name in names if name not in bound and not hasattr(builtins, name))
