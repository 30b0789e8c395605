"""Simulates how often a group of answers differs, and teaches something, under a curriculum and without.

    python benchmarks/curriculum.py                 # half a minute, no model
    python benchmarks/curriculum.py --seeds 10

400 prompts, some of which no answer ever solves; the logits of the others are normal (mean -0.5, deviation 2), and
grow with every group that differs (by up to 0.15) and a little with every step. Groups of 8, 32 prompts a step, 150
steps. The opponent solves what the policy could solve when it began.

Then the replay buffer: how much less its draws earn than the best would, as a share of what uniform draws lose, on 200
arms, which halfway change places or do not; and how many entries a second it adds, draws and credits, of 100,000.
"""

import argparse
import random
import sys
import time
from collections.abc import Callable
from math import exp
from pathlib import Path
from statistics import fmean

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from lib.core.config import ReplaySettings, Weighting
from lib.rl.curriculum import Sampler, WeightedSampler
from lib.rl.replay import ReplayBuffer

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
    for changes in (False, True):
        shares = [regret("ucb", seed, changes) / regret("uniform", seed, changes) for seed in seeds]
        print(f"loss of the buffer's draws / of uniform ones, arms {'changing places' if changes else 'as they are'}: "
              f"{fmean(shares):.2f} [{min(shares):.2f} to {max(shares):.2f}]")  # fmt: skip
    for what, rate in speeds(100_000).items():
        print(f"{what}: {rate:,.0f} a second of CPU time")


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


def regret(draw: str, seed: int, changes: bool) -> float:
    """Returns how much less draws of 8 of 200 arms earn than the best would, on average over draws."""
    steps, batch = 300, 8
    dice = np.random.default_rng(seed)
    worth = dice.beta(0.5, 2.0, 200)
    buffer = ReplayBuffer(ReplaySettings(draw=draw, coefficient=0.2, exploit=0.9), seed)
    for arm in range(200):
        buffer.add(str(arm), arm, float(dice.random() < worth[arm]))
    lost = 0.0
    for step in range(steps):
        if changes and step == steps // 2:
            worth = worth[::-1].copy()
        drawn = buffer.sample(batch)
        for each in drawn:
            buffer.credit(each.uid, float(dice.random() < worth[each.item]))
        lost += np.sort(worth)[-batch:].sum() - sum(worth[each.item] for each in drawn)
    return lost / steps / batch


def speeds(size: int) -> dict[str, float]:
    """Returns entries a second for a buffer of `size`: added, added to a full one, drawn and credited."""
    dice = random.Random(0)
    buffer = ReplayBuffer(ReplaySettings(capacity=size), 0)

    def rate(count: int, act: Callable[[], object]) -> float:
        start = time.process_time()
        act()
        return count / (time.process_time() - start)

    def add(first: int, more: float) -> None:
        for i in range(first, first + size):
            buffer.add(f"prompt {i}", [i, None], dice.random() + more)

    found = {"added": rate(size, lambda: add(0, 0.0)), "added to a full buffer": rate(size, lambda: add(size, 0.1))}
    for batch in (32, 256):
        found[f"drawn by {batch}"] = rate(50 * batch, lambda batch=batch: [buffer.sample(batch) for _ in range(50)])
    drawn = buffer.sample(size)
    found["credited"] = rate(size, lambda: [buffer.credit(each.uid, dice.random()) for each in drawn])
    return found


def pass_rate(logit: float | None) -> float:
    """Returns the probability that an answer is right."""
    return 0.0 if logit is None else 1 / (1 + exp(-logit))


if __name__ == "__main__":
    main()
