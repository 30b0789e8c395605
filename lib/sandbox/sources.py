"""Python source, read without running it: the names that it defines, and a program's tests in any of their forms.

Tests are one text, or a list of pieces; they are read as one module that runs from top to bottom. A test is a piece
with an assert, in one text a statement with one, and everywhere a function `test_...`, a method of a TestCase and a
call of `check`. It is preceded by what it needs of the statements before it. docs/judge.md has the table.
"""

import ast
import builtins
import functools
import importlib
import re
import symtable
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from lib.core.errors import ConfigError
from lib.sandbox.forms import APPROX, Rewriting
from lib.sandbox.worker import Program

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_STANDING = (*_DEFINITIONS, ast.Import, ast.ImportFrom)  # what runs nothing of the program
_CONDITIONAL = (ast.If, ast.For, ast.While, ast.Try, ast.Match)
MOST_REPLAYED = 25  # times the length of a text: where tests that share variables are longer, they are one test
_AT_ONCE = ("listcomp", "setcomp", "dictcomp", "genexpr")
_KNOWN = ("collections", "dataclasses", "datetime", "decimal", "enum", "fractions", "pathlib", "typing", "unittest")
_PLAIN_WORDS = {
    word
    for module, names in {
        "builtins": "str bytes bytearray int float complex list tuple dict set range slice BaseException OSError",
        "collections": "deque", "datetime": "datetime timedelta", "decimal": "Decimal", "fractions": "Fraction",
        "types": "GeneratorType",
    }.items()
    for name in names.split()
    for word in dir(getattr(importlib.import_module(module), name))
} | {"shape", "dtype", "ndim", "size", "T", "tolist", "all", "any", "sum", "mean", "value", "exception"}  # fmt: skip


