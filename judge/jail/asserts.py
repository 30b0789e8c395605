"""A data set's Python, compiled so that its asserts tell what becomes of them before anything can catch that."""

import ast
import re
import types
from collections.abc import Iterator
from dataclasses import dataclass

NOTE = "__what_becomes_of_an_assert__"  # called as NOTE(what, name of the code, line)
IDENTITY = "__identity__"  # called as IDENTITY(operand) of `is`: references to one object of the program differ
HELD, FAILED = "held", "failed"
RAISED = "raised"  # its own expression raised, or a statement before it did in a block whose later part must raise
ENDED = "ended"  # its own expression raised, where an iterator may be exhausted
SKIPPED = "skipped"  # an exception left a block before the assert was evaluated
LOOKED_AT = "looked at"  # such an exception was caught, and the handler acts on it
EXPECTED = "expected"  # its own expression raised, in a block that must raise
MET = "met"  # such a block has raised; passed with the context manager that recorded the error
_CONTEXT = "__expects_{}_{}__"  # a variable name
_FAILS = "__it_fails__"  # a variable name
_TRIES = (ast.Try, ast.TryStar)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_BLOCKS = (ast.With, ast.AsyncWith, ast.For, ast.AsyncFor, ast.While)
_SIMPLE = (
    ast.Assert, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Delete, ast.Expr, ast.Import, ast.ImportFrom, ast.Pass,
)  # fmt: skip
_LEAVES = (ast.Return, ast.Continue, ast.Break)
_ENDS = {"StopIteration", "StopAsyncIteration"}
_at = ast.copy_location  # children get theirs once, at the end: each pass walks the tree


@dataclass
class Code:
    """A piece of the data set's Python, compiled."""

    text: str
    asserts: int
    straight: bool  # straight-line code that catches nothing: if it runs to its end, all its asserts have held
    code: types.CodeType


def noting(text: str, name: str) -> Code:
    """Compiles `text` with notes around its asserts; `name` is its file in tracebacks. Raises compile()'s errors."""
    tree = ast.parse(text, name)
    if re.search(r"\bis\b", text):
        tree = ast.fix_missing_locations(_Identities().visit(tree))
    if all(map(_is_straight, tree.body)):  # as in most tests: nothing to note
        asserts = sum(isinstance(node, ast.Assert) for node in tree.body)
        return Code(text, asserts, True, compile(tree, name, "exec", dont_inherit=True, optimize=0))
    nodes = list(ast.walk(tree))
    asserts = [node for node in nodes if isinstance(node, ast.Assert) or fails(node)]
    raising = {node.body[-1] for node in nodes if _is_to_raise(node)}
    noted = _Noting(name, set(_expecting(nodes)), set(_ending(nodes)), raising).visit(tree)
    code = compile(ast.fix_missing_locations(noted), name, "exec", dont_inherit=True)
    return Code(text, len(asserts), False, code)


def _is_straight(node: ast.stmt) -> bool:
    """True if a statement has no block. An assert's message must be constant: computing it could raise first."""
    return isinstance(node, _SIMPLE) and isinstance(getattr(node, "msg", None), ast.Constant | None)


def fails(node: ast.AST | None) -> bool:
    """True if a statement is an assert that cannot hold, such as the line after a call that must raise."""
    if isinstance(node, _BLOCKS):
        return any(map(fails, node.body))
    if isinstance(node, ast.Raise):
        kind = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        return isinstance(kind, ast.Name) and kind.id == "AssertionError"
    return isinstance(node, ast.Assert) and isinstance(node.test, ast.Constant) and not node.test.value


def _asserts(node: ast.AST) -> bool:
    """True if a node contains an assert, ignoring those inside functions."""
    return isinstance(node, ast.Assert) or (
        not isinstance(node, _FUNCTIONS) and any(map(_asserts, ast.iter_child_nodes(node)))
    )


def _expecting(nodes: list[ast.AST]) -> Iterator[ast.stmt]:
    """Yields every `try` that must reach one of its handlers.

    If nothing is raised, it runs into an assert that cannot hold: in its body, in its `else`, or right after it if
    all its handlers leave the block.
    """
    for node in nodes:
        for block in [getattr(node, name, None) for name in ("body", "orelse", "finalbody")]:
            for statement, following in zip(block, [*block[1:], None], strict=False) if isinstance(block, list) else ():
                if isinstance(statement, _TRIES):
                    leaves = all(isinstance(handler.body[-1], _LEAVES) for handler in statement.handlers)
                    if any(map(fails, (*statement.body, *statement.orelse))) or (fails(following) and leaves):
                        yield statement


def _ending(nodes: list[ast.AST]) -> Iterator[ast.AST]:
    """Yields the nodes that may exhaust an iterator: a handler or a `with` around them names StopIteration."""
    for node in nodes:
        handlers = [handler.type for handler in node.handlers] if isinstance(node, _TRIES) else []
        contexts = [item.context_expr for item in node.items] if isinstance(node, ast.With) else []
        if any(_ENDS & _names(expression) for expression in (*handlers, *contexts)):
            yield from (part for statement in node.body for part in ast.walk(statement))


