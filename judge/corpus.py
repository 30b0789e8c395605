"""Reads what judges are tested with: hostile programs, right ones, and texts that try to be paid without answering.

They lie in `hostile/`, `right/` and `gaming/` of `judge/data/`.

**Hostile programs.** Every program claims to define `add(a, b)`, or what its own tests call; none adds. A program that
forges or escapes answers right if and only if its attack worked, so a full score proves a breach and anything else a
refusal. Run them nowhere but in the sandbox. Until then they are text: reading them executes none.

A folder is a kind, a file a program, whose first lines say what is due:

    # expected: REFUSED timeout         the verdicts that may appear; capitals stand for several (SEVERAL below)
    # settings: {"stateful": True}      of the program, if any
    # test: assert first([1]) == [3]    instead of TESTS; several such lines are one test
    # tests: catching.py                makes an attack of each test in this file
    # name: {test}_{program}            the name of such an attack, if not {program}_{test}
    # source: the value of an expression           which follows; for what is large, or no editor would keep
    # source: without the last line end

A file may hold several programs: each begins as the file does, and ends with what follows a line `# === name`, or
`# === name: verdicts`. So does a file of tests. `# include: wire.py` stands for the text of that file: wire.py speaks
for the runtime of its own process, whose pipes it finds; kernel.py makes raw system calls; answer.py adds where `broke`
says that the attack worked. The programs of controls/ must get the verdicts that are expected, one per test.

The harness replaces, in every source: @CANARY@ by the path of a file in the tester's home that must be neither read nor
changed, @HOME@ by its folder, @SECRET@ by the name of a variable in the trainer's environment, @PARENT@ by the
trainer's process id, @GROUP@ by its process group. A file that a program makes has "rematch_hostile" in its name. A
signal to one process or group is sent as meant; a broadcast carries number 0, which needs the same right and would not
take the machine along. The library file that is emptied has no content. The bombs stop by themselves.

**Right programs** are of the kinds that models write. A file of them, as an editor sees it:

    # === name | stateful entry_points=Deck,deal refused=opaque
    the program
    # --- test
    a test; there may be several
    # --- stdin
    an input, and after it
    # --- stdout
    what is to be printed then
    # --- setup
    the tests' set-up

`refused` is the verdict of one that the sandbox cannot judge right; these stand in the table of docs/judge.md.

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

from judge.sources import defined_names
from judge.worker import Program

FOLDER = Path(__file__).with_name("data")
HOSTILE, RIGHT, GAMING = FOLDER / "hostile", FOLDER / "right", FOLDER / "gaming"
TESTS = ("assert add(1, 2) == 3", "assert add(-5, 5) == 0", "assert add(10**6, 1) == 1000001")
LIMIT = 10.0  # seconds of a right program: what is asked there is whether, not how fast
HEADER = re.compile(r"# (expected|settings|tests?|name|source): (.*)\n")
SEVERAL = {
    "REFUSED": "wrong exception load_error",  # the attack was refused, and the program has no answer
    "ENDED": "exited died",
    "NOT_DATA": "opaque wrong exception",
    "OWN_GOAL": "wrong exception load_error exited died protocol timeout",  # it broke itself
    "NOISE": "protocol wrong died",  # bytes that no one asked for
    "BAD_REPLY": "protocol wrong opaque exception",
    "SLOW": "timeout died",
    "STARVED": "memory timeout died exception wrong load_error",
    "TOO_MUCH": "load_error memory died timeout",
    "ANYTHING": "wrong exception load_error exited died protocol timeout opaque memory",
}


@dataclass(frozen=True)
class Attack:
    """A program that deserves nothing."""

    kind: str
    name: str
    source: str = field(repr=False)  # up to 100 MB
    expected: frozenset[str]  # the verdicts that may appear among its tests
    tests: tuple[str, ...] = TESTS
    settings: dict = field(default_factory=dict)  # of the program


@dataclass(frozen=True)
class Control:
    """A program next to them whose verdicts are known: a judge that refuses everything has shown nothing."""

    name: str
    source: str = field(repr=False)
    expected_verdicts: tuple[str, ...]  # one per test
    tests: tuple[str, ...] = TESTS
    settings: dict = field(default_factory=dict)


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Yields the name, source, verdicts, tests and settings of each program of a file."""
    text, header = path.read_text(encoding="utf-8"), {}
    while line := HEADER.match(text):
        key, value = line.groups()
        header[key] = f"{header[key]}\n{value}" if key in header else value
        text = text[line.end() :]
    start, parts = sections(text)
    tests = sections(include(header["tests"]))[1] if "tests" in header else {"": ("", header.get("test", ""))}
    for program, (verdicts, end) in (parts or {path.stem: ("", "")}).items():
        source = re.sub(r"^# include: (.+)\n", lambda line: include(line[1]), start + end, flags=re.MULTILINE)
        if header.get("source") == "the value of an expression":
            source = eval(source, {"include": include})  # the corpus is ours
        elif header.get("source") == "without the last line end":
            source = source[:-1]
        for name, (_, test) in tests.items():
            pattern = header.get("name", "{program}_{test}") if name else "{program}"
            yield {
                "name": pattern.format(program=program, test=name),
                "source": source,
                "verdicts": [verdict for word in (verdicts or header["expected"]).split()
                             for verdict in SEVERAL.get(word, word).split()],
                "tests": (test.rstrip("\n"),) if test else TESTS,
                "settings": ast.literal_eval(header.get("settings", "{}")),
            }  # fmt: skip