def defined_names(source: str) -> tuple[str, ...]:
    """Returns the names of functions and classes at the top level of Python source, () if it does not parse."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    return tuple(node.name for node in body if isinstance(node, _DEFINITIONS))


def program_for(
    source: str, tests: str | Sequence[str], entry_points: Iterable[str] | None = None, module: str = ""
) -> Program:
    """Returns a program with its tests. Raises ConfigError for tests that no program could be judged by here.

    `entry_points`: what the tests may use of it. By default these are the names that they import from a module which
    is not there, `module` if that is known; if they import none, those that they read and nothing in them binds.
    """
    pieces = tests if isinstance(tests, str) else tuple(tests)
    declared = tuple(name for name in entry_points or () if name) or None  # tables have [] where a list is missing
    return replace(_read(pieces, declared, module), source=source)


@dataclass
class _Unit:
    """A top-level statement of a text of tests, or a piece of a list."""

    text: str = ""
    binds: set[str] = field(default_factory=set)
    sure: set[str] = field(default_factory=set)  # of these, whatever the conditions
    now: set[str] = field(default_factory=set)  # names that it reads from outside when it runs
    later: set[str] = field(default_factory=set)  # names that functions in it read when they are called
    asserts: bool = False
    is_call: bool = False  # of a test function or method
    stands: bool = True  # only imports and definitions
    nodes: list[ast.stmt] = field(default_factory=list)
    shown: str = ""  # what a later test runs of a lone assert: its expression, which may change something

    def add(self, statement: ast.stmt, text: str, asserting: set[str]) -> None:
        """Appends a statement. `asserting`: functions of the tests in which there are asserts."""
        binds, now, later = _names_of(statement, text)
        self.now |= now - self.sure
        self.binds |= binds
        self.sure |= set() if isinstance(statement, _CONDITIONAL) else binds
        self.later |= later
        self.asserts |= _asserts(statement) or (not isinstance(statement, _STANDING) and _calls(statement, asserting))
        self.nodes.append(statement)
        self.stands &= isinstance(statement, _STANDING)
        self.shown = ""
        if isinstance(statement, ast.Assert) and not self.text:
            self.shown = f"try:\n    {ast.unparse(statement.test)}\nexcept Exception:\n    pass"
        self.text = f"{self.text}\n{text}" if self.text else text


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
        before = [[ast.dump(node) for node in tree.body] for tree in trees]
        trees = [rewriting.visit(tree) for tree in trees]
        split = [piece.encode().split(b"\n") for piece in pieces]
        trees = [ast.fix_missing_locations(tree) for tree in trees]
        rewriting.check(trees)
        texts = [
            [_text(node, lines, ast.dump(node) != was) for node, was in zip(tree.body, dumps, strict=True)]
            for tree, lines, dumps in zip(trees, split, before, strict=True)
        ]
    except (SyntaxError, ValueError, RecursionError, MemoryError, IndexError) as error:
        raise ConfigError(f"tests: do not parse ({str(error) or type(error).__name__}); fix them") from error
    return _Reading(trees, texts, rewriting, isinstance(tests, str)).program(declared)


class _Reading:
    """The units of a row's tests, and how names flow between them."""

    def __init__(self, trees: list[ast.Module], texts: list[list[str]], rewriting: Rewriting, is_text: bool):
        self._trees, self._texts, self._rewriting, self._is_text = trees, texts, rewriting, is_text
        self._nodes = [node for tree in trees for node in ast.walk(tree)]
        self._parents = {child: node for node in self._nodes for child in ast.iter_child_nodes(node)}
        top = [node for tree in trees for node in tree.body]
        self._functions = {node.name: node for node in top if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
        self._classes = {node.name: node for node in top if isinstance(node, ast.ClassDef)}
        self._parameters: dict[str, set[str]] = {}  # by name of a function or method
        for node in self._nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                own = {part.arg for part in ast.walk(node.args) if isinstance(part, ast.arg)}
                self._parameters.setdefault(node.name, set()).update(own - {"self", "cls"})
        self._calls_in_tests = [node for node in self._nodes if isinstance(node, ast.Call)]
        self._asserting = {name for name, node in self._functions.items() if any(map(_asserts, node.body))}
        while more := {name for name, node in self._functions.items() if _loads(node) & self._asserting}:
            if more <= self._asserting:
                break
            self._asserting |= more

    def program(self, declared: tuple[str, ...] | None) -> Program:
        """Returns the program without its source. Raises ConfigError."""
        units = list(self._units(declared))
        for node in (node for unit in units if unit.is_call for tree in unit.nodes for node in ast.walk(tree)):
            self._nodes.append(node)
            self._parents |= dict.fromkeys(ast.iter_child_nodes(node), node)
        if declared is not None:  # HumanEval's may be an expression, such as Solution().add
            declared = tuple(dict.fromkeys(name for text in declared for name in sorted(_loads(_parsed(text)))))
        names = self._entry_points(units, declared)
        flows = self._flows(set(names))
        if declared is None and (self._rewriting.star or not self._rewriting.names):
            self._check_apart(set(names), flows)
        self._check_use(set(names), declared is not None or bool(self._rewriting.names))
        asking = [call for call in self._calls_in_tests if any(flows.get(name) for name in _loads(call.func))]
        given = [part for call in asking for part in (*call.args, *(pair.value for pair in call.keywords))]
        changed = set().union(*map(_loads, given))  # perhaps, by the program
        for unit in units:  # what asserts nothing of the program is no test of it
            unit.asserts = unit.asserts and (unit.is_call or self._asks(unit, set(names), flows, changed))
        setup, tests = _divided(units, set(names))
        if not tests:
            raise ConfigError("tests: got no assert at top level and no function test_..., expected at least one test")
        return Program("", tuple(tests), entry_points=names, setup_code=setup,
                       stateful=self._use_objects(set(names), flows))  # fmt: skip

    def _units(self, declared: tuple[str, ...] | None) -> Iterator[_Unit]:
        if self._rewriting.approximates:
            yield self._unit(APPROX)
        top = [node for tree in self._trees for node in tree.body]
        called = set().union(*(_loads(node) for node in top if not isinstance(node, _DEFINITIONS)))
        for tree, texts in zip(self._trees, self._texts, strict=True):
            runs = [node for node in tree.body if not isinstance(node, _STANDING)]
            is_piece = any(_asserts(node) or _calls(node, self._asserting) for node in runs)
            unit, apart = None, self._is_text or not is_piece
            for node, text in zip(tree.body, texts, strict=True):
                if isinstance(node, ast.Pass):
                    continue
                if unit is None or apart:
                    unit = _Unit()
                    yield unit
                unit.add(node, text, self._asserting)
                for call in self._calls(node, called, declared):
                    yield self._unit(call, asserts=True)

    def _unit(self, text: str, asserts: bool = False) -> _Unit:
        unit = _Unit()
        for node in ast.parse(text).body:
            unit.add(node, ast.unparse(node), self._asserting)
        unit.asserts = unit.is_call = asserts
        return unit

    def _calls(self, node: ast.stmt, called: set[str], declared: tuple[str, ...] | None) -> Iterator[str]:
        """Yields the calls of the tests that a function or class is."""
        if isinstance(node, ast.FunctionDef) and node.name not in called:
            if node.name.startswith("test"):
                yield _call_of(node, self._rewriting.cases[node], node.name)
            elif node.name == "check" and not any("check" in _loads(tree) for tree in self._trees):
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
                    begin = [f"_case = {node.name}()"]
                    if of_unittest:
                        begin = [f"{node.name}.setUpClass()", f"_case = {node.name}({name!r})", "_case.setUp()"]
                    elif prepare := methods.get("setup_method"):
                        begin.append(f"_case.setup_method({', '.join(['None'] * (len(prepare.args.args) - 1))})")
                    yield "\n".join([*begin, _call_of(method, self._rewriting.cases[method], f"_case.{name}")])

    def _bases(self, node: ast.ClassDef) -> Iterator[ast.ClassDef]:
        yield node
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id in self._classes:
                yield from self._bases(self._classes[base.id])

    def _entry_points(self, units: list[_Unit], declared: tuple[str, ...] | None) -> tuple[str, ...]:
        bound = set().union(*(unit.binds for unit in units), *map(_starred, self._nodes))
        read = dict.fromkeys(name for unit in units for name in sorted(unit.now | unit.later))
        free = [name for name in read if not (name in bound or hasattr(builtins, name) or name.startswith("__"))]
        given = tuple(dict.fromkeys(self._rewriting.names.values())) if declared is None else declared
        if both := bound & set(given):
            raise ConfigError(f"tests: bind {both.pop()}, which the program is to define: rename one of them")
        unknown = [name for name in free if name not in given]
        if given and unknown and not self._rewriting.star:
            raise ConfigError(
                f"tests: nothing defines {', '.join(unknown)}: import it, or declare it if the program is to define it"
            )
        names = tuple(dict.fromkeys([*given, *unknown]))
        if not set(names) & set(read):
            raise ConfigError("tests: use nothing of the program: call what it defines")
        return names

    def _flows(self, names: set[str]) -> dict[str, set[str]]:
        """Returns by variable, parameter and function of the tests the names of the program that it depends on."""
        edges = [edge for node in self._nodes for edge in self._edges(node)]
        flows: dict[str, set[str]] = {name: {name} for name in names}
        changed = True
        while changed:
            changed = False
            for targets, sources in edges:
                more = set().union(*(flows.get(source, ()) for source in sources))
                for target in targets:
                    if not more <= flows.setdefault(target, set()):
                        flows[target] |= more
                        changed = True
        return flows

    def _edges(self, node: ast.AST) -> Iterator[tuple[set[str], set[str]]]:
        if isinstance(node, ast.Assign):
            yield set().union(*map(_names, node.targets)), _loads(node.value)
        elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value:
            yield _names(node.target), _loads(node.value)
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            yield _names(node.target), _loads(node.iter)
        elif isinstance(node, ast.If | ast.While | ast.Try):  # what is set there depends on what is asked
            asked = node.body if isinstance(node, ast.Try) else [node.test]
            stored = (part for part in ast.walk(node) if isinstance(getattr(part, "ctx", None), ast.Store))
            caught = {str(handler.name) for handler in getattr(node, "handlers", [])}
            yield caught.union(*map(_names, stored)), set().union(*map(_loads, asked))
        elif isinstance(node, ast.withitem) and node.optional_vars:
            yield _names(node.optional_vars), _loads(node.context_expr)
        elif isinstance(node, _DEFINITIONS):
            yield {node.name}, _loads(node)
            if not isinstance(node, ast.ClassDef):
                yield self._parameters[node.name], set().union(*map(_loads, node.args.defaults))
        elif isinstance(node, ast.Match):
            bound = {getattr(part, "name", None) for part in ast.walk(node)} - {None}
            yield {str(name) for name in bound}, _loads(node.subject)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):  # for what it does to its arguments
            called = {getattr(part.func, "id", "") for part in ast.walk(node.value) if isinstance(part, ast.Call)}
            yield _loads(node.value) - called, _loads(node.value)
        elif isinstance(node, ast.Call):
            given = set().union(*map(_loads, [*node.args, *node.keywords]))
            yield self._parameters.get(ast.unparse(node.func).rpartition(".")[2], set()), given
            if isinstance(node.func, ast.Attribute):
                yield _names(node.func.value), given

    def _asks(self, unit: _Unit, names: set[str], flows: dict[str, set[str]], changed: set[str]) -> bool:
        """True if an assert of a unit depends on an answer of the program, or a function that asserts is called."""
        nodes = [node for statement in unit.nodes for node in ast.walk(statement)]
        asked = [node.test for node in nodes if isinstance(node, ast.Assert)]
        asked += [node for node in nodes if isinstance(node, ast.Call) and _calls(node, self._asserting)]
        calls = [part for node in asked for part in ast.walk(node) if isinstance(part, ast.Call)]
        read = {name for part in asked for name in _loads(part)} - {*self._functions, *self._classes, *names}
        return any(isinstance(node, ast.Raise | ast.Try) for node in nodes) or any(
            flows.get(name) or name in changed for name in read.union(*map(_loads, calls))
        )

    def _check_apart(self, names: set[str], flows: dict[str, set[str]]) -> None:
        """Raises ConfigError if one assert depends on two names that nothing says the program defines.

        One of them may be an import that was forgotten, and the program would be asked for its own verdict. Classes
        are let through if what they are asked for is compared with data.
        """
        asked = [node.test for node in self._nodes if isinstance(node, ast.Assert | ast.If | ast.While)]
        while asked:
            test = asked.pop()
            if isinstance(test, ast.BoolOp):
                asked += test.values
                continue
            used = set().union(*(flows.get(name, set()) for name in _loads(test)))
            sides = [test.left, *test.comparators] if isinstance(test, ast.Compare) else []
            with_data = any(not any(flows.get(name) for name in _loads(side)) for side in sides)
            classes = with_data and all(_is_class(name) and not _is_known(name) for name in used)
            if len(used) > 1 and not classes:
                shown = ", ".join(sorted(used))
                raise ConfigError(
                    f"tests: ask {shown} in one assert: is one of them a forgotten import? If the program defines "
                    f"them all, write `from solution import {shown}`, or declare them as entry points"
                )

    def _check_use(self, names: set[str], is_declared: bool) -> None:
        """Raises ConfigError where a name of the program is used in a way that reaches no program."""
        called = {call.func.id for call in self._calls_in_tests if isinstance(call.func, ast.Name)}
        for node in self._nodes:
            if isinstance(node, ast.Name) and node.id in names and not self._is_use(node, names, called, is_declared):
                raise ConfigError(
                    f"tests: use {node.id} in line {node.lineno} as something else than a function: import it if it is "
                    "none of the program's, which can only be called"
                )
            if isinstance(node, ast.Assert) and isinstance(node.test, ast.Tuple) and node.test.elts:
                raise ConfigError("tests: assert a tuple, which is always true: remove the parentheses")
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Compare):
                raise ConfigError(f"tests: compare without an assert ({ast.unparse(node)}): add it")

    def _is_use(self, node: ast.Name, names: set[str], called: set[str], is_declared: bool) -> bool:
        """True if a name is called, handed on to where it may be, or a class whose attributes are read."""
        child, parent = node, self._parents[node]
        while isinstance(parent, ast.Tuple | ast.List | ast.Dict | ast.keyword | ast.Starred):
            child, parent = parent, self._parents[parent]
        if isinstance(parent, ast.Call):
            return parent.func is child or node.id in called or getattr(parent.func, "id", "") not in names
        if isinstance(parent, ast.Attribute):
            return is_declared or _is_class(node.id)
        if isinstance(parent, ast.For | ast.comprehension):
            return parent.iter is child
        return isinstance(parent, ast.Assign | ast.NamedExpr | ast.ExceptHandler | ast.Assert)

    def _use_objects(self, names: set[str], flows: dict[str, set[str]]) -> bool:
        """True if the tests use objects of the program: its classes, or what no plain value has."""
        calls = self._calls_in_tests
        answers = {
            name
            for node in self._nodes
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _loads(node.value.func) & names
            for name in _names(node.targets[0])
        }
        return (
            any(map(_is_class, names))
            or any(isinstance(node.func, ast.Call) and _loads(node.func.func) & names for node in calls)
            or any(isinstance(node.func, ast.Name) and node.func.id in answers for node in calls)
            or any(
                isinstance(node, ast.Attribute)
                and node.attr not in _PLAIN_WORDS
                and getattr(node.value, "id", "") not in ("self", "cls")
                and any(flows.get(name) for name in _loads(node.value))
                for node in self._nodes
            )
        )


