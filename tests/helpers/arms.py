"""Simulates how often a group of answers differs, and teaches something, under a curriculum and without.

400 prompts, some of which no answer ever solves; the logits of the others are normal (mean -0.5, deviation 2), and
grow with every group that differs (by up to 0.15) and a little with every step. Groups of 8, 32 prompts a step, 150
steps. The opponent solves what the policy could solve when it began.

Then the replay buffer: how much less its draws earn than the best would, as a share of what uniform draws lose, on 200
arms, which halfway change places or do not.
"""

import random
from collections.abc import Callable
from math import exp
from statistics import fmean

import numpy as np

from lib.core.config import ReplaySettings, Weighting
from lib.rl.curriculum import Sampler, WeightedSampler
from lib.rl.replay import ReplayBuffer

PROMPTS, STEPS, BATCH, GROUP = 400, 150, 32, 8
Make = Callable[[int, int], Sampler | WeightedSampler]
SAMPLERS: dict[str, Make] = {
    "uniform": Sampler,
    "curriculum": lambda size, seed: WeightedSampler(size, seed, Weighting()),
}


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


def regret(exploit: float, seed: int, changes: bool) -> float:
    """Returns how much less draws of 8 of 200 arms earn than the best would, on average over draws."""
    steps, batch = 300, 8
    dice = np.random.default_rng(seed)
    worth = dice.beta(0.5, 2.0, 200)
    buffer = ReplayBuffer(ReplaySettings(coefficient=0.2, exploit=exploit), seed)
    for arm in range(200):
        buffer.add(str(arm), arm, float(dice.random() < worth[arm]))
    lost = 0.0
    for step in range(steps):
        if changes and step == steps // 2:
            worth = worth[::-1].copy()
        drawn = buffer.sample(batch)
        for choice in drawn:
            buffer.credit(choice.uid, float(dice.random() < worth[choice.item]))
        lost += np.sort(worth)[-batch:].sum() - sum(worth[choice.item] for choice in drawn)
    return lost / steps / batch


def pass_rate(logit: float | None) -> float:
    """Returns the probability that an answer is right."""
    return 0.0 if logit is None else 1 / (1 + exp(-logit))
