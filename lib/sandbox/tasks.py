"""Programming tasks as rows of JSONL: their schema, and the checks that find rows which would teach the wrong thing.

    {"prompt": "Implement `add(a, b)`.", "tests": ["assert add(1, 2) == 3", "assert add(0, 0) == 0"]}
    {"prompt": "Read a number, print its square.", "stdio": [{"stdin": "3\\n", "stdout": "9\\n"}]}

`CodeTask` lists the other keys. The checks here only read rows, before training too; those of trials.py run programs.
"""

import ast
import builtins
import difflib
import keyword
import re
import reprlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from lib.core.errors import ConfigError
from lib.run.runlog import read_lines
from lib.sandbox.syntax import (
    DEFINITIONS,
    asserts_in,
    bound_in,
    calls_by_name_in,
    defined_in,
    loaded_in,
    nodes_in,
    parse,
    tree_of,
)
from lib.sandbox.worker import Program

_BUILTINS = frozenset(dir(builtins))
_BUILTIN_CALLABLES = frozenset(name for name in _BUILTINS if callable(getattr(builtins, name)))
_UNFIT = re.compile("[\0\ud800-\udfff]")  # not allowed in a source, a pipe or a file
_ASK_A_RESULT = frozenset({"str", "repr", "format", "len", "list", "tuple", "sorted", "iter", "bool"})
_CHANGES = frozenset({"append", "extend", "insert", "remove", "clear", "sort", "reverse", "add", "discard", "update"})
_CATCHES = re.compile(r"(?i)\bsuppress$|raises")  # contextlib.suppress, unittest's assertRaises, and names like them
_NAMED_IN_PROMPT = re.compile(
    r"\b(?:define|implement|write|def)\s+(?:[^`\n]{0,40}`)?(?:def\s+)?(\w+)\s*\(", re.IGNORECASE
)


class Stdio(BaseModel):
    """Describes one run of a whole program."""

    model_config = ConfigDict(strict=True, frozen=True)

    stdin: str
    stdout: str  # expected output


class CodeTask(BaseModel):
    """Describes one row.

    Types are strict: a number is not a string, nor a string a list. null counts as absent; other keys are ignored.
    """

    model_config = ConfigDict(strict=True, frozen=True)

    prompt: str
    tests: list[str] = []  # Python with assert statements; either these or stdio
    stdio: list[Stdio] = []
    timeout_s: Annotated[float, Field(ge=0.1, le=60)] = 2.0  # for all tests together
    memory_mb: Annotated[int, Field(ge=64, le=4096)] = 256
    entry_points: list[str] = []  # names that the candidate defines; [] = inferred by infer_entry_points
    setup_code: str = ""  # runs before each test, in its namespace: imports, helpers
    stateful: bool = (
        False  # tests call methods of objects that the candidate returns, and operators of classes that they name
    )
    solution: str = ""
    wrong: list[str] = []  # programs that must fail; one alone needs no list

    @model_validator(mode="before")
    @classmethod
    def _drop_null(cls, row: dict) -> dict:
        return {key: value for key, value in row.items() if value is not None}  # tables fill absent keys with null

    @field_validator("wrong", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @model_validator(mode="after")
    def _has_one_kind_of_test(self) -> "CodeTask":
        if bool(self.tests) == bool(self.stdio):
            raise ValueError(f"got {'both' if self.tests else 'neither'} of tests and stdio: give one of them")
        return self

    @cached_property
    def callables(self) -> tuple[str, ...]:
        """Returns the declared entry points, else the inferred one; () if there is none."""
        if self.stdio:
            return ()
        return tuple(self.entry_points) or infer_entry_points(self.tests, self.prompt, self.setup_code)

    def program(self, source: str) -> Program:
        """Returns what a sandbox needs to judge `source` on this task."""
        return Program(
            source=source,
            tests=tuple(self.tests),
            stdio=tuple((case.stdin, case.stdout) for case in self.stdio),
            entry_points=self.callables,
            setup_code=self.setup_code,
            stateful=self.stateful,
            timeout_s=self.timeout_s,
            memory_mb=self.memory_mb,
        )


def read_tasks(path: Path) -> tuple[list[tuple[int, dict]], list[tuple[int, str]]]:
    """Returns the rows of a JSONL file with their line numbers, and the problem of every line that is no JSON object.

    Line numbers start at 1; blank lines are skipped. Raises ConfigError for a file that cannot be read.
    """
    try:
        lines = list(read_lines(path))
    except OSError as error:
        raise ConfigError(f"'{path}' cannot be read ({error.strerror or error}); give a readable file") from error
    rows = [(line.number, line.row) for line in lines if line.row is not None]
    return rows, [(line.number, f"{line.problem}: fix or remove it") for line in lines if line.problem]


def read_task(row: dict) -> tuple[CodeTask | None, list[str]]:
    """Returns the task of a row, or None, and one sentence per mistake in its types or in the spelling of a key."""
    absent = [key for key in CodeTask.model_fields if row.get(key) is None]
    found = []
    for key in row.keys() - CodeTask.model_fields.keys():
        close = difflib.get_close_matches(key, absent, n=1, cutoff=0.8)
        if close:
            found.append(f"key '{key}' means nothing here; did you mean '{close[0]}'? Rename one of them")
    try:
        task = CodeTask.model_validate(row)
    except ValidationError as error:
        return None, sorted(found) + [_sentence(problem) for problem in error.errors()]
    return task, sorted(found)


def _sentence(problem: Any) -> str:
    """Rewrites one of pydantic's errors in the style of this project's messages."""
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in problem["loc"])[1:]
    if problem["type"] == "value_error":
        return str(problem["ctx"]["error"])
    if problem["type"] == "missing":
        return f"{where}: missing; add it"
    return f"{where}: got {reprlib.repr(problem['input'])}, expected {problem['msg'].removeprefix('Input should be ')}"


