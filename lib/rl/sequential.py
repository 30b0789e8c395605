"""Attempts one after another against attempts side by side, at equal samples: votes (SCoRe, section 6.2), succ@k."""

from collections.abc import Callable, Sequence

import numpy as np
from accelerate import Accelerator

from lib.core import stats
from lib.rl.evaluation import Answers, difference, doublings, rate, standing
from lib.rl.tree import Group, attempts_in, paths
from lib.run.distributed import collect, highest


def success_at_k(answers: Answers, samples: int) -> list[dict]:
    """Compares, for k = 1, ... T, k attempts in a chat with k first attempts: is one of them right?

    succ: of k attempts one after another, where a chat may have ended before (UFO, arXiv 2507.14295). pass: of k out of
    `samples` first attempts, estimated without bias. The gain is paired by question, all intervals are clustered by it.
    """
    rows, questions = [], answers.group[::samples]
    right = answers.match.reshape(len(answers.match), -1, samples)  # (T, rows, samples)
    for k in range(1, min(len(right), samples) + 1):
        succ = right[:k].any(axis=0).mean(axis=1)
        chances = np.array([stats.pass_at_k(samples, count, k) for count in right[0].sum(axis=1).tolist()])
        most = len(chances) * samples
        row = {"k": k} | rate("succ", succ, questions, most) | rate("pass", chances, questions, most // k)
        rows.append(row | difference("gain", chances, succ, questions))
    return rows


def majority_votes(
    answers: Answers,
    trees: list[Group],
    samples: int,
    same: Callable[[str, str], bool],
    accelerator: Accelerator,
) -> list[dict]:
    """Compares majority votes at equal budgets, for K = 1, 2, 4, ... `samples` // T (SCoRe, section 6.2).

    Parallel: a vote over T K first attempts. Sequential: a vote over the last of T attempts in each of K chats. Both
    use the existing samples, in blocks; a prompt's value is the mean over its blocks.
    """
    attempts = max(len(attempts_in(path)) for tree in trees for path in paths(tree))
    attempts = highest(attempts, accelerator)
    verdicts = [[answer.verdict for answer in standing(path, attempts)] for tree in trees for path in paths(tree)]
    verdicts = [[(verdict.answer, verdict.match) for verdict in path] for path in verdicts]
    firsts, *_, seconds = zip(*collect(verdicts, accelerator), strict=True)
    rows, questions = [], answers.group[::samples]
    for k in doublings(samples // attempts):
        used = samples // (attempts * k) * attempts * k  # both sides see the same samples

        def accuracy(answers: Sequence[tuple[str, bool]], block: int, used: int = used) -> np.ndarray:
            votes = [
                [vote(answers[start + i : start + i + block], same) for i in range(0, used, block)]
                for start in range(0, len(answers), samples)
            ]
            return np.array(votes).mean(axis=1)

        row = {"k": k, "attempts": attempts * k}
        parallel, sequential = accuracy(firsts, attempts * k), accuracy(seconds, k)
        for name, values, block in (("acc_parallel", parallel, attempts * k), ("acc_sequential", sequential, k)):
            row |= rate(name, values, questions, len(questions) * (used // block))
        rows.append(row | difference("gain", parallel, sequential, questions))
    return rows


def vote(answers: Sequence[tuple[str, bool]], same: Callable[[str, str], bool]) -> float:
    """Returns the chance that the most frequent of the (answer, is right) pairs is right.

    Ties are broken at random; an empty answer has no vote.
    """
    camps: list[tuple[str, bool, list[str]]] = []
    for answer, is_right in answers:
        if answer.strip():
            camp = next((camp for camp in camps if same(camp[0], answer)), None)
            if camp is None:
                camps.append(camp := (answer, is_right, []))
            camp[2].append(answer)
    most = max((len(voters) for _, _, voters in camps), default=0)
    winners = [is_right for _, is_right, voters in camps if len(voters) == most]
    return sum(winners) / len(winners) if winners else 0.0
