"""Simulates how often a group of answers differs, and teaches something, under a curriculum and without.

    python benchmarks/curriculum.py                 # some seconds, no model
    python benchmarks/curriculum.py --seeds 10

400 prompts, some of which no answer ever solves; the logits of the others are normal (mean -0.5, deviation 2), and
grow with every group that differs (by up to 0.15) and a little with every step. Groups of 8, 32 prompts a step, 150
steps. The opponent solves what the policy could solve when it began.
"""

import argparse
import random
import sys
from collections.abc import Callable
from math import exp
from pathlib import Path
from statistics import fmean

sys.path.insert(0, str(Path(__file__).parents[1]))

from lib.core.config import Weighting
from lib.rl.curriculum import WeightedSampler
from lib.run.sampler import Sampler

PROMPTS, STEPS, BATCH, GROUP = 400, 150, 32, 8
Make = Callable[[int, int], Sampler | WeightedSampler]
SAMPLERS: dict[str, Make] = {
    "uniform": Sampler,
    "curriculum": lambda size, seed: WeightedSampler(size, seed, Weighting()),
    "curriculum, no opponent": lambda size, seed: WeightedSampler(size, seed, Weighting(opponent=0)),
}


def main() -> None:
    """Prints a table: the share of groups that differ, and the pass rate over all prompts at the end."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seeds", type=int, default=3)
    seeds = range(options.parse_args().seeds)
    print("| sampler | impossible | groups that differ | pass rate at the end |\n|---|---|---|---|")
    for impossible in (0.0, 0.2, 0.5):
        for name, make in SAMPLERS.items():
            differ, passed = zip(*(simulate(make, impossible, seed) for seed in seeds), strict=True)
            print(f"| {name} | {impossible:.0%} | {fmean(differ):.3f} | {fmean(passed):.3f} |")


def simulate(make: Make, impossible: float, seed: int) -> tuple[float, float]:
    """Returns the share of groups that differed, and the mean pass rate at the end."""
    dice = random.Random(seed)
    logits = [None if dice.random() < impossible else dice.gauss(-0.5, 2.0) for _ in range(PROMPTS)]
    opponent = [dice.random() < pass_rate(logit) for logit in logits]
    sampler, told = make(PROMPTS, seed), 0
    for _ in range(STEPS):
        for row in sampler.take(BATCH):
            p = pass_rate(logits[row])
            solved = sum(dice.random() < p for _ in range(GROUP))
            if isinstance(sampler, WeightedSampler):
                sampler.note(row, solved / GROUP, opponent[row])
            if 0 < solved < GROUP:
                told += 1
                logits[row] += 0.15 * 4 * p * (1 - p)
        logits = [None if logit is None else logit + 0.004 for logit in logits]
    return told / (STEPS * BATCH), fmean(map(pass_rate, logits))


def pass_rate(logit: float | None) -> float:
    """Returns the probability that an answer is right."""
    return 0.0 if logit is None else 1 / (1 + exp(-logit))


if __name__ == "__main__":
    main()