def _divided(units: list[_Unit], names: set[str]) -> tuple[str, list[str]]:
    """Returns the set-up, which does not need the program, and the tests with what each needs of the units before."""
    counts: dict[str, int] = {}
    for name in (name for unit in units for name in unit.binds):
        counts[name] = counts.get(name, 0) + 1
    live, variables, setup, rest, tests = set(names), set(), [], [], []  # variables: those that the program may change
    changed = True
    while changed:  # a function may use one that is defined further down
        more = {name for unit in units if (unit.now | unit.later) & live for name in unit.binds}
        changed = not more <= live
        live |= more
    for unit in units:
        once = all(counts[name] == 1 for name in unit.binds)
        if once and not (unit.asserts or unit.now & live or (unit.now | unit.binds) & variables):
            setup.append(unit.text)
            continue
        variables |= (unit.now | unit.binds) - names if not unit.stands else set()
        if unit.asserts:
            tests.append("\n".join([*_before(rest, unit, variables), unit.text]))
        rest.append(unit)
    whole = "\n".join(unit.text for unit in rest)
    if sum(map(len, tests)) > MOST_REPLAYED * len(whole):
        tests = [whole]
    return "\n".join(setup), tests


def _before(rest: list[_Unit], unit: _Unit, variables: set[str]) -> list[str]:
    """Returns the texts of those earlier units that a test needs: what binds or may change what it reads."""
    needed, chosen = unit.now | unit.later, []
    for other in reversed(rest):
        shared = needed & variables
        if other.binds & needed or (not other.asserts and (other.now & shared or not other.binds)):
            chosen.append(other.text)
        elif other.shown and other.now & shared:
            chosen.append(other.shown)
        else:
            continue
        needed |= other.now | other.later
    return chosen[::-1]