def called_names(tests: Sequence[str], setup_code: str = "") -> set[str]:
    """Returns the names that the tests call, except builtins and names bound by the same test or by the setup code.

    A test that does not parse calls nothing. Tests do not see each other's names.
    """
    trees = [tree for tree in map(tree_of, tests) if tree]
    called = set().union(*({call.func.id for call in calls_by_name_in(tree)} - bound_in(tree) for tree in trees))
    setup = tree_of(setup_code)
    return called - _BUILTINS - (bound_in(setup) if setup else set())


def infer_entry_points(tests: Sequence[str], prompt: str = "", setup_code: str = "") -> tuple[str, ...]:
    """Returns the one name that the tests call, or the one of several that the prompt asks for; else ().

    Never two: a task that asks for `decode` and tests `decode(encode(x)) == x` must supply `encode`, or declare that
    the candidate supplies both, since a candidate that writes both halves passes with two identity functions.
    """
    names = called_names(tests, setup_code)
    if len(names) > 1:
        names &= set(_NAMED_IN_PROMPT.findall(prompt))
    return tuple(names) if len(names) == 1 else ()


def static_problems(task: CodeTask) -> list[str]:
    """Returns the problems of a task that can be found without running programs, one sentence each."""
    texts = {"prompt": task.prompt, "setup_code": task.setup_code, "solution": task.solution}
    texts |= {f"tests[{index}]": test for index, test in enumerate(task.tests)}
    texts |= {f"wrong[{index}]": source for index, source in enumerate(task.wrong)}
    texts |= {f"stdio[{index}]": case.stdin + case.stdout for index, case in enumerate(task.stdio)}
    found = [
        f"{where}: holds {odd[0]!a}, NUL or half of a surrogate pair; remove it"
        for where, text in texts.items()
        if (odd := _UNFIT.search(text))
    ]
    if not task.prompt.strip():
        found.append("prompt: got only whitespace, expected a task; write one")
    code = [where for where in texts if where.startswith("tests") or where in ("setup_code", "solution")]
    broken = [f"{where}: {why}; fix it" for where in code if (why := parse(texts[where])[1])]
    if broken or not task.tests:
        return found + broken  # further checks would report errors that follow from the broken code
    return found + list(_problems_of_tests(task))


def _problems_of_tests(task: CodeTask) -> Iterator[str]:
    setup, trees = tree_of(task.setup_code), [tree_of(test) for test in task.tests]
    bound = [bound_in(tree) | bound_in(setup) for tree in trees]  # per test: tests share only the setup
    names = set(task.callables)
    if not names:
        called = ", ".join(sorted(called_names(task.tests, task.setup_code))) or "nothing that a candidate could define"
        yield f"entry_points: cannot be inferred, the tests call {called}; declare entry_points"
    for name in sorted(names):
        if not name.isidentifier() or keyword.iskeyword(name):
            yield f"entry_points: '{name}' is not a function name; fix it"
        elif name in _BUILTINS:
            yield f"entry_points: '{name}' is a builtin, which a missing function would leave in place; rename it"
        elif any(name in names_of_test for names_of_test in bound):
            yield f"entry_points: '{name}' is bound by the tests or setup_code themselves; rename one of them"
    unknown = called_names(task.tests, task.setup_code) - names
    if names and unknown and not any("*" in names_of_test for names_of_test in bound):
        yield (
            f"tests: nothing defines {', '.join(sorted(unknown))}; define it in setup_code, or add it to entry_points "
            "if the candidate is to supply it"
        )
    helpers = {node.name: node for node in nodes_in(setup) if isinstance(node, DEFINITIONS)}
    for index, tree in enumerate(trees):
        where = f"tests[{index}]"
        asserts = asserts_in(tree)
        helped = [helpers[name] for name in loaded_in(tree) & helpers.keys()]
        if not asserts and not any(map(asserts_in, helped)):
            yield f"{where}: has no assert statement; add one"
        if names and not any(names & loaded_in(part) for part in (tree, *helped)):
            yield f"{where}: never calls {' or '.join(sorted(names))}; fix or remove it"
        for line in _caught_asserts(tree):
            yield f"{where}: line {line} is an assert whose failure is caught, and fails the test all the same; use if"
        # `assert False` counts: it stands after a line that must raise
        says_something = any(loaded_in(test) - _BUILTINS or ast.unparse(test) == "False" for test in asserts)
        for test in asserts:
            if isinstance(test, ast.Tuple) and test.elts:
                yield f"{where}: line {test.lineno} asserts a tuple, which is always true; remove the parentheses"
            elif not says_something:
                yield f"{where}: line {test.lineno} asserts something about constants only; compare the result of a "
                "call"
        functions = names | defined_in(tree) | defined_in(setup) | (_BUILTIN_CALLABLES - bound[index])
        for line, sentence in _crossings(tree, names, bound[index], functions - names, task.stateful):
            yield f"{where}: line {line} {sentence}"
        for line, sentence in _only_there(tree, names, bound[index]):
            yield f"{where}: line {line} {sentence}"


