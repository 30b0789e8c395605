"""Programming tasks as rows of JSONL: their schema, and the checks that find rows which would teach the wrong thing.

    {"prompt": "Implement `add(a, b)`.", "tests": ["assert add(1, 2) == 3", "assert add(0, 0) == 0"]}
    {"prompt": "Read a number, print its square.", "stdio": [{"stdin": "3\\n", "stdout": "9\\n"}]}

`CodeTask` lists the other keys. Static checks read, before training too; dynamic ones run programs in a sandbox: the
row's solution must pass, its wrong programs must not, and neither must programs that know nothing of the task, such as
one that returns None, or one that only raises what the tests name.
"""

import ast
import builtins
import difflib
import keyword
import re
import reprlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from lib.core.errors import ConfigError
from lib.run.runlog import read_lines
from lib.sandbox.pool import Sandbox
from lib.sandbox.worker import Program, ProgramVerdict

LONGEST_TEST = 100_000  # bytes
_BUILTINS = frozenset(dir(builtins))
_BUILTIN_CALLABLES = frozenset(name for name in _BUILTINS if callable(getattr(builtins, name)))
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_NAMING = (*_DEFINITIONS, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)  # nodes whose `name` they bind
_UNFIT = re.compile("[\0\ud800-\udfff]")  # not allowed in a source, a pipe or a file
_BATCH = 64  # rows whose programs go to the sandbox together
_CONSTANTS = ("None", "0", "1", "True", "False", "''", "[]")
_EMPTIES = "[arg.clear() for arg in args if hasattr(arg, 'clear')]"
_FIRST = "args[0] if args else next(iter(kwargs.values()), None)"
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
    trees = [tree for tree in map(_tree, tests) if tree]
    called = set().union(*({call.func.id for call in _calls_by_name(tree)} - _bound(tree) for tree in trees))
    setup = _tree(setup_code)
    return called - _BUILTINS - (_bound(setup) if setup else set())


def infer_entry_points(tests: Sequence[str], prompt: str = "", setup_code: str = "") -> tuple[str, ...]:
    """Returns the one name that the tests call, or the one of several that the prompt asks for; else ().

    Never two: a task that asks for `decode` and tests `decode(encode(x)) == x` must supply `encode`, or declare that
    the candidate supplies both, since a candidate that writes both halves passes with two identity functions.
    """
    names = called_names(tests, setup_code)
    if len(names) > 1:
        names &= set(_NAMED_IN_PROMPT.findall(prompt))
    return tuple(names) if len(names) == 1 else ()


def statements(task: CodeTask) -> set[str]:
    """Returns what the tests of a task ask, spelled alike: the assert statements, or the inputs of whole programs."""
    trees = [tree for tree in map(_tree, task.tests) if tree]
    return {ast.unparse(each) for tree in trees for each in _asserts(tree)} | {
        case.stdin.strip() for case in task.stdio
    }


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
    broken = [f"{where}: {why}; fix it" for where in code if (why := _parse(texts[where])[1])]
    if broken or not task.tests:
        return found + broken  # further checks would report errors that follow from the broken code
    return found + list(_problems_of_tests(task))


def _problems_of_tests(task: CodeTask) -> Iterator[str]:
    setup, trees = _tree(task.setup_code), [_tree(test) for test in task.tests]
    bound = [_bound(tree) | _bound(setup) for tree in trees]  # per test: tests share only the setup
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
    helpers = {node.name: node for node in _nodes(setup) if isinstance(node, _DEFINITIONS)}
    for index, tree in enumerate(trees):
        where = f"tests[{index}]"
        asserts = _asserts(tree)
        helped = [helpers[name] for name in _loaded(tree) & helpers.keys()]
        if not asserts and not any(map(_asserts, helped)):
            yield f"{where}: has no assert statement; add one"
        if names and not any(names & _loaded(part) for part in (tree, *helped)):
            yield f"{where}: never calls {' or '.join(sorted(names))}; fix or remove it"
        for line in _caught_asserts(tree):
            yield f"{where}: line {line} is an assert whose failure is caught, and fails the test all the same; use if"
        # `assert False` counts: it stands after a line that must raise
        says_something = any(_loaded(test) - _BUILTINS or ast.unparse(test) == "False" for test in asserts)
        for test in asserts:
            if isinstance(test, ast.Tuple) and test.elts:
                yield f"{where}: line {test.lineno} asserts a tuple, which is always true; remove the parentheses"
            elif not says_something:
                yield f"{where}: line {test.lineno} asserts something about constants only; compare the result of a "
                "call"
        functions = names | _defined(tree) | _defined(setup) | (_BUILTIN_CALLABLES - bound[index])
        for line, sentence in _crossings(tree, names, bound[index], functions):
            yield f"{where}: line {line} {sentence}"
        for line, sentence in _only_there(tree, names, bound[index]):
            yield f"{where}: line {line} {sentence}"


