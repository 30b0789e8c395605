"""Code of tests, read without running it: its names, and what in it no program could be judged by.

Rows of a data set (tasks.py) and tests in all forms (sources.py) are read by these rules.
"""

import ast
import builtins
import importlib
import symtable
import warnings
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from judge.jail.asserts import fails

LONGEST_TEST = 100_000  # bytes
LARGEST = 10**4300  # from which on Python writes no integer in digits, so no check could show or compare it
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_OPERATIONS = (ast.Compare, ast.BinOp, ast.UnaryOp, ast.Subscript, ast.FormattedValue)  # of values, not of functions
_AT_ONCE = ("listcomp", "setcomp", "dictcomp", "genexpr")
_CHANGES = frozenset({"append", "extend", "insert", "remove", "clear", "sort", "reverse", "add", "discard", "update"})


@lru_cache(maxsize=256)  # the checks of one row parse the same code repeatedly
def parse(code: str) -> tuple[ast.Module | None, str]:
    """Returns the syntax tree and "", or None and the reason. The tree is cached: callers must not change it."""
    if len(code) > LONGEST_TEST or len(code.encode("utf-8", "surrogatepass")) > LONGEST_TEST:
        return None, f"got more than {LONGEST_TEST:,} bytes"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in a test is not reported
            tree = ast.parse(code)
            compile(tree, "<test>", "exec", dont_inherit=True)  # also finds a return outside a function
    except SyntaxError as error:
        return None, f"does not parse (line {error.lineno}: {error.msg})"
    except (ValueError, RecursionError, MemoryError) as error:
        return None, f"does not parse ({error or type(error).__name__})"
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value >= LARGEST:
            return None, f"line {node.lineno} has an integer of more than 4,300 digits; compute it, as in 2**20000"
    return tree, ""


def tree_of(code: str) -> ast.Module | None:
    """Returns the syntax tree of code, None if it does not parse."""
    return parse(code)[0]


def loaded_in(tree: ast.AST) -> set[str]:
    """Returns the names that the code reads."""
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def is_class(name: str) -> bool:
    """True if a name is written as a class: with a capital."""
    return name.lstrip("_")[:1].isupper()


class Names(NamedTuple):
    """The names of some code at module level."""

    binds: set[str]
    now: set[str]  # read when it runs, from outside or not
    later: set[str]  # read by functions in it when they are called

    @property
    def free(self) -> set[str]:
        """Returns the names that are read and neither bound nor builtin."""
        names = (self.now | self.later) - self.binds
        return {name for name in names if not (hasattr(builtins, name) or name.startswith("__"))}


@lru_cache(maxsize=2000)
def names_of(code: str) -> Names:
    """Returns the names of code that compiles; what it imports by `*` is looked up."""
    top = symtable.symtable(code, "tests", "exec")
    binds = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    now = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_referenced()}
    later: set[str] = set()
    waiting = [(table, False) for table in top.get_children()]
    while waiting:
        table, deferred = waiting.pop()
        deferred |= table.get_type() != "class" and table.get_name() not in _AT_ONCE
        for symbol in table.get_symbols():
            if symbol.is_global() and symbol.is_referenced():
                (later if deferred else now).add(symbol.get_name())
            if symbol.is_declared_global() and symbol.is_assigned():
                binds.add(symbol.get_name())
        waiting += [(child, deferred) for child in table.get_children()]
    if "import *" in code or "import*" in code:
        binds.update(*map(_starred, ast.walk(ast.parse(code))))
    return Names(binds, now, later)


def _starred(node: ast.AST) -> set[str]:
    """Returns the names that an import of everything binds."""
    if not isinstance(node, ast.ImportFrom) or node.names[0].name != "*":
        return set()
    try:
        module = importlib.import_module(node.module or "")
    except (ImportError, ValueError):
        return set()
    return set(getattr(module, "__all__", [name for name in dir(module) if not name.startswith("_")]))