def _names_of(statement: ast.stmt, text: str) -> tuple[set[str], set[str], set[str]]:
    """Returns the names that a statement binds, reads when it runs, and reads in functions that are called later."""
    top = symtable.symtable(text, "tests", "exec")
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
    now -= {str(part.name) for part in ast.walk(statement) if isinstance(part, ast.ExceptHandler)}
    if isinstance(statement, ast.AugAssign):
        now |= _names(statement.target)
    if isinstance(statement, ast.For):
        now -= _names(statement.target)
    if isinstance(statement, ast.With):
        now -= set().union(*(_names(item.optional_vars) for item in statement.items if item.optional_vars))
    return binds, now, later


def _parsed(name: str) -> ast.AST:
    try:
        return ast.parse(name, mode="eval")
    except (SyntaxError, ValueError) as error:
        raise ConfigError(f"entry_points: got {name[:60]!r}, expected names") from error


def _text(node: ast.stmt, lines: list[bytes], is_changed: bool) -> str:
    if is_changed or getattr(node, "decorator_list", None):  # which stand before the node's own first line
        return ast.unparse(node)
    part = lines[node.lineno - 1 : node.end_lineno]
    part[-1] = part[-1][: node.end_col_offset]
    part[0] = part[0][node.col_offset :]
    return b"\n".join(part).decode()


