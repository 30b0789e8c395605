"""Checks a JSONL file of programming tasks before anybody trains on it; judge/tasks.py says what a row holds.

    python data/check_code_tasks.py data/mine.jsonl
    python data/check_code_tasks.py data/mine.jsonl --static          # reads only, runs nothing
    python data/check_code_tasks.py data/mine.jsonl --clean good.jsonl --quarantine bad.jsonl

Every solution must pass its tests, and programs that know nothing of the task must not. Exit code 2: some row has a
problem; 0: none has.
"""

import argparse
import contextlib
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # the repository: `python data/...` puts only data/ there

from data.builders import write_rows
from judge.pool import Sandbox
from judge.trials import check
from lib.core.errors import FINISHED, ConfigError, run_script

QUIET = 5  # seconds between two lines of progress


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


if __name__ == "__main__":
    run_script(main)
