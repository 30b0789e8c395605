"""Compares the time left that a run tells in each of its lines with how long it then takes.

    python benchmarks/time_left.py python rl_train_gspo_selfplay.py --config configs/tiny_code.yaml
    python benchmarks/time_left.py python train.py --config configs/tiny_sums.yaml run_name=timed

Counted are the lines that say `12m05s left, until 14:32`, from a tenth of the time between the plan that the run prints
and its end; the last three seconds are not, in which the rounding of what is told is most of it.
"""

import os
import re
import subprocess
import sys
import time
from statistics import median

LEFT = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)? left, until")
STARTS = re.compile(r"planned: |left: ")
ALLOWED, LAST = 0.25, 3.0  # share, seconds


def main() -> int:
    """Runs the command, passes its output on, and prints how far off it was."""
    command = sys.argv[1:]
    if not command or command[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if command else 2
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
    lines = [
        (left / (end - at) - 1, (at - start) / (end - start))
        for at, left in told
        if at - start >= 0.1 * (end - start) and end - at >= LAST
    ]
    print(f"\n{end - start:.0f} s from the first plan to the end; {len(lines)} lines counted", end="")
    if lines:
        wrong = [(off, part) for off, part in lines if abs(off) > ALLOWED]
        worst, part = max(lines, key=lambda line: abs(line[0]))
        print(f"; off by more than {ALLOWED:.0%}: {len(wrong)}; median {median(abs(off) for off, _ in lines):.1%}, ")
        print(f"worst {worst:+.0%} after {part:.0%} of the run", end="")
    print()
    return process.returncode


def seconds_of(found: re.Match) -> int:
    """Returns the seconds of `1h02m` or `12m05s`."""
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return (hours * 60 + minutes) * 60 + seconds


if __name__ == "__main__":
    sys.exit(main())
