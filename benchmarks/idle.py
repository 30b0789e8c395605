"""Measures what it saves that attempts without a gradient need no forward: the same steps with and without, in turns.

    OMP_NUM_THREADS=1 python benchmarks/idle.py --config configs/tiny_sums.yaml train.beta1=0    # after `make demo`

Each step of stage I samples once; then its gradient is accumulated of every attempt and of those learned, in turns,
and the run continues with the latter. Times are those of the processor, so other work does not count; the first
step is left out. A ratio is every attempt divided by those learned: the median over steps, and its range.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import reward_function  # noqa: F401  registers rewards and extractors
from lib.core.config import ScoreConfig, load, parser
from lib.rewards.judge import prepare
from lib.rl.score import ScoreRun
from lib.rl.task import load_task


def main() -> None:
    """Takes the steps, and prints a table."""
    options = parser(__doc__, smoke=False)
    options.add_argument("--steps", type=int, default=10)
    args = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        config = load(ScoreConfig, args.config, [*args.overrides, f"output_dir={folder}"])
        prepare(config)
        run = ScoreRun(load_task(config))
        run.progress.due = None
        with run.open():
            rows = [a_step(run) for _ in range(1 + args.steps)][1:]
    print("| | all attempts | those learned | ratio |\n|---|---|---|---|")
    for what in ("update", "whole step"):
        every, part = ([row[name] + (what != "update") * row["sample"] for row in rows] for name in ("all", "part"))
        ratios = [a / b for a, b in zip(every, part, strict=True)]
        ends = f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        print(f"| {what} | {median(every):.2f} s | {median(part):.2f} s | {ends} |")
    for name in ("zero_advantage", "learned"):
        print(f"{name}: {median(row[name] for row in rows):.2f} ({min(row[name] for row in rows):.2f} to "
              f"{max(row[name] for row in rows):.2f})")  # fmt: skip


def a_step(run: ScoreRun) -> dict[str, float]:
    """Takes one step of stage I; returns the seconds of its parts, and how much of it was learned from."""
    stage, took = run.stages[0], {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        started = time.process_time()
        result = work()
        took[name] = time.process_time() - started
        return result

    trees = timed("sample", lambda: run.sample(stage))
    credit = run.credit(stage, trees)
    every = replace(credit, learned=[True] * len(credit.learned), parts=[credit.nodes])
    ways = {"all": every, "part": credit}
    for name in ways if run.progress.step % 2 else reversed(ways):
        run.step.optimizer.zero_grad()
        learned = ways[name]
        arguments = learned, learned.parts[0], run.objective, run.step.logps_before(learned)
        timed(name, lambda arguments=arguments: run.step.gradients(*arguments))
    row = run.update(stage, trees, credit)
    return took | {name: row[name] for name in ("zero_advantage", "learned")}


if __name__ == "__main__":
    main()
