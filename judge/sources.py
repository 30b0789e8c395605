"""A program's tests in any of their forms, read without running them.

Tests are one text, or a list of pieces; they are read as one module that runs from top to bottom. A test is a piece
with an assert, in one text a statement with one, and everywhere a function `test_...`, a method of a TestCase and a
call of `check`. Where statements share a variable that a program may make or change, all tests are one, as they stand.
docs/judge.md has the table.
"""

import ast
import functools
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from judge.errors import ConfigError
from judge.forms import APPROX, Rewriting
from judge.syntax import DEFINITIONS, Names, is_class, loaded_in, names_of, problems_in
from judge.worker import Program

_STANDING = (*DEFINITIONS, ast.Import, ast.ImportFrom)  # what runs nothing of the program
_CONDITIONAL = (ast.If, ast.For, ast.While, ast.Try, ast.Match)


def program_for(
    source: str, tests: str | Sequence[str], entry_points: Iterable[str] | None = None, module: str = ""
) -> Program:
    """Returns a program with its tests. Raises ConfigError for tests that no program could be judged by here.

    `entry_points`: what the tests may use of it. By default these are the names that they import from a module which
    is not there, `module` if that is known; if they import none, the one that they read and nothing in them binds.
    """
    pieces = tests if isinstance(tests, str) else tuple(tests)
    declared = tuple(name for name in entry_points or () if name) or None  # tables have [] where a list is missing
    return replace(_read(pieces, declared, module), source=source)


@dataclass(eq=False)
class _Unit:
    """A top-level statement of a text of tests, a piece of a list, or the call of a test."""

    texts: list[str] = field(default_factory=list)
    binds: set[str] = field(default_factory=set)
    sure: set[str] = field(default_factory=set)  # of these, whatever the conditions
    now: set[str] = field(default_factory=set)  # names that it reads from outside when it runs
    later: set[str] = field(default_factory=set)  # names that functions in it read when they are called
    asserts: bool = False
    calls: bool = False  # without a call it asks nothing: that a name is there says nothing of it
    stands: bool = True  # only imports, definitions and constants

    def add(self, statement: ast.stmt, asserting: set[str]) -> None:
        """Appends a statement. `asserting`: functions of the tests in which there are asserts."""
        text = ast.unparse(statement)
        binds, now, later = _names_of(statement, text)
        self.now |= now - self.sure
        self.binds |= binds
        self.sure |= set() if isinstance(statement, _CONDITIONAL) else binds
        self.later |= later
        stands = isinstance(statement, _STANDING)
        self.asserts |= _asserts(statement) or (not stands and _calls(statement, asserting))
        self.calls |= any(isinstance(node, ast.Call) for node in ast.walk(statement))
        self.stands &= stands or (isinstance(statement, ast.Assign) and _is_constant(statement.value))
        self.texts.append(text)


