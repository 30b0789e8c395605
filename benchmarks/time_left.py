"""Compares the time left that a run tells in each of its lines with how long it then takes.

    python benchmarks/time_left.py python rl_train_gspo_selfplay.py --config configs/tiny_code.yaml
    python benchmarks/time_left.py python train.py --config configs/tiny_sums.yaml run_name=timed
    python benchmarks/time_left.py --logs outputs/*                    # what runs of before told, by their logs

Counted are the lines that say `12m05s left, until 14:32`, from a tenth of the time between the plan that the run prints
and its end; the last three seconds are not, in which the rounding of what is told is most of it. Of logs, by when the
rows were written: the first evaluation, whose start no row tells, is taken to last as long as the second. Runs with one
evaluation alone are left out; those that were resumed should not be named, since their pause would count as a step.
"""

import os
import re
import subprocess
import sys
import time
from collections import Counter
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from lib.run.pace import Pace
from lib.run.runlog import read_jsonl

LEFT = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)? left, until")
STARTS = re.compile(r"planned: |left: ")
ALLOWED, LAST = 0.25, 3.0  # share, seconds

Told = tuple[float, float]  # how far off, as a share of what it then took; how far the run was, as a share of it


def main() -> int:
    """Runs the command and passes its output on, or reads logs, and prints how far off the times told were."""
    command = sys.argv[1:]
    if not command or command[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if command else 2
    if command[0] == "--logs":
        return of_logs([Path(each) for each in command[1:]])
    environment = os.environ | {"PYTHONUNBUFFERED": "1", "COLUMNS": "250"}
    start, told = time.monotonic(), []
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, errors="replace") as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            now = time.monotonic()
            if STARTS.search(line):
                start = now
            for found in LEFT.finditer(line):
                told.append((now, seconds_of(found)))
    end = time.monotonic()
    print(f"\n{end - start:.0f} s from the first plan to the end; {summary(counted(told, start, end))}")
    return process.returncode


def of_logs(folders: list[Path]) -> int:
    """Prints how far off each run was, and all of them together."""
    runs = {folder: lines for folder in folders if (lines := replayed(folder))}
    for folder, lines in runs.items():
        print(f"{folder}: {summary(lines)}")
    right = sum(all(abs(off) <= ALLOWED for off, _ in lines) for lines in runs.values())
    print(f"{len(runs)} of {len(folders)} folders hold such runs, {right} without a line that is off: ", end="")
    print(summary([line for lines in runs.values() for line in lines]))
    return 0 if runs else 1


def replayed(folder: Path) -> list[Told]:
    """Returns what a run told, from the times in its log and lib/run/pace.py as it is now; nothing of other folders."""
    streams = [folder / f"{name}.jsonl" for name in ("metrics", "evaluations")]
    if not all(stream.exists() for stream in streams):
        return []
    rows = [
        row | {"at": datetime.fromisoformat(row["time"]).timestamp()} for each in streams for row in read_jsonl(each)[0]
    ]
    events: list[dict] = []  # steps, and evaluations with the answers of all their rows
    for row in sorted(rows, key=lambda row: row["at"]):
        if "when" in row and events and events[-1].get("when") == row["when"]:
            events[-1] |= {"at": row["at"], "n": events[-1]["n"] + row["n"]}
        else:
            events.append(row)
    seconds = [later["at"] - event["at"] for event, later in pairwise(events) if "when" in later]
    steps = Counter(event.get("stage", 1) for event in events if "when" not in event)
    if not seconds or "when" not in events[0] or "when" not in events[-1]:
        return []
    answers = sum(event["n"] for event in events if "when" in event)
    start, end = events[0]["at"] - seconds[0], events[-1]["at"]
    now, told = start, []
    pace = Pace(lambda: now)
    for event in events:
        now = event["at"]
        if "when" in event:
            pace.evaluated(event["n"])
            answers -= event["n"]
        else:
            stage = event.get("stage", 1)
            pace.step(stage)
            steps[stage] -= 1
            left = pace.left(steps, answers)
            told += [] if left is None else [(now, left)]
    return counted(told, start, end)


def counted(told: list[tuple[float, float]], start: float, end: float) -> list[Told]:
    """Returns the lines that count of those told, each with its time and the seconds it said were left."""
    return [
        (left / (end - at) - 1, (at - start) / (end - start))
        for at, left in told
        if at - start >= 0.1 * (end - start) and end - at >= LAST
    ]


def summary(lines: list[Told]) -> str:
    """Describes how far off the lines were."""
    if not lines:
        return "no lines counted"
    wrong = sum(abs(off) > ALLOWED for off, _ in lines)
    worst, part = max(lines, key=lambda line: abs(line[0]))
    return (
        f"{len(lines)} lines counted; off by more than {ALLOWED:.0%}: {wrong}; "
        f"median {median(abs(off) for off, _ in lines):.1%}, worst {worst:+.0%} after {part:.0%} of the run"
    )


def seconds_of(found: re.Match) -> int:
    """Returns the seconds of `1h02m` or `12m05s`."""
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return (hours * 60 + minutes) * 60 + seconds


if __name__ == "__main__":
    sys.exit(main())
