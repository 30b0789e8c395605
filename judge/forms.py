"""Tests in the words of unittest and pytest, and imports of the program, rewritten as plain Python with asserts.

    self.assertEqual(f(1), 2)                    assert self.assertEqual(f(1), 2) is None
    with pytest.raises(ValueError): f(-1)        try: f(-1)  /  except ValueError: pass  /  else: assert False
    from solution import f as g; g(1)            f(1), and f is a name of the program
    import solution; solution.f(1)               f(1), likewise

A failed assertEqual raises AssertionError, which the first line turns into an assert that the examiner notes, whoever
catches it. An import is removed only where the jail has no such module: the program's name for a library function is
not what the tests mean by it.
"""

import ast
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import PathFinder
from typing import Any

from judge.errors import ConfigError

_IN_JAIL = {*sys.stdlib_module_names, "numpy"}
_APART = {  # what acts on one process alone
    "assertLogs", "assertNoLogs", "assertWarns", "assertWarnsRegex", "catch_warnings", "environ", "patch",
    "redirect_stderr", "redirect_stdout", "skipTest", "stderr", "stdin", "stdout",
}  # fmt: skip
_NOT_HERE = {"__file__", "input", "open", "subprocess", "tempfile"}  # names of what nothing in a sandbox can do
_HOOKS = {"setUpModule", "setup_class", "setup_function", "setup_module", "teardown_function"}
_DECIDING = {f"mark.{name}" for name in ("skip", "skipif", "xfail", "usefixtures", "asyncio")}  # what becomes of a test
APPROX = """
class _approx:
    __array_ufunc__ = None
    def __init__(self, expected, rel=None, abs=None, nan_ok=False):
        self.expected, self.rel, self.abs, self.nan_ok = expected, rel, abs, nan_ok
    def __eq__(self, actual):
        expected, actual = (value.tolist() if hasattr(value, "tolist") else value for value in (self.expected, actual))
        if type(expected) in (dict, list, tuple):
            keys = list(expected) if type(expected) is dict else range(len(expected))
            return type(actual) is type(expected) and len(actual) == len(expected) and all(
                (type(actual) is not dict or key in actual)
                and _approx(expected[key], self.rel, self.abs, self.nan_ok) == actual[key] for key in keys)
        if type(actual) is bool or not isinstance(actual, __import__("numbers").Number) or actual == expected:
            return actual == expected
        if expected != expected or actual != actual:
            return self.nan_ok and expected != expected and actual != actual
        if abs(expected) == float("inf"):
            return False
        rel = 1e-6 if self.rel is None and self.abs is None else self.rel or 0
        return abs(actual - expected) <= max(rel * abs(expected), 1e-12 if self.abs is None else self.abs)
"""
_RAISES = """
try:
    ...
except ({kinds}) as _raised:
    {name} = __import__('types').SimpleNamespace(value=_raised, exception=_raised, type=type(_raised))
    {name}.match = lambda text, error=_raised: __import__('re').search(text, str(error))
    assert __import__('re').search({text}, str(_raised))
else:
    assert False, 'nothing was raised'
"""


