"""Checks a JSONL file of programming tasks before anybody trains on it; judge/tasks.py says what a row holds.

    python data/check_code_tasks.py data/mine.jsonl
    python data/check_code_tasks.py data/mine.jsonl --static          # reads only, runs nothing
    python data/check_code_tasks.py data/mine.jsonl --clean good.jsonl --quarantine bad.jsonl

Every solution must pass its tests, and programs that know nothing of the task must not. Exit code 2: some row has a
problem; 0: none has.
"""

import argparse
import builtins
import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # the repository: `python data/...` puts only data/ there

from data.builders import write_rows
from judge.pool import Sandbox
from judge.syntax import loaded_in, tree_of
from judge.tasks import CodeTask, read_task, static_problems
from judge.worker import ProgramVerdict
from lib.core.errors import FINISHED, ConfigError, run_script

QUIET = 5  # seconds between two lines of progress
_CONSTANTS = ("None", "0", "1", "True", "False", "''", "[]")
_EMPTIES = "[arg.clear() for arg in args if hasattr(arg, 'clear')]"
_FIRST = "args[0] if args else next(iter(kwargs.values()), None)"


def main() -> int:
    """Checks the tasks, reports, and separates the sound rows from the others."""
    args = command_line()
    sandbox = contextlib.nullcontext() if args.static else Sandbox(args.workers, allow_unsafe=args.allow_unsafe)
    with sandbox as running:
        report = check(args.file, running, progress())
    print(report.text())
    for path, rows in ((args.clean, report.clean), (args.quarantine, report.quarantine)):
        if path is not None:
            write_rows(path, rows)
    return ConfigError.exit_code if report.problems else FINISHED


def command_line() -> argparse.Namespace:
    """Returns the options. Raises ConfigError for an output that would overwrite the input or the other output."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("file", type=Path, metavar="FILE", help="JSONL, one task per line")
    options.add_argument("--static", action="store_true", help="run no program")
    options.add_argument("--workers", type=int, metavar="N", help="programs at once (default: the sandbox's)")
    options.add_argument("--allow-unsafe", action="store_true", help="run programs where they cannot be confined")
    options.add_argument("--clean", type=Path, metavar="OUT.jsonl", help="write the rows without problems there")
    options.add_argument("--quarantine", type=Path, metavar="OUT.jsonl", help="write the others there, with problems")
    args = options.parse_args()
    paths = [path.resolve() for path in (args.file, args.clean, args.quarantine) if path is not None]
    if len(set(paths)) < len(paths):
        raise ConfigError("FILE, --clean and --quarantine: got one path twice, expected different ones; rename one")
    if args.workers is not None and args.workers < 1:
        raise ConfigError(f"--workers: got {args.workers}, expected at least 1")
    return args


def progress():
    """Returns a function that reports progress on stderr every few seconds."""
    said = time.monotonic()

    def say(done: int, rows: int) -> None:
        nonlocal said
        if time.monotonic() - said > QUIET:
            said = time.monotonic()
            print(f"ran {done} of {rows} rows", file=sys.stderr)

    return say


@dataclass
class Report:
    """Collects the counts over a file and the problems of its lines."""

    path: Path
    rows: list[tuple[int, dict]]  # line number and row, sound or not
    problems: dict[int, list[str]] = field(default_factory=dict)  # by line number; a line without one is sound
    tests: int = 0  # stdio cases count too
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
            "solutions verified": f"{self.verified} of {self.solutions}",
            "not verified (no solution)": len(self.rows) - self.solutions,
            "wrong programs refused": f"{self.refused} of {self.wrong}",
        }
        if not self.ran:
            table["solutions verified"] = table["wrong programs refused"] = "no program was run"
        lines = [f"{name:<28}{value}" for name, value in table.items()]
        problems = [f"{self.path}:{line}: {text}" for line, texts in sorted(self.problems.items()) for text in texts]
        if problems:
            lines += ["", f"{len(problems)} problems in {unsound} lines:", *problems[:shown]]
        if len(problems) > shown:
            lines.append(f"... and {len(problems) - shown} more")
        return "\n".join(lines)


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
            report.solutions += bool(task.solution)
        report.add(line, sentences)
        if not sentences:
            sound.append((line, task))
    for number, (line, task) in enumerate(sound if sandbox else (), start=1):
        sources, sentences = zip(*_trials(task), strict=True)
        verdicts = sandbox.judge([task.program(source) for source in sources])
        for verdict, sentence in zip(verdicts, sentences, strict=True):
            report.add(line, _problems(report, task, verdict, sentence))
        progress(number, len(sound))
    return report


def _trials(task: CodeTask) -> Iterator[tuple[str, str]]:
    """Yields programs, each with the problem to report if it passes; "" for a solution, which must."""
    if task.solution:
        yield task.solution, ""
    for index, source in enumerate(task.wrong):
        yield source, f"wrong[{index}] passes all tests; add a test that it fails"
    for what, source in ignorant_programs(task):
        yield source, f"all tests pass for a program that always {what}; add a test"


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
    # such tests may accept a program that only raises what they name
    named = {"Exception"}.union(*(loaded_in(tree) for tree in map(tree_of, (*task.tests, task.setup_code)) if tree))
    for name in sorted(named):
        kind = getattr(builtins, name, None)
        if isinstance(kind, type) and issubclass(kind, Exception):
            bodies[f"raises {name}"] = f"raise {name}('refused')"
    # passes where a test computes the expected value afterwards, from the same arguments
    bodies |= {f"empties its arguments and returns {value}": f"{_EMPTIES}; return {value}" for value in ("[]", "0")}
    return [
        (what, "".join(f"def {name}(*args, **kwargs):\n    {body}\n" for name in task.callables))
        for what, body in bodies.items()
    ]


def _problems(report: Report, task: CodeTask, verdict: ProgramVerdict, if_passed: str) -> Iterator[str]:
    """Counts a verdict, and yields its problem with the row."""
    failed = [(index, test) for index, test in enumerate(verdict.tests) if test.verdict != "pass"]
    why = ""
    if failed:
        index, test = failed[0]
        why = f"{'stdio' if task.stdio else 'tests'}[{index}] ({test.verdict}: {test.detail[:300]})"
    if not verdict.scored:
        yield f"the sandbox failed at {why}; check this row again"
    elif not if_passed:
        report.verified += verdict.passed
        if not verdict.passed:
            yield f"the solution fails {why}; fix one or the other"
    else:
        report.wrong += 1
        report.refused += not verdict.passed
        if verdict.passed:
            yield if_passed


def read_tasks(path: Path) -> tuple[list[tuple[int, dict]], list[tuple[int, str]]]:
    """Returns the rows of a JSONL file with their line numbers, and the problem of every line that is no JSON object.

    Line numbers start at 1; blank lines are skipped. Raises ConfigError for a file that cannot be read.
    """
    try:
        lines = path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")
    except OSError as error:
        raise ConfigError(f"'{path}' cannot be read ({error.strerror or error}); give a readable file") from error
    rows, problems = [], []
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line) if line.strip() else None
        except (ValueError, RecursionError) as error:
            problems.append((number, f"not JSON ({error}): fix or remove it"))
            continue
        if isinstance(row, dict):
            rows.append((number, row))
        elif line.strip():
            problems.append((number, f"got {type(row).__name__}, expected a JSON object: fix or remove it"))
    return rows, problems


if __name__ == "__main__":
    run_script(main)