def problems_in(tree: ast.AST, names: set[str], bound: set[str], defined: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yields (line, sentence) for what proves nothing about a program, or cannot be done across processes.

    `names`: what the program defines; `bound`: what the tests bind; `defined`: their functions and classes.
    """
    nodes: list[Any] = list(ast.walk(tree))
    asserts = [node for node in nodes if isinstance(node, ast.Assert)]
    functions = names | {node.name for node in nodes if isinstance(node, DEFINITIONS)} | set(defined)
    functions |= {name for name in vars(builtins).keys() - bound if callable(getattr(builtins, name))}
    made = {name for name in names if is_class(name)}
    assigned = [node for node in nodes if isinstance(node, ast.Assign)]
    new = [node for node in assigned if getattr(getattr(node.value, "func", None), "id", "") in made]
    instances = {target.id for node in new for target in node.targets if isinstance(target, ast.Name)}
    # `assert False` counts: it stands after a line that must raise
    says_something = any(loaded_in(node) - vars(builtins).keys() or fails(node) for node in asserts)
    guards = any(isinstance(node, ast.Try | ast.With) for node in nodes)
    if asserts and not guards and all(map(fails, asserts)):
        yield asserts[0].lineno, "asserts only what must not be reached; let the test assert what must"
    for node in asserts:
        if isinstance(node.test, ast.Tuple) and node.test.elts:
            yield node.lineno, "asserts a tuple, which is always true; remove the parentheses"
        elif not says_something:
            yield node.lineno, "asserts something about constants only; compare the result of a call"
    for node in nodes:
        if isinstance(node, _OPERATIONS) and not (isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is)):
            for part in ast.iter_child_nodes(node):
                if isinstance(part, ast.Name) and part.id in names:
                    yield part.lineno, f"uses {part.id} as a value; of a program only what can be called is here"
        for base in node.bases if isinstance(node, ast.ClassDef) else ():
            if getattr(base, "id", "") in names:
                yield node.lineno, f"extends {ast.unparse(base)}, which is in another process; test the class itself"
        call = node.value if isinstance(node, ast.Expr) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _CHANGES:
            part = call.func.value
            if isinstance(part, ast.Attribute) and loaded_in(part) & instances:
                yield node.lineno, f"changes {ast.unparse(part)}, a copy of what the candidate has; call its methods"
        # type(x) is C, x.__class__ == C, and the same in a call such as assertIs(type(x), C)
        parts = [node.left, *node.comparators] if isinstance(node, ast.Compare) else getattr(node, "args", [])
        has_class = isinstance(parts, list) and any(getattr(part, "id", "") in made for part in parts)
        if has_class and ("type" in loaded_in(node) or any(getattr(part, "attr", "") == "__class__" for part in parts)):
            yield node.lineno, "asks for the type of an object of the candidate, which is not here; use isinstance"
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            for sentence in _problems_of_call(node, name, names, functions, made | instances):
                yield node.lineno, sentence


def _problems_of_call(call: ast.Call, name: str, names: set[str], functions: set[str], made: set[str]) -> Iterator[str]:
    for value in _passed(call) if name in names and isinstance(call.func, ast.Name) else ():
        if isinstance(value, ast.Lambda) or (isinstance(value, ast.Name) and value.id in functions):
            what = "a lambda" if isinstance(value, ast.Lambda) else f"'{value.id}'"
            yield f"passes {what} to {name}; functions cannot cross the process boundary, so pass data"
    if name in ("copy", "deepcopy") and call.args and loaded_in(call.args[0]) & made:
        yield "copies an object of the candidate, which is not here; test the copies that it makes itself"


def _passed(call: ast.Call) -> Iterator[ast.AST]:
    """Yields the arguments of a call, and the elements of literals among them.

    It does not descend into calls, lambdas, comparisons or attributes: what is passed there is their result.
    """
    waiting: list[ast.AST] = [*call.args, *(pair.value for pair in call.keywords)]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.Call | ast.Lambda | ast.Compare | ast.Attribute):
            waiting += ast.iter_child_nodes(node)