class Rewriting(ast.NodeTransformer):
    """Rewrites the trees of a row's tests, all imports of which it has read before. Raises ConfigError."""

    def __init__(self, trees: Sequence[ast.Module], module: str):
        """Reads the imports; `module`: what the program's own is known to be called, if it is."""
        self.names: dict[str, str] = {}  # what the tests import from the program's module, by their word for it
        self.star = False  # they import all of it
        self.approximates = False
        self.cases: dict[ast.AST, list[tuple[list[str], str]]] = {}  # of tests: names, values
        self._modules: set[str] = set()  # their words for the program's module
        self._pytest: dict[str, str] = {}  # their words for pytest ("") and its functions
        nodes = [node for tree in trees for node in ast.walk(tree)]
        self._defined = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
        imports = [part for node in nodes for part in _imports(node)]
        tops = {_top(module) for module, _, _ in imports} - _IN_JAIL - {"pytest"}
        is_known = bool(tops & {module, ""})  # "": by a relative import
        strange = [top for top in tops - {module, ""} if is_known or len(tops) > 1 or _is_other(top)]
        if strange:
            raise ConfigError(f"tests: import {sorted(strange)[0]}, which programs are judged without: remove it")
        for source, name, word in imports:
            if source == "pytest":
                self._pytest[word] = name
            elif _top(source) in _IN_JAIL:
                continue
            elif not name:
                self._modules.add(word)
            elif name == "*":
                self.star = True
            else:
                self.names[word] = name
        bound = {node.arg for node in nodes if isinstance(node, ast.arg)}
        bound |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        imported = {_top(word) for _, name, word in imports if not name}
        for node in nodes:
            of_test = isinstance(node, ast.Name) and node.id not in bound and node.id in _APART | _NOT_HERE
            if isinstance(node, ast.Attribute) and node.attr in _APART:
                thing = ast.unparse(node.value)
                of_test = thing in ("self", "mock") or thing.partition(".")[0] in imported
            if of_test or (isinstance(node, ast.FunctionDef) and node.name in _HOOKS):
                word = getattr(node, "id", getattr(node, "attr", getattr(node, "name", "")))
                raise ConfigError(
                    f"tests: use {word}, but the program runs in a process of its own, without files: test what it "
                    "returns"
                )
            if isinstance(node, ast.AsyncFunctionDef) and node.name.startswith("test"):
                raise ConfigError(f"tests: {node.name} is async: run a coroutine in a test, by asyncio.run")

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> Any:
        """Keeps what the jail has."""
        if isinstance(node, ast.ImportFrom):
            module = next(_imports(node))[0]
            return node if _top(module) in _IN_JAIL and module != "__future__" else ast.Pass()
        node.names = [alias for alias in node.names if _top(alias.name) in _IN_JAIL]
        return node if node.names else ast.Pass()

    visit_ImportFrom = visit_Import

    def visit_Name(self, node: ast.Name) -> Any:
        """Gives what is imported from the program the name that it has there."""
        node.id = self.names.get(node.id, node.id)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        """Turns `solution.f` into `f`."""
        if ast.unparse(node.value) in self._modules:
            self.names[node.attr] = node.attr
            return ast.Name(node.attr, node.ctx)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        """Takes the decorators of pytest off a test."""
        kept, cases = [], []
        for decorator in node.decorator_list:
            what = self.of_pytest(decorator.func if isinstance(decorator, ast.Call) else decorator)
            if what == "mark.parametrize":
                cases.append(self._cases(decorator))
            elif what is None:
                kept.append(decorator)
            elif not what.startswith("mark.") or what in _DECIDING:
                raise ConfigError(f"tests: use pytest.{what}; write what it does, or remove it")
        node.decorator_list, self.cases[node] = kept, cases
        return self.generic_visit(node)

    def _cases(self, call: Any) -> tuple[list[str], str]:
        named = {pair.arg: pair.value for pair in call.keywords}
        words, values = [*call.args, *(named[key] for key in ("argnames", "argvalues") if key in named)][:2]
        names = ast.literal_eval(words)
        values = self.visit(values)
        self.check([values])
        text = ast.unparse(values)
        if not isinstance(names, str):
            return list(names), text
        return names.replace(",", " ").split(), text if "," in names.strip(" ,") else f"zip({text})"

    def visit_Call(self, node: ast.Call) -> Any:
        """Replaces `pytest.approx`."""
        if self.of_pytest(node.func) == "approx":
            self.approximates = True
            node.func = ast.Name("_approx", ast.Load())
        return self.generic_visit(node)

    def visit_If(self, node: ast.If) -> Any:
        """Turns `if wrong: raise AssertionError` and `if wrong: assert False` into the assert that they are."""
        self.generic_visit(node)
        only = ast.unparse(node.body[0]) if len(node.body) == 1 and not node.orelse else ""
        fails = only.startswith(("raise AssertionError", "assert False"))
        return ast.Assert(ast.UnaryOp(ast.Not(), node.test)) if fails else node

    def visit_Expr(self, node: ast.Expr) -> Any:
        """Turns a call that must not fail into an assert."""
        call = node.value
        if not isinstance(call, ast.Call):
            return node
        word = ast.unparse(call.func).rpartition(".")[2]
        if ast.unparse(call.func) in ("main", "unittest.main", "pytest.main") and word not in self._defined:
            return ast.Pass()
        self.generic_visit(node)
        if "fail" in (self.of_pytest(call.func), ast.unparse(call.func).removeprefix("self.")):
            return ast.Raise(ast.Call(ast.Name("AssertionError", ast.Load()), call.args, []))
        if word.startswith("assert") and word not in self._defined:
            return ast.Assert(ast.Compare(node.value, [ast.Is()], [ast.Constant(None)]))
        return node

    def visit_With(self, node: ast.With) -> Any:
        """Turns a block that must raise into a `try`; its last assert raises where its value is computed."""
        call: Any = node.items[0].context_expr
        what = self.of_pytest(call.func) if isinstance(call, ast.Call) else None
        if isinstance(call, ast.Call) and ast.unparse(call.func) in ("self.assertRaises", "self.assertRaisesRegex"):
            what = "raises"
        name = node.items[0].optional_vars or ast.Name("_", ast.Store())
        self.generic_visit(node)
        if what != "raises" or len(node.items) != 1 or not isinstance(name, ast.Name):
            return node
        named = {pair.arg: pair.value for pair in call.keywords}
        given = [*call.args, *(named[key] for key in ("expected_exception", "match", "expected_regex") if key in named)]
        text = ast.unparse(given[1]) if len(given) > 1 else "''"
        made: Any = ast.parse(_RAISES.format(kinds=ast.unparse(given[0]), name=name.id, text=text)).body[0]
        *first, last = node.body
        raising = ast.Assign([ast.Name("_", ast.Store())], last.test) if isinstance(last, ast.Assert) else last
        made.body = [*first, raising]
        return made

    def of_pytest(self, node: ast.AST) -> str | None:
        """Returns the name of an expression in pytest, such as "mark.skip"; None if it is not from pytest."""
        if isinstance(node, ast.Attribute):
            before = self.of_pytest(node.value)
            return None if before is None else f"{before}.{node.attr}".lstrip(".")
        return self._pytest.get(node.id) if isinstance(node, ast.Name) else None

    def check(self, trees: Sequence[ast.AST]) -> None:
        """Raises ConfigError for what is left of pytest."""
        for node in (node for tree in trees for node in ast.walk(tree)):
            if isinstance(node, ast.Name) and node.id in self._pytest:
                raise ConfigError(f"tests: use more of pytest than raises, approx, fail and parametrize ({node.id})")


def _imports(node: Any) -> Iterator[tuple[str, str, str]]:
    """Yields the module of each import, what is imported from it, "" for itself, and the tests' word for that."""
    for alias in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
        word = alias.asname or alias.name
        if isinstance(node, ast.Import):
            yield alias.name, "", word
        else:  # a relative module begins with a dot
            yield "." * node.level + (node.module or ""), alias.name, word


def _top(module: str) -> str:
    return module.partition(".")[0]


def _is_other(top: str) -> bool:
    """True if a package of this name is installed here: it is no program to be judged."""
    return "-packages" in str(PathFinder.find_spec(top))
