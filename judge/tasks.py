"""Programming tasks as rows of JSONL: their schema, and the checks that find rows which would teach the wrong thing.

    {"prompt": "Implement `add(a, b)`.", "tests": ["assert add(1, 2) == 3", "assert add(0, 0) == 0"]}
    {"prompt": "Read a number, print its square.", "stdio": [{"stdin": "3\\n", "stdout": "9\\n"}]}

`CodeTask` lists the other keys. The checks only read rows; data/check_code_tasks.py runs programs, too.
"""

import ast
import builtins
import difflib
import keyword
import re
import reprlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from judge.syntax import DEFINITIONS, loaded_in, names_of, parse, problems_in, tree_of
from judge.worker import Program

_UNFIT = re.compile("[\0\ud800-\udfff]")  # not allowed in a source, a pipe or a file


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
    entry_points: list[str] = []  # names that the candidate defines; [] = the one that the tests ask for
    setup_code: str = ""  # runs before each test, in its namespace: imports, helpers
    stateful: bool = False  # tests call methods of objects that the candidate returns, and operators of named classes
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
        """Returns the declared entry points, else the one name that the tests ask for; else ().

        Never two: a task that asks for `decode` and tests `decode(encode(x)) == x` must supply `encode`, or declare
        that the candidate supplies both, since a candidate that writes both halves passes with two identity functions.
        """
        names = () if self.stdio else asked_names(self.tests, self.setup_code)
        return tuple(self.entry_points) or (tuple(names) if len(names) == 1 else ())

    def program(self, source: str) -> Program:
        """Returns the program for a sandbox that judges `source` on this task."""
        stdio = tuple((case.stdin, case.stdout) for case in self.stdio)
        return Program(
            source, tests=tuple(self.tests), stdio=stdio, entry_points=self.callables, setup_code=self.setup_code,
            stateful=self.stateful, timeout_s=self.timeout_s, memory_mb=self.memory_mb,
        )  # fmt: skip


def read_task(row: dict) -> tuple[CodeTask | None, list[str]]:
    """Returns the task of a row, or None, and one sentence per mistake in its types or in the spelling of a key."""
    absent = [key for key in CodeTask.model_fields if row.get(key) is None]
    sentences = []
    for key in row.keys() - CodeTask.model_fields.keys():
        if close := difflib.get_close_matches(key, absent, n=1, cutoff=0.8):
            sentences.append(f"key '{key}' means nothing here; did you mean '{close[0]}'? Rename one of them")
    try:
        task = CodeTask.model_validate(row)
    except ValidationError as error:
        return None, sorted(sentences) + [_sentence(problem) for problem in error.errors()]
    return task, sorted(sentences)


def _sentence(problem: Any) -> str:
    """Rewrites one of pydantic's errors in the style of this project's messages."""
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in problem["loc"])[1:]
    if problem["type"] == "value_error":
        return str(problem["ctx"]["error"])
    if problem["type"] == "missing":
        return f"{where}: missing; add it"
    return f"{where}: got {reprlib.repr(problem['input'])}, expected {problem['msg'].removeprefix('Input should be ')}"


def asked_names(tests: Sequence[str], setup_code: str = "") -> set[str]:
    """Returns the names that the tests read and that neither the same test nor the set-up nor Python defines.

    A test that does not parse reads nothing. Tests do not see each other's names.
    """
    names = set().union(*(names_of(test).free for test in tests if tree_of(test)))
    setup = names_of(setup_code) if tree_of(setup_code) else names_of("")
    return (names | setup.free) - setup.binds


def static_problems(task: CodeTask) -> list[str]:
    """Returns the problems of a task that can be found without running programs, one sentence each."""
    texts = {"prompt": task.prompt, "setup_code": task.setup_code, "solution": task.solution}
    texts |= {f"tests[{index}]": test for index, test in enumerate(task.tests)}
    texts |= {f"wrong[{index}]": source for index, source in enumerate(task.wrong)}
    texts |= {f"stdio[{index}]": case.stdin + case.stdout for index, case in enumerate(task.stdio)}
    problems = [
        f"{where}: holds {odd[0]!a}, NUL or half of a surrogate pair; remove it"
        for where, text in texts.items()
        if (odd := _UNFIT.search(text))
    ]
    if not task.prompt.strip():
        problems.append("prompt: got only whitespace, expected a task; write one")
    code = [where for where in texts if where.startswith("tests") or where in ("setup_code", "solution")]
    broken = [f"{where}: {why}; fix it" for where in code if (why := parse(texts[where])[1])]
    if broken or not task.tests:
        return problems + broken  # further checks would report errors that follow from the broken code
    return problems + list(_problems_of_tests(task))


def _problems_of_tests(task: CodeTask) -> Iterator[str]:
    setup = tree_of(task.setup_code)
    bound = [names_of(test).binds | names_of(task.setup_code).binds for test in task.tests]  # tests share only that
    names = set(task.callables)
    needed = asked_names(task.tests, task.setup_code)
    if not names:
        shown = ", ".join(sorted(needed)) or "nothing that a candidate could define"
        yield f"entry_points: cannot be inferred, the tests call {shown}; declare entry_points"
    for name in sorted(names):
        if not name.isidentifier() or keyword.iskeyword(name):
            yield f"entry_points: '{name}' is not a function name; fix it"
        elif hasattr(builtins, name):
            yield f"entry_points: '{name}' is a builtin, which a missing function would leave in place; rename it"
        elif any(name in names_of_test for names_of_test in bound):
            yield f"entry_points: '{name}' is bound by the tests or setup_code themselves; rename one of them"
    if names and needed - names:
        yield (
            f"tests: nothing defines {', '.join(sorted(needed - names))}; define it in setup_code, or add it to "
            "entry_points if the candidate is to supply it"
        )
    helpers = {node.name: node for node in ast.walk(setup) if isinstance(node, DEFINITIONS)}
    for index, tree in enumerate(map(tree_of, task.tests)):
        where = f"tests[{index}]"
        helped = [helpers[name] for name in loaded_in(tree) & helpers.keys()]
        if not any(isinstance(node, ast.Assert) for part in (tree, *helped) for node in ast.walk(part)):
            yield f"{where}: has no assert statement; add one"
        if names and not any(names & loaded_in(part) for part in (tree, *helped)):
            yield f"{where}: never calls {' or '.join(sorted(names))}; fix or remove it"
        for line, sentence in problems_in(tree, names, bound[index], helpers):
            yield f"{where}: line {line} {sentence}"
