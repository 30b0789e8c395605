"""Measures what it costs to judge a program of three asserts, by the sandbox and in two common ways.

    python benchmarks/sandbox.py                      # some seconds each
    python benchmarks/sandbox.py --programs 1000      # steadier
    python benchmarks/sandbox.py --heap-gb 2          # from a process as large as a small trainer

subprocess   a new interpreter for each program, under the same limits of memory and time; its status is the verdict
bubblewrap   the same in namespaces of its own, without network or home

Contenders are measured in turns, so that the machine's other work falls on all of them; the ratio is against subprocess
in the same turn. The last column says what each makes of a program that solves nothing and calls os._exit(0).
"""

import argparse
import contextlib
import logging
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rich.console import Console
from rich.table import Table

from judge.__main__ import example
from judge.isolation import check
from judge.launch import RUNGS
from judge.pool import Sandbox, cores
from judge.worker import Program, Worker
from lib.core.errors import run_script

CHEAT = "import os\nos._exit(0)\n"
SECONDS, MEGABYTES = 2, 256
Judge = Callable[[Program], bool]


def main() -> int:
    """Measures, and prints the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--programs", type=int, default=200, help="per contender and turn (default: 200)")
    options.add_argument("--turns", type=int, default=5, help="default: 5")
    options.add_argument("--workers", type=int, default=cores(), help="programs at once (default: one per core)")
    options.add_argument(
        "--heap-gb", type=float, default=0, help="what this process holds meanwhile, as a trainer would"
    )
    args = options.parse_args()
    logging.disable()  # without the warning that R1 protects nothing
    ballast = b"\1" * int(args.heap_gb * 2**30)  # written to, so that it is resident
    rungs = [rung for rung in RUNGS if not check(rung).why_not]
    judges = {"subprocess": in_a_subprocess} | ({"bubblewrap": in_bubblewrap} if shutil.which("bwrap") else {})
    rates: dict[str, list[float]] = {}
    latencies: dict[str, list[float]] = {}
    for turn in range(args.turns):
        for name, judge in judges.items():
            one_by_one, rate = measured(judge, args.programs // 4, args.workers, turn)  # they are slow
            latencies.setdefault(name, []).extend(one_by_one)
            rates.setdefault(name, []).append(rate)
        for rung in rungs:
            one_by_one, rate = measured_sandbox(rung, args.programs, args.workers, turn)
            latencies.setdefault(rung.name, []).extend(one_by_one)
            rates.setdefault(rung.name, []).append(rate)
    starts = {rung.name: worker_start(rung) for rung in rungs}
    cheat = replace(example(0), source=CHEAT)
    fooled = {name: judge(cheat) for name, judge in judges.items()}
    fooled |= {rung.name: judged_by(rung, cheat) for rung in rungs}
    show(latencies, rates, starts, fooled, args.workers)
    del ballast
    return 0


def measured(judge: Judge, count: int, workers: int, turn: int) -> tuple[list[float], float]:
    """Returns the seconds of each of `count` programs, one by one, and the programs per second, several at once."""
    seconds = []
    for number in range(count):
        started = time.perf_counter()
        require(judge(example(number)))
        seconds.append(time.perf_counter() - started)
    started = time.perf_counter()
    with ThreadPoolExecutor(workers) as pool:
        for right in pool.map(judge, map(example, range(turn, turn + count))):
            require(right)
    return seconds, count / (time.perf_counter() - started)


def measured_sandbox(rung, count: int, workers: int, turn: int) -> tuple[list[float], float]:
    """Measures the same for long-lived workers."""
    programs = [example(turn * count + i) for i in range(count)]
    seconds = []
    worker = Worker(rung)
    for program in programs:
        started = time.perf_counter()
        require(worker.judge(program).passed)
        seconds.append(time.perf_counter() - started)
    worker.close()
    with Sandbox(workers, rung=rung.name, allow_unsafe=True) as sandbox:
        sandbox.judge([example(-i) for i in range(1, 8 * workers)])  # so that all workers are up
        started = time.perf_counter()
        for verdict in sandbox.judge(programs):
            require(verdict.passed)
        return seconds, count / (time.perf_counter() - started)


def worker_start(rung) -> float:
    """Returns the median of five starts, in seconds."""
    seconds = []
    for _ in range(5):
        started = time.perf_counter()
        worker = Worker(rung)
        seconds.append(time.perf_counter() - started)
        worker.close()
    return statistics.median(seconds)


def judged_by(rung, program: Program) -> bool:
    """True if a worker lets a program pass."""
    with contextlib.closing(Worker(rung)) as worker:
        return worker.judge(program).passed


def in_a_subprocess(program: Program, prefix: tuple[str, ...] = ()) -> bool:
    """Runs the program and its tests in one new interpreter; tells whether that ends with status 0."""
    text = "\n".join([program.source, *program.tests])
    command = [*prefix, os.path.realpath(sys.executable), "-I", "-S", "-c", text]
    done = subprocess.run(
        command, preexec_fn=limit, timeout=5 * SECONDS, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    return done.returncode == 0


def limit() -> None:
    """Limits memory and time of a subprocess."""
    resource.setrlimit(resource.RLIMIT_AS, (MEGABYTES << 20, MEGABYTES << 20))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))


def in_bubblewrap(program: Program) -> bool:
    """Runs the same in namespaces of its own."""
    folders = [part for path in ("/usr", "/lib", "/lib64", sys.base_prefix) for part in ("--ro-bind-try", path, path)]
    prefix = ("bwrap", "--unshare-all", "--die-with-parent", *folders, "--proc", "/proc", "--dev", "/dev", "--clearenv")
    return in_a_subprocess(program, (*prefix, "--"))


def require(right: bool) -> None:
    """Raises SystemExit unless `right`: a benchmark of wrong verdicts is worth nothing."""
    if not right:
        raise SystemExit("a right program was judged wrong: void")


def show(latencies: dict, rates: dict, starts: dict, fooled: dict, workers: int) -> None:
    """Prints the table."""
    table = Table(title=f"a program of three asserts, {workers} workers on {cores()} cores")
    for heading in ("", "median ms", "95 % ms", "per second", "ratio", "start ms", "os._exit(0)"):
        table.add_column(heading, justify="left" if not heading else "right")
    for name, seconds in latencies.items():
        ordered = sorted(seconds)
        ratio = statistics.median(mine / its for mine, its in zip(rates[name], rates["subprocess"], strict=True))
        table.add_row(
            name, f"{1e3 * statistics.median(ordered):.1f}", f"{1e3 * ordered[int(0.95 * len(ordered))]:.1f}",
            f"{statistics.median(rates[name]):.0f}", f"{ratio:.1f}x",
            f"{1e3 * starts[name]:.0f}" if name in starts else "", "PASSES" if fooled[name] else "fails",
        )  # fmt: skip
    Console(width=100).print(table)


if __name__ == "__main__":
    run_script(main)