def _crossings(
    tree: ast.AST, names: set[str], bound: set[str], functions: set[str], stateful: bool
) -> Iterator[tuple[int, str]]:
    """Yields (line, sentence) for values that cannot cross between the test's process and the candidate's."""
    for call in calls_by_name_in(tree):
        if call.func.id in names:
            for value in _passed(call):
                if isinstance(value, ast.Lambda) or (isinstance(value, ast.Name) and value.id in functions):
                    what = "a lambda" if isinstance(value, ast.Lambda) else f"'{value.id}'"
                    yield (
                        call.lineno,
                        f"passes {what} to {call.func.id}; functions cannot cross the process boundary, so pass data",
                    )
        elif call.func.id == "isinstance" and len(call.args) == 2:
            for name in sorted(loaded_in(call.args[1])):
                if not ({name, "*"} & bound or name in _BUILTINS or (stateful and name in names)):
                    yield (
                        call.lineno,
                        f"asks for isinstance of the candidate's '{name}', which exists only in its process; test its "
                        "behaviour, or set stateful",
                    )


def _only_there(tree: ast.AST, names: set[str], bound: set[str]) -> Iterator[tuple[int, str]]:
    """Yields (line, sentence) for operations that only the candidate's own process could perform."""
    made = {name for name in names if name.lstrip("_")[:1].isupper()}
    for node in calls_by_name_in(tree):
        first = node.args[0] if node.args else None
        if node.func.id == "type" and _makes(first, made):
            yield node.lineno, "asks for the type of an object of the candidate, which is not here; use isinstance"
        elif node.func.id in _ASK_A_RESULT - bound and isinstance(first, ast.BinOp) and made & loaded_in(first):
            sides = first.left, first.right
            if any(_makes(side, made) for side in sides) and any(isinstance(side, ast.Constant) for side in sides):
                yield node.lineno, f"asks {node.func.id} of what an operator made of data; look at its attributes"
        elif node.func.id in names:
            for endless in (value for value in _passed(node) if _is_endless(value, bound)):
                yield node.lineno, f"passes {ast.unparse(endless)}, which has no end; pass its first items"
    objects = [bound_in(node) for node in nodes_in(tree) if isinstance(node, ast.Assign) and _makes(node.value, made)]
    for call in [node.value for node in nodes_in(tree) if isinstance(node, ast.Expr)]:
        method = getattr(call, "func", None)
        part = method.value if isinstance(method, ast.Attribute) and method.attr in _CHANGES else None
        if isinstance(part, ast.Attribute) and loaded_in(part) & set().union(*objects):
            yield (
                call.lineno,
                f"changes {ast.unparse(part)}, which is a copy of what the candidate has; call its methods",
            )


def _makes(node: ast.AST | None, made: set[str]) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in made


def _is_endless(node: ast.AST, bound: set[str]) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = ast.unparse(node.func)
    return name.removeprefix("itertools.") in ("count", "cycle") and name.partition(".")[0] in bound


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


def _caught_asserts(tree: ast.AST) -> list[int]:
    """Returns the lines of asserts inside code that catches AssertionError.

    `assert False`, which follows a call that must raise, is not counted.
    """
    caught = []
    for node in nodes_in(tree):
        if isinstance(node, ast.Try):
            kinds = [loaded_in(handler.type) if handler.type else {"BaseException"} for handler in node.handlers]
        elif isinstance(node, ast.With):
            calls = [item.context_expr for item in node.items if isinstance(item.context_expr, ast.Call)]
            kinds = [loaded_in(call) for call in calls if _CATCHES.search(ast.unparse(call.func))]
        else:
            continue
        if any({"AssertionError", "Exception", "BaseException"} & kind for kind in kinds):
            tried = [inner for part in node.body for inner in ast.walk(part) if isinstance(inner, ast.Assert)]
            caught += [inner.lineno for inner in tried if ast.unparse(inner.test) != "False"]
    return caught