def _crossings(tree: ast.AST, names: set[str], bound: set[str], functions: set[str]) -> Iterator[tuple[int, str]]:
    """Yields (line, sentence) for values that cannot cross between the test's process and the candidate's."""
    for call in _calls_by_name(tree):
        if call.func.id in names:
            for value in _passed(call):
                if isinstance(value, ast.Lambda) or (isinstance(value, ast.Name) and value.id in functions):
                    what = "a lambda" if isinstance(value, ast.Lambda) else f"'{value.id}'"
                    yield (
                        call.lineno,
                        f"passes {what} to {call.func.id}; functions cannot cross the process boundary, so pass data",
                    )
        elif call.func.id == "isinstance" and len(call.args) == 2:
            for name in sorted(_loaded(call.args[1])):
                if name in names or not ({name, "*"} & bound or name in _BUILTINS):
                    yield (
                        call.lineno,
                        f"asks for isinstance of the candidate's '{name}', which exists only in its process; test its "
                        "behaviour",
                    )


def _only_there(tree: ast.AST, names: set[str], bound: set[str]) -> Iterator[tuple[int, str]]:
    """Yields (line, sentence) for operations that only the candidate's own process could perform."""
    made = {name for name in names if name.lstrip("_")[:1].isupper()}
    for node in _nodes(tree):
        if isinstance(node, ast.ExceptHandler) and node.type and (caught := names & _loaded(node.type)):
            yield node.lineno, f"catches the candidate's '{caught.pop()}'; catch Exception and look at its name or text"
        elif isinstance(node, ast.With) and (caught := names & _expected(node)):
            yield node.lineno, f"expects the candidate's '{caught.pop()}' to be raised; expect Exception"
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in names - bound:
            yield node.lineno, f"asks {node.value.id} for '{node.attr}'; call {node.value.id}, and use what it returns"
        elif isinstance(node, ast.Compare) and len(node.ops) == 1 and not isinstance(node.ops[0], ast.Lt | ast.Gt):
            sides = node.left, node.comparators[0]
            if any(_makes(side, made) for side in sides) and all(made & _loaded(side) for side in sides):
                yield node.lineno, "compares two objects of the candidate, which only it could do; compare with data"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            for endless in (value for value in _passed(node) if _is_endless(value, bound)):
                yield node.lineno, f"passes {ast.unparse(endless)}, which has no end; pass its first items"


def _expected(node: ast.With) -> set[str]:
    """Returns the names in the calls of a `with` that expects an error, such as `with assertRaises(...)`."""
    calls = [item.context_expr for item in node.items if isinstance(item.context_expr, ast.Call)]
    return set().union(*(_loaded(call) for call in calls if "raises" in ast.unparse(call.func).lower()))


def _makes(node: ast.AST, made: set[str]) -> bool:
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


@lru_cache(maxsize=256)  # the checks of one row parse the same code repeatedly
def _parse(code: str) -> tuple[ast.Module | None, str]:
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
    return tree, ""


def _tree(code: str) -> ast.Module | None:
    return _parse(code)[0]


@lru_cache(maxsize=512)  # holds whole trees and parts of them
def _nodes(tree: ast.AST) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree))


