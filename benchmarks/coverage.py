"""Counts how often the printed intervals hold what they are about: 95 times in 100, if they are right.

    OMP_NUM_THREADS=1 python benchmarks/coverage.py               # a minute; --runs 100 for a glance

Answers are drawn, and go through the functions that make the rows of evaluations.jsonl, of scoreboard.json and of a
collection. Each question has a chance of its own, so that the answers to it are not independent: beta(0.5, 0.5), by
which most questions are nearly always answered in the same way, or beta(2, 2). Attempt 2, and another policy, have the
same chance at 7 of 10 questions and a new one at the others: the truth of every difference is 0, and of games one half;
but after a wrong answer a new chance is better than a fresh draw.
`blind` is the same with every answer for itself.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from lib.core.config import Weighting
from lib.core.stats import mean_interval, sign_flip_p, wilson
from lib.generators.progress import CollectionProgress
from lib.play.scoreboard import Scoreboard
from lib.report.paired import compare
from lib.rl.curriculum import Sampler, WeightedSampler
from lib.rl.evaluation import Answers, pass_at_k, summarise

Interval = tuple[float, float]
Drawn = Iterator[tuple[str, float, Interval, Interval | None]]  # what, the truth, its interval, the blind one
SHAPES = {(100, 1): (0.5, 0.5), (100, 2): (0.5, 0.5), (100, 8): (0.5, 0.5), (50, 4): (2.0, 2.0)}
SAME = 0.7  # of the questions


def main() -> None:
    """Draws every kind of number often, and prints the share of its intervals that hold the truth."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    runs = parser.parse_args().runs
    print("| interval of | drawn | held | blind |\n|---|---|---|---|")
    for (questions, samples), shape in SHAPES.items():
        about = f"{questions} x {samples}, beta({shape[0]:g}, {shape[1]:g})"
        show(about, runs, lambda dice, q=questions, s=samples, b=shape: evaluations(dice, q, s, b))
    for epochs in (1, 4):
        show(f"120 prompts, {epochs} epochs", runs // 2, lambda dice, e=epochs: scoreboards(dice, e))
    show("5 and 20 runs", runs, seeds)


def show(about: str, runs: int, draw: Callable[[np.random.Generator], Drawn]) -> None:
    """Prints a line of the table for each kind of number."""
    dice, held = np.random.default_rng(0), {}
    for _ in range(runs):
        for name, truth, *intervals in draw(dice):
            counts = held.setdefault(name, [[], []])
            for count, interval in zip(counts, intervals, strict=True):
                if interval is not None and interval[0] is not None:
                    count.append(interval[0] - 1e-9 <= truth <= interval[1] + 1e-9)
    for name, counts in held.items():
        cells = " | ".join(f"{np.mean(count):.3f}" if count else "" for count in counts)
        print(f"| {name} | {about} | {cells} |", flush=True)


def evaluations(dice: np.random.Generator, questions: int, samples: int, shape: tuple[float, float]) -> Drawn:
    """Yields the intervals of an evaluation of both attempts, of a collection, and of two policies compared."""
    chance = dice.beta(*shape, questions)
    others = [np.where(dice.random(questions) < SAME, chance, dice.beta(*shape, questions)) for _ in range(2)]
    one, two, theirs = (dice.random((questions, samples)) < each[:, None] for each in (chance, *others))
    first, second = attempts(one, two), attempts(theirs, two)
    row, other = summarise(first, 1.0), summarise(second, 1.0)
    a, b = shape
    mean, n = a / (a + b), one.size
    yield "accuracy", mean, row["acc_attempt1_ci95"], wilson(one.sum(), n)
    changed = SAME * a * b / (a + b) / (a + b + 1) + (1 - SAME) * mean * (1 - mean)
    yield "i->c", changed, row["i_to_c_ci95"], wilson((~one & two).sum(), n)
    yield "delta", 0, row["delta_ci95"], None
    yield "mcnemar_p > .05", 0, certain(row["mcnemar_p"]), certain(blind_p(one, two))
    if samples > 1:
        fresh, new = a / (a + b + 1), (1 - SAME) * (mean - a / (a + b + 1))
        yield "fresh draw after a wrong one", fresh, row["fresh_after_wrong_ci95"], None
        yield "revision after a wrong one", fresh + new, row["revised_after_wrong_ci95"], None
        yield "revision minus fresh draw", new, row["revised_minus_fresh_ci95"], None
    for part in pass_at_k(first, samples)[1:]:
        k = part["k"]
        missed = np.prod((b + np.arange(k)) / (a + b + np.arange(k)))
        yield f"pass@{k}", 1 - missed, part["pass_ci95"], None
    yield "collection", mean, collection(one), wilson(one.sum(), n)
    found = compare({**row, "questions": ""}, {**other, "questions": ""}, ("", ""))[0]
    yield "paired comparison", 0, found["difference_ci95"], None
    yield "paired comparison, p > .05", 0, certain(found["p"]), certain(blind_p(one, theirs))


def attempts(one: np.ndarray, two: np.ndarray) -> Answers:
    """Returns both attempts in the form that an evaluation has them."""
    group, nothing = np.repeat(np.arange(len(one)), one.shape[1]), np.zeros(one.size)
    return Answers(group, one.flatten(), two.flatten(), *[nothing] * 10, components=[{}])


def collection(right: np.ndarray) -> Interval:
    """Returns the interval that a collection prints, widened by the rounding to three digits."""
    said: list[str] = []
    progress = CollectionProgress(SimpleNamespace(endpoint=None), SimpleNamespace(say=said.append), right.size)
    progress.rewards, progress.well_formed = [1.0] * right.size, [True] * right.size
    progress.matches = {str(number): row.tolist() for number, row in enumerate(right)}
    progress.summary()
    low, high = said[0].partition("[")[2].partition("]")[0].split(",")
    return float(low) - 5e-4, float(high) + 5e-4


def scoreboards(dice: np.random.Generator, epochs: int) -> Drawn:
    """Yields the intervals of games between two equal players; the opponent's answer to a prompt is kept."""
    chance = dice.beta(0.5, 0.5, size=120)
    kept, seed = dice.random(120) < chance, int(dice.integers(2**31))
    for name, sampler in (("scoreboard", Sampler(120, seed)),
                          ("scoreboard, curriculum", WeightedSampler(120, seed, Weighting()))):  # fmt: skip
        board, chosen = Scoreboard(), isinstance(sampler, WeightedSampler)
        for step in range(epochs * 15):
            rows = sampler.take(8)
            right = dice.random((8, 8)) < chance[rows, None]
            games = [(str(row), bool(mine[0]), bool(kept[row])) for row, mine in zip(rows, right, strict=True)]
            board.record(games, step, chosen)
            for row, mine in zip(rows, right, strict=True):
                if chosen:
                    sampler.note(row, float(mine.mean()), bool(kept[row]))
        yield name, 0.5, board.summary()["win_rate_ci95"], wilson(board.policy_only, board.decisive)


def seeds(dice: np.random.Generator) -> Drawn:
    """Yields the intervals of means over runs of a sweep."""
    for runs in (5, 20):
        yield f"mean over {runs} runs", 0.9, mean_interval((0.9 + 0.03 * dice.normal(size=runs)).tolist()), None


def blind_p(one: np.ndarray, two: np.ndarray) -> float:
    """Returns the p-value of the test that takes all answers as independent."""
    return sign_flip_p((two.astype(int) - one).flatten().tolist())


def certain(p: float) -> Interval:
    """Returns an interval that holds 0 exactly if p is at least .05."""
    return (0.0, 0.0) if p >= 0.05 else (1.0, 1.0)


if __name__ == "__main__":
    main()
