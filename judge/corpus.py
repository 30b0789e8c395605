"""Reads what judges are tested with: hostile programs, right ones, and texts that try to be paid without answering.

They lie in `hostile/`, `right/` and `gaming/` of `judge/data/`.

**Hostile programs.** Every program claims to define `add(a, b)`, or what its own tests call; none adds. A program that
forges or escapes answers right if and only if its attack worked, so a full score proves a breach and anything else a
refusal. Run them nowhere but in the sandbox. Until then they are text: reading them executes none.

A folder is a kind, a file a program, whose first lines say what is due:

    # expected: wrong timeout           the verdicts that may appear
    # settings: {"stateful": True}      of the program, if any
    # test: assert first([1]) == [3]    instead of TESTS; several such lines are one test
    # tests: catching.py                makes an attack of each test in this file, called {test}_{program}
    # source: the value of an expression           which follows; for what is large, or no editor would keep

A file may hold several programs: each begins as the file does, and ends with what follows a line `# === name`, where
lines as above may stand again. So does a file of tests. `# include: wire.py` stands for the text of that file: wire.py
speaks for the runtime of its own process, whose pipes it finds; kernel.py makes raw system calls; answer.py adds where
`broke` says that the attack worked. The programs of controls/ must get the verdicts that are expected, one per test.

The harness replaces, in every source: @CANARY@ by the path of a file in the tester's home that must be neither read nor
changed, @HOME@ by its folder, @SECRET@ by the name of a variable in the trainer's environment, @PARENT@ by the
trainer's process id, @GROUP@ by its process group. A file that a program makes has "rematch_hostile" in its name. A
signal to one process or group is sent as meant; a broadcast carries number 0, which needs the same right and would not
take the machine along. The library file that is emptied has no content. The bombs stop by themselves.

**Right programs** are of the kinds that models write, a file for each. Tests follow in parts: a test after
`# --- test`, of which there may be several; an input after `# --- stdin`, then what is to be printed after
`# --- stdout`; the tests' set-up after `# --- setup`. Each test must pass, unless `# expected: opaque` or the like says
that the sandbox cannot judge the program right; such programs stand in the table of docs/judge.md.

**Texts** are rows of JSON: those of `gaming.jsonl` answer nothing, but in the formats of `honest_in`; those of
`honest.jsonl` are right in each format of `right_in`. tests/judge/test_gaming.py says what the other keys mean.
"""

import ast
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from judge.syntax import DEFINITIONS
from judge.worker import Program

FOLDER = Path(__file__).with_name("data")
HOSTILE = FOLDER / "hostile"
TESTS = ("assert add(1, 2) == 3", "assert add(-5, 5) == 0", "assert add(10**6, 1) == 1000001")
LIMIT = 10.0  # seconds of a right program: what is asked there is whether, not how fast
HEADER = re.compile(r"# (expected|settings|tests?|source): (.*)\n")


@dataclass(frozen=True)
class Case:
    """A program of the corpus."""

    kind: str
    name: str
    source: str = field(repr=False)  # up to 100 MB
    due: tuple[str, ...]  # verdicts: of an attack those that may appear, of a control one per test, else one for all
    tests: tuple[str, ...]
    settings: dict  # of the program

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"

    def program(self, **changes: Any) -> Program:
        """Returns the program for the sandbox."""
        settings = {"entry_points": ("add",), "source": self.source, "tests": self.tests}
        return Program(**settings | self.settings | changes)


@cache
def attacks() -> tuple[Case, ...]:
    """Returns the hostile programs of all kinds."""
    paths = sorted(path for path in HOSTILE.glob("*/*.py") if path.parent.name != "controls")
    return tuple(case for path in paths for case in _read(path, path.parent.name))


@cache
def controls() -> tuple[Case, ...]:
    """Returns programs next to them whose verdicts are known: a judge that refuses everything has shown nothing."""
    return tuple(case for path in sorted(HOSTILE.glob("controls/*.py")) for case in _read(path, "control"))


@cache
def right_programs() -> tuple[Case, ...]:
    """Returns the right programs of all files."""
    return tuple(case for path in sorted(FOLDER.glob("right/*.py")) for case in _read(path, path.stem))


def _read(path: Path, kind: str) -> Iterator[Case]:
    parts = _parts(path.read_text(encoding="utf-8"))
    common, start = parts.pop("")
    for name, (header, end) in (parts or {path.stem: ({}, "")}).items():
        header = common | header
        text = re.sub(r"^# include: (.+)\n", lambda line: include(line[1]), start + end, flags=re.MULTILINE)
        source, *blocks = re.split(r"^# --- (\w+)\n", text, flags=re.MULTILINE)
        if "source" in header:
            source = eval(source, {"include": include})  # the corpus is ours
        settings = ast.literal_eval(header.get("settings", "{}"))
        due = tuple((header.get("expected", "pass") if blocks else header["expected"]).split())
        if blocks:
            given: dict[str, list[str]] = {"test": [], "stdin": [], "stdout": [], "setup": []}
            for part, block in zip(blocks[::2], blocks[1::2], strict=True):
                given[part].append(block.rstrip("\n"))
            stdio = tuple(zip(given["stdin"], given["stdout"], strict=True))
            read = {"stdio": stdio, "setup_code": "\n".join(given["setup"]), "timeout_s": LIMIT}
            read["entry_points"] = tuple(part.name for part in ast.parse(source).body if isinstance(part, DEFINITIONS))
            yield Case(kind, name, source, due, tuple(given["test"]), read | settings)
        elif "tests" in header:
            for test, (_, body) in _parts(include(header["tests"])).items():
                if test:
                    yield Case(kind, f"{test}_{name}", source, due, (body.rstrip("\n"),), settings)
        else:
            yield Case(kind, name, source, due, (header["test"],) if "test" in header else TESTS, settings)


def _parts(text: str) -> dict[str, tuple[dict[str, str], str]]:
    """Returns the header and the text of each part of a file by name; "" is what stands before the first name."""
    parts = {}
    start, *rest = re.split(r"^# === (.+)\n", text, flags=re.MULTILINE)
    for name, body in zip(["", *rest[::2]], [start, *rest[1::2]], strict=True):
        header: dict[str, str] = {}
        while line := HEADER.match(body):
            key, value = line.groups()
            header[key] = f"{header[key]}\n{value}" if key in header else value
            body = body[line.end() :]
        parts[name] = header, body
    return parts


def include(name: str) -> str:
    """Returns the text of a file next to the folders of the kinds."""
    return (HOSTILE / name).read_text(encoding="utf-8")


def placed(source: str, home: Path, canary: Path, secret: str) -> str:
    """Returns a hostile source with its placeholders filled in; this process is the trainer."""
    values = {
        "@CANARY@": str(canary), "@HOME@": str(home), "@SECRET@": secret, "@PARENT@": str(os.getpid()),
        "@GROUP@": str(os.getpgrp()),
    }  # fmt: skip
    for mark, value in values.items():
        source = source.replace(mark, value)
    return source


def texts(name: str) -> list[dict[str, Any]]:
    """Returns the rows of a file of gaming/, such as "gaming" or "honest"."""
    return [json.loads(line) for line in (FOLDER / f"gaming/{name}.jsonl").read_text(encoding="utf-8").splitlines()]