def _caught_asserts(tree: ast.AST) -> list[int]:
    """Returns the lines of asserts inside code that catches AssertionError.

    `assert False`, which follows a call that must raise, is not counted.
    """
    caught = []
    for node in _nodes(tree):
        if isinstance(node, ast.Try):
            kinds = [_loaded(handler.type) if handler.type else {"BaseException"} for handler in node.handlers]
        elif isinstance(node, ast.With):
            calls = [item.context_expr for item in node.items if isinstance(item.context_expr, ast.Call)]
            kinds = [_loaded(call) for call in calls if _CATCHES.search(ast.unparse(call.func))]
        else:
            continue
        if any({"AssertionError", "Exception", "BaseException"} & kind for kind in kinds):
            tried = [inner for part in node.body for inner in ast.walk(part) if isinstance(inner, ast.Assert)]
            caught += [inner.lineno for inner in tried if ast.unparse(inner.test) != "False"]
    return caught


def _asserts(tree: ast.AST) -> list[ast.expr]:
    return [node.test for node in _nodes(tree) if isinstance(node, ast.Assert)]


def _defined(tree: ast.AST) -> set[str]:
    return {node.name for node in _nodes(tree) if isinstance(node, _DEFINITIONS)}


def _calls_by_name(tree: ast.AST) -> list[Any]:
    return [node for node in _nodes(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]


def _loaded(tree: ast.AST) -> set[str]:
    return {node.id for node in _nodes(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def _bound(tree: ast.AST) -> set[str]:
    """Returns the names that the code binds anywhere, parameters and imports included; "*" for `from x import *`."""
    names = set()
    for node in _nodes(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, _NAMING):
            names.add(node.name)
    return names - {None}


@dataclass
class Report:
    """Collects the counts over a file and the problems of its lines."""

    path: Path
    rows: list[tuple[int, dict]]  # line number and row, sound or not
    problems: dict[int, list[str]] = field(default_factory=dict)  # by line number; a line without one is sound
    tests: int = 0  # stdio cases count too
    asserts: int = 0
    inferred: int = 0  # rows whose entry point is inferred
    solutions: int = 0
    verified: int = 0  # of the solutions, those that passed
    wrong: int = 0  # programs that must fail: those of the rows and the general ones
    refused: int = 0  # of the wrong programs
    ran: bool = False

    def add(self, line: int, sentences: Iterable[str]) -> None:
        """Adds problems of a line. Unprintable characters, which rows and programs may contain, become blanks."""
        for sentence in sentences:
            safe = "".join(char if char.isprintable() else " " for char in sentence)
            self.problems.setdefault(line, []).append(safe)

    @property
    def clean(self) -> list[dict]:
        """Returns the rows without problems."""
        return [row for line, row in self.rows if line not in self.problems]

    @property
    def quarantine(self) -> list[dict]:
        """Returns the lines with problems: number, problems, and the row (None where the line is no JSON object)."""
        rows = dict(self.rows)
        return [
            {"line": line, "problems": sentences, "row": rows.get(line)}
            for line, sentences in sorted(self.problems.items())
        ]

    def text(self, shown: int = 20) -> str:
        """Returns a table of the counts, then `file:line: sentence` for the first `shown` problems."""
        unsound = len(self.problems)
        table = {
            "rows": f"{len(self.rows)}, {len(self.clean)} of them without problems",
            "tests": self.tests,
            "asserts": self.asserts,
            "inferred entry points": self.inferred,
            "solutions verified": f"{self.verified} of {self.solutions}",
            "not verified (no solution)": len(self.rows) - self.solutions,
            "wrong programs refused": f"{self.refused} of {self.wrong}",
        }
        if not self.ran:
            table["solutions verified"] = table["wrong programs refused"] = "no program was run"
        lines = [f"{name:<28}{value}" for name, value in table.items()]
        found = [f"{self.path}:{line}: {text}" for line, texts in sorted(self.problems.items()) for text in texts]
        if found:
            lines += ["", f"{len(found)} problems in {unsound} lines:", *found[:shown]]
        if len(found) > shown:
            lines.append(f"... and {len(found) - shown} more")
        return "\n".join(lines)


class _Trial(NamedTuple):
    """Pairs a program with the row at `line` and the problem to report if it passes; "" for a solution, which must."""

    line: int
    program: Program
    if_passed: str


def check(
    path: Path, sandbox: Sandbox | None, progress: Callable[[int, int], None] = lambda done, rows: None
) -> Report:
    """Runs all checks on a file; without a sandbox, only the static ones.

    Programs run only for rows without static problems. `progress` is called with the number of rows whose programs have
    run and the number of rows to run.
    """
    rows, bad_lines = read_tasks(path)
    report = Report(path, rows, ran=sandbox is not None)
    for line, sentence in bad_lines:
        report.add(line, [sentence])
    sound, first_line = [], {}
    for line, row in rows:
        task, sentences = read_task(row)
        if task is not None:
            sentences += static_problems(task)
            first = first_line.setdefault(task.prompt.strip(), line)
            if first != line:
                sentences.append(f"prompt: the same as in line {first}; remove one of the rows")
            report.tests += len(task.tests) + len(task.stdio)
            report.asserts += sum(len(_asserts(tree)) for tree in map(_tree, task.tests) if tree)
            report.inferred += bool(not task.entry_points and task.callables)
            report.solutions += bool(task.solution)
        report.add(line, sentences)
        if not sentences:
            sound.append((line, task))
    for start in range(0, len(sound) if sandbox else 0, _BATCH):
        trials = [trial for line, task in sound[start : start + _BATCH] for trial in _trials(line, task)]
        for trial, verdict in zip(trials, sandbox.judge([trial.program for trial in trials]), strict=True):
            _record(report, trial, verdict)
        progress(min(start + _BATCH, len(sound)), len(sound))
    return report


def _trials(line: int, task: CodeTask) -> Iterator[_Trial]:
    if task.solution:
        yield _Trial(line, task.program(task.solution), "")
    for index, source in enumerate(task.wrong):
        yield _Trial(line, task.program(source), f"wrong[{index}] passes all tests; add a test that it fails")
    for what, source in ignorant_programs(task):
        yield _Trial(line, task.program(source), f"all tests pass for a program that always {what}; add a test")


def ignorant_programs(task: CodeTask) -> list[tuple[str, str]]:
    """Returns programs that know nothing of a task, as (what they always do, source).

    If one of them passes, the tests are weak.
    """
    if task.stdio:
        return [
            ("prints nothing", ""),
            ("prints its input", "import sys\nsys.stdout.write(sys.stdin.read())\n"),
        ]
    bodies = {f"returns {value}": f"return {value}" for value in _CONSTANTS}
    bodies["returns its first argument"] = f"return {_FIRST}"
    bodies |= {f"raises {kind}": f"raise {kind}('refused')" for kind in _errors_named(task)}
    # passes where a test computes the expected value afterwards, from the same arguments
    bodies |= {f"empties its arguments and returns {value}": f"{_EMPTIES}; return {value}" for value in ("[]", "0")}
    return [
        (what, "".join(f"def {name}(*args, **kwargs):\n    {body}\n" for name in task.callables))
        for what, body in bodies.items()
    ]


def _errors_named(task: CodeTask) -> list[str]:
    """Returns Exception and the builtin exceptions named by the tests or the setup code.

    Such tests may accept a program that does nothing but raise one of them.
    """
    named = set().union(*(_loaded(tree) for tree in map(_tree, (*task.tests, task.setup_code)) if tree))
    kinds = {name: getattr(builtins, name, None) for name in named | {"Exception"}}
    return sorted(name for name, kind in kinds.items() if isinstance(kind, type) and issubclass(kind, Exception))


def _record(report: Report, trial: _Trial, verdict: ProgramVerdict) -> None:
    failed = next(((index, test) for index, test in enumerate(verdict.tests) if test.verdict != "pass"), None)
    why = ""
    if failed is not None:
        index, test = failed
        why = f"{'stdio' if trial.program.stdio else 'tests'}[{index}] ({test.verdict}: {test.detail[:300]})"
    if not verdict.scored:
        report.add(trial.line, [f"the sandbox failed at {why}; check this row again"])
    elif not trial.if_passed:
        report.verified += verdict.passed
        if not verdict.passed:
            report.add(trial.line, [f"the solution fails {why}; fix one or the other"])
    else:
        report.wrong += 1
        report.refused += not verdict.passed
        if verdict.passed:
            report.add(trial.line, [trial.if_passed])
