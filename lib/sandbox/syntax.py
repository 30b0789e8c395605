"""Code of tests, parsed once: its asserts, and the names that it defines, binds, reads and calls."""

import ast
import warnings
from functools import lru_cache
from typing import Any

LONGEST_TEST = 100_000  # bytes
LARGEST = 10**4300  # from which on Python writes no integer in digits, so no check could show or compare it
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_NAMING = (*DEFINITIONS, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)  # nodes whose `name` they bind


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


@lru_cache(maxsize=512)  # holds whole trees and parts of them
def nodes_in(tree: ast.AST) -> tuple[ast.AST, ...]:
    """Returns the tree's nodes, itself included."""
    return tuple(ast.walk(tree))


def asserts_in(tree: ast.AST) -> list[ast.expr]:
    """Returns what the assert statements ask."""
    return [node.test for node in nodes_in(tree) if isinstance(node, ast.Assert)]


def defined_in(tree: ast.AST) -> set[str]:
    """Returns the names of functions and classes."""
    return {node.name for node in nodes_in(tree) if isinstance(node, DEFINITIONS)}


def calls_by_name_in(tree: ast.AST) -> list[Any]:
    """Returns the calls of a plain name, such as `f(x)`."""
    return [node for node in nodes_in(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]


def loaded_in(tree: ast.AST) -> set[str]:
    """Returns the names that the code reads."""
    return {node.id for node in nodes_in(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def bound_in(tree: ast.AST) -> set[str]:
    """Returns the names that the code binds anywhere, parameters and imports included; "*" for `from x import *`."""
    names = set()
    for node in nodes_in(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, _NAMING):
            names.add(node.name)
    return names - {None}