def _is_idle(node: ast.stmt) -> bool:
    """True for a statement that does nothing here, such as what runs the tests of a file that is executed."""
    if isinstance(node, ast.If):
        return "__name__" in _loads(node.test)
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _call_of(function: ast.FunctionDef, cases: list[tuple[list[str], str, bool]], called: str) -> str:
    """Returns the call of a test, with the values of its `parametrize`. Raises ConfigError for other parameters."""
    given = {name for names, *_ in cases for name in names}
    if function.decorator_list:
        raise ConfigError(f"tests: {function.name} has a decorator that is not understood: remove it")
    needed = len(function.args.args) - len(function.args.defaults)
    parameters = [arg.arg for arg in function.args.args["." in called : needed]]
    if missing := [name for name in parameters if name not in given]:
        raise ConfigError(f"tests: {function.name} takes {missing[0]}, which nothing gives it: write it into the test")
    lines = [f"{'    ' * depth}for _case_{depth} in {values}:" for depth, (_, values, _) in enumerate(cases)]
    passed = [
        f"**dict(zip({names!r}, {f'_case_{depth}' if are_tuples else f'[_case_{depth}]'}))"
        for depth, (names, _, are_tuples) in enumerate(cases)
    ]
    return "\n".join([*lines, f"{'    ' * len(cases)}{called}({', '.join(passed)})"])