@functools.lru_cache(maxsize=1000)  # a group repeats its row
def _read(tests: str | tuple[str, ...], declared: tuple[str, ...] | None, module: str) -> Program:
    pieces = (tests,) if isinstance(tests, str) else tests
    if not pieces:
        raise ConfigError("tests: got an empty list, expected at least one piece of Python with an assert")
    try:
        pieces = tuple(re.sub("\r\n?", "\n", piece.removeprefix("\ufeff")) for piece in pieces)
        trees = [ast.parse(piece) for piece in pieces]
        with warnings.catch_warnings(action="ignore"):
            for piece in pieces:  # what only a compiler refuses, such as two parameters of one name
                compile(piece, "tests", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        for tree in trees:
            tree.body = [node for node in tree.body if not _is_idle(node)]
        rewriting = Rewriting(trees, module)
        trees = [ast.fix_missing_locations(rewriting.visit(tree)) for tree in trees]
        rewriting.check(trees)
        return _Reading(trees, rewriting, isinstance(tests, str)).program(declared)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ConfigError(f"tests: do not parse ({str(error) or type(error).__name__}); fix them") from error


class _Reading:
    """The units of a row's tests, and the names in them."""

    def __init__(self, trees: list[ast.Module], rewriting: Rewriting, is_text: bool):
        self._trees, self._rewriting, self._is_text = trees, rewriting, is_text
        self._nodes = [node for tree in trees for node in ast.walk(tree)]
        self._top = [node for tree in trees for node in tree.body]
        self._classes = {node.name: node for node in self._top if isinstance(node, ast.ClassDef)}
        functions = [node for node in self._top if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        self._asserting = {node.name for node in functions if any(map(_asserts, node.body))}
        while more := {node.name for node in functions if loaded_in(node) & self._asserting} - self._asserting:
            self._asserting |= more

    def program(self, declared: tuple[str, ...] | None) -> Program:
        """Returns the program without its source. Raises ConfigError."""
        units = list(self._units(declared))
        if declared is not None:
            declared = tuple(dict.fromkeys(name for text in declared for name in sorted(_names_in(text))))
        every = names_of(_joined(units))
        names, unknown = self._entry_points(every, declared)
        defined = {node.name for node in self._nodes if isinstance(node, DEFINITIONS)}
        for tree in self._trees:
            for line, sentence in problems_in(tree, set(names), every.binds, defined):
                raise ConfigError(f"tests: line {line} {sentence}")
        apart = not any(isinstance(node, ast.Global) for node in self._nodes)
        setup, tests = _divided(units, set(names), unknown - self._errors(), apart)
        return Program("", tests, entry_points=names, setup_code=setup, stateful=any(map(is_class, names)))

    def _units(self, declared: tuple[str, ...] | None) -> Iterator[_Unit]:
        if self._rewriting.approximates:
            yield self._unit(APPROX)
        called = set().union(*(loaded_in(node) for node in self._top if not isinstance(node, DEFINITIONS)))
        for tree in self._trees:
            runs = [node for node in tree.body if not isinstance(node, _STANDING)]
            is_piece = any(_asserts(node) or _calls(node, self._asserting) for node in runs)
            unit = None
            for node in tree.body:
                if isinstance(node, ast.Pass):
                    continue
                if unit is None or self._is_text or not is_piece:
                    unit = _Unit()
                    yield unit
                unit.add(node, self._asserting)
                for call in self._calls(node, called, declared):
                    yield self._unit(call, asserts=True)

    def _unit(self, text: str, asserts: bool = False) -> _Unit:
        unit = _Unit()
        for node in ast.parse(text).body:
            unit.add(node, self._asserting)
        unit.asserts = asserts
        return unit

    def _calls(self, node: ast.stmt, called: set[str], declared: tuple[str, ...] | None) -> Iterator[str]:
        """Yields the calls of the tests that a function or class is."""
        if isinstance(node, ast.FunctionDef) and node.name not in called:
            if node.name.startswith("test"):
                yield _call_of(node, self._rewriting.cases[node], node.name)
            elif node.name == "check" and not any("check" in loaded_in(tree) for tree in self._trees):
                names = tuple(self._rewriting.names.values()) if declared is None else declared
                if len(names) != 1:
                    raise ConfigError("tests: nothing calls check(candidate): give the row's entry_point with them")
                yield f"check({names[0]})"
        elif isinstance(node, ast.ClassDef):
            bases = list(self._bases(node))
            of_unittest = any(ast.unparse(name).endswith("TestCase") for base in bases for name in base.bases)
            body = [part for base in bases[::-1] for part in base.body]
            methods = {part.name: part for part in body if isinstance(part, ast.FunctionDef)}
            for name, method in methods.items():
                if name.startswith("test") and (of_unittest or node.name.startswith("Test")):
                    call = _call_of(method, self._rewriting.cases[method], f"_case.{name}")
                    begin = f"_case = {node.name}()"
                    if of_unittest:  # by `debug` with setUp and tearDown, and with errors as they are
                        begin, call = f"{node.name}.setUpClass()", f"{node.name}({name!r}).debug()"
                    elif prepare := methods.get("setup_method"):
                        begin += f"\n_case.setup_method({', '.join(['None'] * (len(prepare.args.args) - 1))})"
                    yield f"{begin}\n{call}"

    def _bases(self, node: ast.ClassDef) -> Iterator[ast.ClassDef]:
        yield node
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id in self._classes:
                yield from self._bases(self._classes[base.id])

    def _entry_points(self, every: Names, declared: tuple[str, ...] | None) -> tuple[tuple[str, ...], set[str]]:
        """Returns the names that the tests use of the program, and those of them that nothing says it defines."""
        given = tuple(dict.fromkeys(self._rewriting.names.values())) if declared is None else declared
        if both := every.binds & set(given):
            raise ConfigError(f"tests: bind {both.pop()}, which the program is to define: rename one of them")
        unknown = every.free - set(given)
        if given and unknown and not self._rewriting.star:
            raise ConfigError(
                f"tests: nothing defines {', '.join(sorted(unknown))}: import it, or declare it if the program is to "
                "define it"
            )
        names = (*given, *sorted(unknown))
        if not set(names) & (every.now | every.later):
            raise ConfigError("tests: use nothing of the program: call what it defines")
        return names, unknown

    def _errors(self) -> set[str]:
        """Returns the names that stand in `except` alone: a program that raises what it defines forges nothing."""
        caught = [node.type for node in self._nodes if isinstance(node, ast.ExceptHandler) and node.type]
        uses = Counter(node.id for node in self._nodes if isinstance(node, ast.Name))
        uses.subtract(node.id for kind in caught for node in ast.walk(kind) if isinstance(node, ast.Name))
        return {name for name, more in uses.items() if not more}


def _divided(units: list[_Unit], names: set[str], unknown: set[str], apart: bool) -> tuple[str, tuple[str, ...]]:
    """Returns the set-up, which runs nothing of the program, and the tests. Raises ConfigError if there are none."""
    live = set(names)
    while more := {name for unit in units if (unit.now | unit.later) & live for name in unit.binds} - live:
        live |= more
    runs = [unit for unit in units if unit.asserts or unit.now & live]
    others = [unit for unit in units if unit not in runs]
    needs = {unit: unit.now | unit.later for unit in runs}
    for reached in needs.values():  # and what the set-up reads for them
        while more := set().union(*(unit.now | unit.later for unit in others if unit.binds & reached)) - reached:
            reached |= more
    count = Counter(name for unit in units for name in unit.binds)
    variables = {name for unit in units for name in unit.binds if not unit.stands or count[name] > 1}
    is_tested = any(unit.asserts and needs[unit] & (live | variables) for unit in runs)
    if not is_tested or not any(unit.calls for unit in runs):
        raise ConfigError("tests: got no assert at top level and no function test_..., expected at least one test")
    apart &= all(unit.asserts and unit.calls and needs[unit] & live for unit in runs)
    if apart := apart and not _shared(units, needs) & variables:
        setup, tests = others, [[unit] for unit in runs]
    else:
        first = units.index(runs[0])
        setup, tests = units[:first], [units[first:]]
    for more in needs.values() if apart else [set().union(*needs.values())]:
        if len(more & unknown) > 1:
            shown = ", ".join(sorted(more & unknown))
            raise ConfigError(
                f"tests: ask {shown} in one test: is one of them a forgotten import? If the program defines them all, "
                f"write `from solution import {shown}`, or declare them as entry points"
            )
    return _joined(setup), tuple(map(_joined, tests))


def _shared(units: list[_Unit], needs: dict[_Unit, set[str]]) -> set[str]:
    """Returns the names that one unit uses and a later one may change, or the other way round."""
    shared, needed, bound, read = set(), set(), set(), set()
    for unit in units:
        if unit in needs:
            shared |= bound & needs[unit] | needed & unit.binds | read & unit.now
            needed |= needs[unit]
            bound |= unit.binds
            read |= unit.now
        else:
            shared |= needed & (unit.binds | unit.now if not unit.stands else unit.binds)
    return shared


def _joined(units: list[_Unit]) -> str:
    return "\n".join(text for unit in units for text in unit.texts)


def _names_of(statement: ast.stmt, text: str) -> Names:
    """Returns the names of a statement; it does not read from outside what it binds before."""
    binds, now, later = names_of(text)
    now = now - {str(part.name) for part in ast.walk(statement) if isinstance(part, ast.ExceptHandler)}
    if isinstance(statement, ast.AugAssign):
        now |= names_of(ast.unparse(statement.target)).now
    if isinstance(statement, ast.For):
        now -= names_of(ast.unparse(statement.target)).now
    return Names(binds, now, later)


def _is_constant(node: ast.expr) -> bool:
    """True for a value that no call can change."""
    try:
        hash(ast.literal_eval(node))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _names_in(text: str) -> set[str]:
    """Returns the names of an entry point, which may be an expression, such as Solution().add of HumanEval."""
    try:
        return loaded_in(ast.parse(text, mode="eval"))
    except (SyntaxError, ValueError) as error:
        raise ConfigError(f"entry_points: got {text[:60]!r}, expected names") from error


def _is_idle(node: ast.stmt) -> bool:
    """True for a statement that does nothing here, such as what runs the tests of a file that is executed."""
    if isinstance(node, ast.If):
        return "__name__" in loaded_in(node.test)
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _call_of(function: ast.FunctionDef, cases: list[tuple[list[str], str]], called: str) -> str:
    """Returns the call of a test, with the values of its `parametrize`. Raises ConfigError for other parameters."""
    given = {name for names, _ in cases for name in names}
    if function.decorator_list:
        raise ConfigError(f"tests: {function.name} has a decorator that is not understood: remove it")
    needed = len(function.args.args) - len(function.args.defaults)
    parameters = [arg.arg for arg in function.args.args["." in called : needed]]
    if missing := [name for name in parameters if name not in given]:
        raise ConfigError(f"tests: {function.name} takes {missing[0]}, which nothing gives it: write it into the test")
    lines = [f"{'    ' * depth}for _case_{depth} in {values}:" for depth, (_, values) in enumerate(cases)]
    passed = [f"**dict(zip({names!r}, _case_{depth}))" for depth, (names, _) in enumerate(cases)]
    return "\n".join([*lines, f"{'    ' * len(cases)}{called}({', '.join(passed)})"])


def _asserts(node: ast.AST) -> bool:
    """True if a node has an assert that runs when it does, not in a function that it defines."""
    if isinstance(node, ast.Raise):
        return "AssertionError" in loaded_in(node)
    inner = () if isinstance(node, (*DEFINITIONS, ast.Lambda)) else ast.iter_child_nodes(node)
    return isinstance(node, ast.Assert) or any(map(_asserts, inner))


def _calls(node: ast.AST, functions: set[str]) -> bool:
    """True if code calls one of some functions, or hands one on to another function that may."""
    calls = [part for part in ast.walk(node) if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)]
    return any(getattr(part, "id", "") in functions for call in calls for part in (call.func, *call.args))
