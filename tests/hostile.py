"""Reads `tests/hostile/`: programs that the sandbox is tested with, and honest ones that it must not hurt.

Every program claims to define `add(a, b)`, or what its own tests call; none adds. A program that forges or escapes
answers right if and only if its attack worked, so a full score proves a breach and anything else a refusal. Run them
nowhere but in the sandbox. Until then they are text: reading them executes none.

A folder is a kind, a file a program, whose first lines say what is due:

    # expected: REFUSED timeout         the verdicts that may appear; capitals stand for several (SEVERAL below)
    # settings: {"stateful": True}      of the program, if any
    # test: assert first([1]) == [3]    instead of the tests of tests/attack.py; several such lines are one test
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
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "hostile"
HEADER = re.compile(r"# (expected|settings|tests?|name|source): (.*)\n")
SEVERAL = {
    "REFUSED": "wrong exception load_error",  # the attack was refused, and the program has no answer
    "ENDED": "exited died",
    "NOT_DATA": "opaque wrong exception",
    "OWN_GOAL": "wrong exception load_error exited died protocol timeout",  # it broke itself
    "NOISE": "protocol wrong died",  # bytes that nobody asked for
    "BAD_REPLY": "protocol wrong opaque exception",
    "SLOW": "timeout died",
    "STARVED": "memory timeout died exception wrong load_error",
    "TOO_MUCH": "load_error memory died timeout",
    "ANYTHING": "wrong exception load_error exited died protocol timeout opaque memory",
}


@dataclass(frozen=True)
class Attack:
    kind: str
    name: str
    source: str = field(repr=False)  # up to 100 MB
    expected: frozenset[str]  # the verdicts that may appear among its tests
    tests: tuple[str, ...] = ()  # other ones than those of `add` in tests/attack.py
    settings: dict = field(default_factory=dict)  # of the program


@dataclass(frozen=True)
class Control:
    name: str
    source: str = field(repr=False)
    expected_verdicts: tuple[str, ...]  # one per test
    tests: tuple[str, ...] = ()
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
            source = eval(source, {"include": include})
        elif header.get("source") == "without the last line end":
            source = source[:-1]
        for name, (_, test) in tests.items():
            pattern = header.get("name", "{program}_{test}") if name else "{program}"
            yield {
                "name": pattern.format(program=program, test=name),
                "source": source,
                "verdicts": [each for word in (verdicts or header["expected"]).split()
                             for each in SEVERAL.get(word, word).split()],
                "tests": (test.rstrip("\n"),) if test else (),
                "settings": ast.literal_eval(header.get("settings", "{}")),
            }  # fmt: skip


def sections(text: str) -> tuple[str, dict[str, tuple[str, str]]]:
    """Returns what stands before the first line `# === name: verdicts`, and by name the verdicts and what follows."""
    start, *parts = re.split(r"^# === (.+?)(?:: (.+))?\n", text, flags=re.MULTILINE)
    return start, {name: (verdicts or "", body) for name, verdicts, body in zip(*[iter(parts)] * 3, strict=True)}


def include(name: str) -> str:
    """Returns the text of a file that lies beside the kinds."""
    return (FOLDER / name).read_text(encoding="utf-8")


def attacks() -> Iterator[Attack]:
    """Yields those of all kinds."""
    for path in sorted(FOLDER.glob("*/*.py")):
        for found in read(path) if path.parent.name != "controls" else ():
            yield Attack(path.parent.name, expected=frozenset(found.pop("verdicts")), **found)


def controls() -> Iterator[Control]:
    """Yields the honest ones, which show that the judge does not refuse everything."""
    for path in sorted((FOLDER / "controls").glob("*.py")):
        for found in read(path):
            yield Control(expected_verdicts=tuple(found.pop("verdicts")), **found)


ATTACKS, CONTROLS = tuple(attacks()), tuple(controls())