def sections(text: str) -> tuple[str, dict[str, tuple[str, str]]]:
    """Returns the text before the first line `# === name: verdicts`, and by name the verdicts and the text after it."""
    start, *parts = re.split(r"^# === (.+?)(?:: (.+))?\n", text, flags=re.MULTILINE)
    return start, {name: (verdicts or "", body) for name, verdicts, body in zip(*[iter(parts)] * 3, strict=True)}


def include(name: str) -> str:
    """Returns the text of a file next to the folders of the kinds."""
    return (HOSTILE / name).read_text(encoding="utf-8")


@cache
def attacks() -> tuple[Attack, ...]:
    """Returns the hostile programs of all kinds."""
    return tuple(
        Attack(path.parent.name, expected=frozenset(fields.pop("verdicts")), **fields)
        for path in sorted(HOSTILE.glob("*/*.py"))
        for fields in (read(path) if path.parent.name != "controls" else ())
    )


@cache
def controls() -> tuple[Control, ...]:
    """Returns the programs of controls/."""
    return tuple(
        Control(expected_verdicts=tuple(fields.pop("verdicts")), **fields)
        for path in sorted((HOSTILE / "controls").glob("*.py"))
        for fields in read(path)
    )


def placed(source: str, home: Path, canary: Path, secret: str) -> str:
    """Returns a hostile source with its placeholders filled in; this process is the trainer."""
    values = {
        "@CANARY@": str(canary), "@HOME@": str(home), "@SECRET@": secret, "@PARENT@": str(os.getpid()),
        "@GROUP@": str(os.getpgrp()),
    }  # fmt: skip
    if len(source) > 1 << 20:  # a bomb holds no placeholder
        return source
    for mark, value in values.items():
        source = source.replace(mark, value)
    return source


@dataclass(frozen=True)
class Right:
    """A right program, or with `refused` one that gets this verdict."""

    name: str
    program: Program
    refused: str = ""

    @property
    def due(self) -> str:
        """Returns the verdict that it gets, on every rung."""
        return self.refused or "pass"


def right_programs() -> list[Right]:
    """Returns the right programs of all files."""
    return [right for path in sorted(RIGHT.glob("*.py")) for right in _right_of(path)]


def _right_of(path: Path) -> Iterator[Right]:
    for part in ("\n" + path.read_text(encoding="utf-8")).split("\n# === ")[1:]:
        head, _, body = part.partition("\n")
        name, _, words = head.partition("|")
        source, *sections = body.split("\n# --- ")
        blocks: dict[str, list[str]] = {}
        for section in sections:
            kind, _, text = section.partition("\n")
            blocks.setdefault(kind.strip(), []).append(text.rstrip("\n"))
        options = dict(word.partition("=")[::2] for word in words.split())
        entry_points = options.get("entry_points", "")
        yield Right(
            f"{path.stem}/{name.strip()}",
            Program(
                source + "\n",
                tests=tuple(blocks.get("test", ())),
                stdio=tuple(zip(blocks.get("stdin", ()), blocks.get("stdout", ()), strict=True)),
                setup_code="\n".join(blocks.get("setup", ())),
                entry_points=tuple(entry_points.split(",")) if entry_points else defined_names(source),
                stateful="stateful" in options,
                timeout_s=float(options.get("timeout_s", LIMIT)),
            ),
            options.get("refused", ""),
        )


def texts(name: str) -> list[dict[str, Any]]:
    """Returns the rows of a file of gaming/, such as "gaming" or "honest"."""
    return [json.loads(line) for line in (GAMING / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