def _asserts(node: ast.AST) -> bool:
    """True if a node has an assert that runs when it does, not in a function that it defines."""
    if isinstance(node, ast.Raise):
        return "AssertionError" in _loads(node)
    inner = () if isinstance(node, (*_DEFINITIONS, ast.Lambda)) else ast.iter_child_nodes(node)
    return isinstance(node, ast.Assert) or any(map(_asserts, inner))


def _calls(node: ast.AST, functions: set[str]) -> bool:
    """True if code calls one of some functions, or hands one on to another function that may."""
    calls = [part for part in ast.walk(node) if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)]
    return any(getattr(part, "id", "") in functions for call in calls for part in (call.func, *call.args))


def _starred(node: ast.AST) -> set[str]:
    """Returns the names that an import of everything binds; a module of the program has been taken out before."""
    if not isinstance(node, ast.ImportFrom) or node.names[0].name != "*":
        return set()
    try:
        module = importlib.import_module(node.module)
    except ImportError as error:
        raise ConfigError(f"tests: import {node.module}, which is not here ({error}): remove it") from error
    return set(getattr(module, "__all__", [name for name in dir(module) if not name.startswith("_")]))


def _loads(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _is_class(name: str) -> bool:
    return name.lstrip("_")[:1].isupper()


def _is_known(name: str) -> bool:
    """True for a name of the standard library that tests often need."""
    return any(hasattr(importlib.import_module(module), name) for module in _KNOWN)