def _is_to_raise(node: ast.AST) -> bool:
    """True if a statement is a `with assertRaises(...)` of unittest whose last statement is an assert.

    Such an assert is itself expected to raise. If a statement follows it, that one may be what must raise.
    """
    if not (isinstance(node, ast.With) and len(node.items) == 1 and isinstance(node.body[-1], ast.Assert)):
        return False
    call = node.items[0].context_expr
    return isinstance(call, ast.Call) and getattr(call.func, "attr", "") in ("assertRaises", "assertRaisesRegex")


def _looks(handler: ast.ExceptHandler) -> bool:
    """True if a handler acts on what it catches: more than leaving the block, printing or re-raising."""
    return not any(isinstance(part, ast.Raise) for part in ast.walk(handler)) and any(
        not isinstance(part, ast.Pass | ast.Continue | ast.Break)
        and not (isinstance(part, ast.Expr | ast.Return) and isinstance(part.value, ast.Constant | None))
        and not (isinstance(part, ast.Expr) and "print" in _names(part.value))
        for part in handler.body
    )


def _names(node: ast.AST | None) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)} if node else set()


class _Identities(ast.NodeTransformer):
    """Lets `is` and `is not` compare identities, unless an operand is a constant such as None."""

    def visit_Compare(self, node: ast.Compare) -> ast.Compare:
        self.generic_visit(node)
        operands = [node.left, *node.comparators]
        same = all(isinstance(operation, ast.Is | ast.IsNot) for operation in node.ops)
        if same and not any(isinstance(operand, ast.Constant) for operand in operands):
            node.left, *node.comparators = [ast.Call(_load(IDENTITY), [operand], []) for operand in operands]
        return node


class _Noting(ast.NodeTransformer):
    """Inserts the notes: an assert is noted when it has held, when it fails, and when its expression raises.

    A test may catch the last two, but then it has not passed; nor has it if an exception keeps an assert from being
    evaluated and no handler acts on it. A handler that must be reached counts as an assert that has held. A loop over
    an empty answer notes nothing.
    """

    def __init__(self, name: str, expecting: set[ast.stmt], ending: set[ast.AST], raising: set[ast.AST]):
        self._name, self._expecting, self._ending, self._raising = name, expecting, ending, raising

    def visit_Assert(self, node: ast.Assert) -> list[ast.stmt]:
        failing = _at(ast.Assign([ast.Name(_FAILS, ast.Store())], ast.UnaryOp(ast.Not(), node.test)), node)
        failed = [self._note(FAILED, node), ast.Assert(ast.Constant(False), node.msg)]
        branch = _at(ast.If(_load(_FAILS), failed, []), node)
        what = EXPECTED if node in self._raising else ENDED if node in self._ending else RAISED
        return [self._guarded([failing], what), branch, self._note(HELD, node)]

    def visit_Raise(self, node: ast.Raise) -> list[ast.stmt]:
        return [self._note(FAILED, node), node] if fails(node) else [node]

    def visit_Try(self, node: ast.Try) -> ast.Try:
        looking = [handler for handler in node.handlers if _looks(handler)]
        expects = node in self._expecting
        node.body = self._block(node.body, RAISED if expects else SKIPPED)
        node.handlers, node.orelse, node.finalbody = map(self._visited, (node.handlers, node.orelse, node.finalbody))
        for handler in node.handlers if expects else looking:
            handler.body[:0] = [self._note(what, handler) for what in (LOOKED_AT, HELD)[: 1 + expects]]
        return node

    def _visit_body(self, node: ast.stmt) -> ast.stmt:
        node.body = self._block(node.body, SKIPPED)
        return node

    def visit_With(self, node: ast.With) -> ast.stmt | list[ast.stmt]:
        if not _is_to_raise(node):
            return self._visit_body(node)
        name = _CONTEXT.format(node.lineno, node.col_offset)
        call = node.items[0].context_expr
        node.items[0].context_expr = ast.NamedExpr(ast.Name(name, ast.Store()), call)
        return [self._visit_body(node), self._note(MET, node, _load(name))]

    visit_TryStar = visit_Try
    visit_FunctionDef = visit_AsyncFunctionDef = visit_AsyncWith = _visit_body

    def _block(self, block: list[ast.stmt], what: str) -> list[ast.stmt]:
        """Returns the statements of a block, guarded up to its last assert that can hold."""
        awaited = [index for index, part in enumerate(block, start=1) if _asserts(part) and not fails(part)]
        end = max(awaited, default=0)
        before, after = self._visited(block[:end]), self._visited(block[end:])
        return [self._guarded(before, what), *after] if before else after

    def _visited(self, nodes: list) -> list:
        new = [self.visit(node) for node in nodes]
        return [node for part in new for node in (part if isinstance(part, list) else [part])]

    def _guarded(self, block: list[ast.stmt], what: str) -> ast.stmt:
        body = [self._note(what, block[0]), ast.Raise()]
        return _at(ast.Try(block, [ast.ExceptHandler(_load("BaseException"), None, body)], [], []), block[0])

    def _note(self, what: str, where: ast.AST, *more: ast.expr) -> ast.stmt:
        args = [ast.Constant(what), ast.Constant(self._name), ast.Constant(where.lineno), *more]
        return _at(ast.Expr(ast.Call(_load(NOTE), args, [])), where)


def _load(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())
