"""Held-out accuracy with 95 % intervals: of all attempts, with delta, i->c and c->i, or of single answers, with pass@k.

Training selects by other questions than those that are reported: the best of many evaluations is lucky too, and its
luck must not be reported. `selection` of a row has the accuracy on its questions, also by prompt.

All samples of a question, and all rows that ask it, are one cluster of every interval and of `mcnemar_p`.
`per_question` counts the answers to each question, the right ones, and those that a revision spoiled, in the order of
first appearance. Comparisons of two evaluations pair their questions by it (pages/paired.py, lib/rl/watch.py).

A revision is worth something only if it beats another first attempt, which costs as much: `revised_after_wrong` is the
share of wrong first attempts whose attempt 2 is right, `fresh_after_wrong` that of the other first attempts to the same
questions. A row has both if answers are sampled.

Any policy gains from an oracle that stops it in time: `acc_if_stopped` is the accuracy of the same samples if the first
right attempt of a chat were its last one. For two attempts that is `acc_attempt2` + `c_to_i`.

Accuracy is exact match of answers in the declared format, never shaped reward. i->c and c->i are fractions of all
answers, so that delta = i->c - c->i (SCoRe, arXiv 2409.12917, section 3).
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import accumulate, count, pairwise
from operator import mul
from typing import Any, TypeVar

import numpy as np
import torch
from accelerate import Accelerator

from lib.core import stats
from lib.core.config import ATTEMPT
from lib.core.errors import Left
from lib.core.interrupts import give_way
from lib.generators.reply_cache import key_of
from lib.model.policy import Policy
from lib.rewards.judge import Judge
from lib.rl.prompts import Renderer
from lib.rl.tree import Answer, Group, Sampling, attempts_in, paths, sample
from lib.run.distributed import collect, highest, part_of, share

ROWS_AT_ONCE = 512  # prompts that are answered together
Question = TypeVar("Question")
Result = TypeVar("Result")
COLUMNS = ("match", "reward", "length", "truncated", "well_formed", "changed", "unscored", "repeated")  # of `Answers`
MEANS = ("reward", "length", "truncated")  # of each attempt, without an interval


@dataclass(frozen=True)
class Answers:
    """All T attempts at every held-out prompt, a column per sample, as plain numbers.

    Where nothing followed an attempt, it stands for those that would have; these have no tokens.
    """

    group: np.ndarray  # (n,) index of the question, shared by columns with the same question
    match: np.ndarray  # (T, n) bool
    reward: np.ndarray  # (T, n)
    length: np.ndarray  # (T, n) tokens
    truncated: np.ndarray  # (T, n) bool
    well_formed: np.ndarray  # (T, n) bool
    changed: np.ndarray  # (n,) bool, the answers extracted from the last two attempts differ
    unscored: np.ndarray  # (n,) bool, a reward could not judge one of the attempts; it counts as wrong
    components: list[dict[str, float]]  # of the last attempt
    repeated: np.ndarray | Sequence = ()  # (T, n) bool, the answer is one that the column had before; empty: unknown
    task: Sequence[str] = ()  # (n,) of the row, "" or empty where all rows are judged alike
    reviews: Sequence[Sequence[tuple[bool, bool | None, int]]] = ()  # (n,) those of a column, from `_reviewed`


def evaluate(
    policy: Policy,
    prompts: Renderer,
    rows: list[dict],
    judge: Judge,
    sampling: Sampling,
    seed: int,
    accelerator: Accelerator,
    on_progress: Callable[[int, int], None] = lambda done, of: None,
    attempts: int | None = None,
) -> tuple[Answers, list[Group]]:
    """Samples all attempts at all rows; returns them, for `summarise` or `selected`, and this process's trees.

    `attempts`: how many a chat may have, where some of its turns are reviews; None: as many as turns.
    """
    trees = in_parts(
        lambda part, *how: sample(policy, prompts, [prompts.prompt(row) for row in part], judge, sampling, *how),
        rows, seed, policy.device, accelerator, sum(accumulate(sampling.copies, mul)), on_progress,
    )  # fmt: skip
    trees = [tree.ends() for tree in trees] if attempts == 1 else trees
    return answers_of(trees, accelerator, attempts or len(sampling.copies)), trees


def in_parts(
    answer: Callable[[list[Question], torch.Generator, int, Callable[[], None]], list[Result]],
    rows: list[Question],
    seed: int,
    device: torch.device,
    accelerator: Accelerator,
    per_row: int,
    on_progress: Callable[[int, int], None],
) -> list[Result]:
    """Returns the results of `answer` on this process's share of the rows, called with ROWS_AT_ONCE rows at a time.

    `answer` gets the place of its first row among all rows, and calls its last argument after each of a row's
    `per_row` completions, so that `on_progress` receives the number of finished rows. Every part has a generator of its
    own, in the same state: an evaluation never changes the random state of training, and what is drawn for a row
    depends on its place alone. Raises Left if a signal has asked the run to stop and it may be left here.
    """
    local_rows, first = share(rows, accelerator), part_of(len(rows), accelerator).start
    results: list[Result] = []
    is_left = False
    completions = count(1)

    def on_completion() -> None:
        on_progress(next(completions) // per_row, len(local_rows))

    try:
        for start in range(0, len(local_rows), ROWS_AT_ONCE):
            give_way()
            generator = torch.Generator(device).manual_seed(seed)
            results += answer(local_rows[start : start + ROWS_AT_ONCE], generator, first + start, on_completion)
    except Left:
        is_left = True
    if highest(int(is_left), accelerator):  # all processes leave together: the next step is collective
        raise Left
    return results


def group_of(questions: Sequence[Hashable]) -> np.ndarray:
    """Returns the index of each question, numbered from 0 in order of first appearance, (n,)."""
    index: dict[Hashable, int] = {}
    return np.array([index.setdefault(question, len(index)) for question in questions])


def standing(path: Sequence[tuple[Group, Answer]], attempts: int) -> list[Answer]:
    """Returns the answer that stands after each of so many attempts: the last one, where nothing followed it."""
    answers = attempts_in(path)
    return answers + answers[-1:] * (attempts - len(answers))


def _numbers(path: tuple[tuple[Group, Answer], ...], attempts: int) -> tuple:
    prompt, answers = path[0][0].prompt, standing(path, attempts)
    verdicts = [answer.verdict for answer in answers]
    actual = attempts_in(path)
    missing = attempts - len(actual)
    return (
        key_of(prompt.messages or prompt.ids),
        [verdict.match for verdict in verdicts],
        [verdict.reward for verdict in verdicts],
        [answer.length for answer in actual] + [0] * missing,
        [not answer.completion.finished for answer in actual] + [False] * missing,
        [verdict.well_formed for verdict in verdicts],
        attempts > 1 and not verdicts[-1].unchanged_from(verdicts[-2]),
        not all(verdict.scored for verdict in verdicts),
        [verdict.repeats(verdicts[:number]) for number, verdict in enumerate(verdicts)],
        verdicts[-1].components,
        verdicts[-1].task,
        [_reviewed(before, review) for (_, before), (group, review) in pairwise(path) if group.role != ATTEMPT],
    )


def _reviewed(attempt: Answer, review: Answer) -> tuple[bool, bool | None, int]:
    """Returns whether the attempt and its judgement are right, None without a judgement, and the review's tokens."""
    is_judged = "judgement" in review.verdict.components and review.verdict.scored
    return attempt.verdict.match, review.verdict.match if is_judged else None, len(review.completion.ids)


def answers_of(trees: list[Group], accelerator: Accelerator, attempts: int = 1) -> Answers:
    """Returns the attempts in the trees of all processes; single answers are trees of depth one."""
    numbers = collect([_numbers(path, attempts) for tree in trees for path in paths(tree)], accelerator)
    questions, *columns, components, task, reviews = zip(*numbers, strict=True)
    arrays: dict[str, Any] = dict(zip(COLUMNS, (np.asarray(column).T for column in columns), strict=True))
    return Answers(group=group_of(questions), components=list(components), task=task, reviews=reviews, **arrays)


def summarise(
    answers: Answers, temperature: float, samples: int = 1, games: Sequence[tuple[bool | None, bool | None]] = ()
) -> dict:
    """Returns the row of evaluations.jsonl, without `when` and `step`.

    Single answers, `samples` to each row, have pass@k. `games` has for each row whether the policy's first answer and
    the opponent's are right, None where that is unknown. An answer that could not be judged counts as wrong.
    """
    row = _counts(answers) | {"temperature": temperature} | _accuracies(answers)
    row["per_question"] = _per_question(answers)
    for number, end in enumerate(_ends(answers)):
        row |= {f"{name}{end}": float(getattr(answers, name)[number].mean()) for name in MEANS}
        row |= rate(f"well_formed{end}", answers.well_formed[number].astype(float), answers.group)
    row["unscored"] = float(answers.unscored.mean())
    row |= _by_task(answers)
    if len(answers.match) > 1:
        return row | _corrections(answers, row["per_question"], temperature)
    row["pass_at_k"] = pass_at_k(answers, samples)
    return row | (_games(list(games), answers.group[::samples]) if games else {})


def _corrections(answers: Answers, per_question: dict[str, list[int]], temperature: float) -> dict:
    """Compares the last of several attempts with the first one; one revision, attempt 2, with one fresh draw."""
    right = _right(answers)
    one, *_, two = right.values()
    row = difference("delta", one, two, answers.group)
    row |= rate("i_to_c", (1 - one) * two, answers.group) | rate("c_to_i", one * (1 - two), answers.group)
    row |= rate("acc_if_stopped", answers.match.any(axis=0).astype(float), answers.group)
    row |= _fresh_draws(one, right["acc_attempt2"], answers.group) if temperature else {}  # greedy ones are the same
    before, *_, after = (per_question[name] for name in right)
    row["mcnemar_p"] = stats.sign_flip_p([now - then for then, now in zip(before, after, strict=True)])
    row["answer_changed"] = float(answers.changed.mean())
    row |= _repeats(answers) if len(answers.repeated) else {}
    row |= _reviews(answers)
    for name in sorted({name for parts in answers.components for name in parts}):
        values = [parts.get(name, 0.0) for parts in answers.components]
        row[f"reward/{name}_attempt{len(right)}"] = float(np.mean(values))
    return row


def _repeats(answers: Answers) -> dict:
    """Returns how often an attempt after a wrong one gives an answer that its chat had before; attempts per chat."""
    is_written = np.asarray(answers.length) > 0
    is_again = is_written[1:] & ~answers.match[:-1]  # (T - 1, n)
    group = np.broadcast_to(answers.group, is_again.shape)[is_again]
    repeats = rate("repeat_rate", np.asarray(answers.repeated)[1:][is_again].astype(float), group)
    return repeats | {"attempts": float(is_written.sum(axis=0).mean())}


def _reviews(answers: Answers) -> dict:
    """Returns the policy's accuracy as a judge of its attempts: all, right and wrong ones; {} without reviews.

    A policy that calls every attempt right, or every one wrong, has 1 in one of the last two and 0 in the other.
    """
    chats = zip(answers.group.tolist(), answers.reviews, strict=False)
    reviews = [(group, *review) for group, chat in chats for review in chat]
    if not reviews:
        return {}
    row = {"length_review": float(np.mean([tokens for *_, tokens in reviews]))}
    judged = [(group, is_right, float(verdict)) for group, is_right, verdict, _ in reviews if verdict is not None]
    for name, wanted in (("acc_check", (True, False)), ("acc_check_right", (True,)), ("acc_check_wrong", (False,))):
        counted = [(group, verdict) for group, is_right, verdict in judged if is_right in wanted]
        values, groups = np.array([verdict for _, verdict in counted]), np.array([group for group, _ in counted])
        row |= rate(name, values, groups) if judged else {}
    return row


def _fresh_draws(one: np.ndarray, two: np.ndarray, group: np.ndarray) -> dict:
    """Compares the revision of each wrong first attempt with the other first attempts to its question.

    The wrong attempt itself is excluded: including it would make a fresh draw look worse than it is. Returns {} if
    fewer than two questions have a wrong first attempt and another one.
    """
    drawn, right = np.bincount(group), np.bincount(group, one)
    is_wrong = (one == 0) & (drawn[group] > 1)
    group = group[is_wrong]
    if len(set(group.tolist())) < 2:
        return {}
    revised, fresh = two[is_wrong], right[group] / (drawn[group] - 1)
    row = rate("revised_after_wrong", revised, group) | rate("fresh_after_wrong", fresh, group)
    return row | difference("revised_minus_fresh", fresh, revised, group)


def _per_question(answers: Answers) -> dict[str, list[int]]:
    """Counts the answers to each question, how many are right, and of several attempts how many were spoiled."""
    counted = {"n": np.ones(len(answers.group)), **_right(answers)}
    if len(answers.match) > 1:
        counted["c_to_i"] = answers.match[0] & ~answers.match[-1]
    return {name: np.bincount(answers.group, values).astype(int).tolist() for name, values in counted.items()}


def rate(name: str, values: np.ndarray, group: np.ndarray, most: int | None = None) -> dict[str, Any]:
    """Returns the mean of `values` and its interval, clustered by `group`; None where there are no values.

    `most`: the number of answers that the values are means of; None: one each.
    """
    if not len(values):
        return {name: None, f"{name}_ci95": None}
    interval = stats.rate_interval(values.tolist(), group.tolist(), most)
    return {name: float(values.mean()), f"{name}_ci95": list(interval)}


def difference(name: str, before: np.ndarray, after: np.ndarray, group: np.ndarray) -> dict[str, Any]:
    """Returns the mean of `after` less `before`, in pairs, and its interval, as `rate` does."""
    if not len(before):
        return {name: None, f"{name}_ci95": None}
    interval = stats.paired_delta_interval(before.tolist(), after.tolist(), group.tolist())
    return {name: float((after - before).mean()), f"{name}_ci95": list(interval)}


def selected(answers: Answers) -> dict:
    """Numbers that training selects by: accuracies, counts, and `per_prompt`, the last attempt's accuracy on each."""
    per_prompt = np.bincount(answers.group, answers.match[-1]) / np.bincount(answers.group)
    numbers = {"per_prompt": per_prompt.tolist(), "per_question": _per_question(answers)}
    return _counts(answers) | _accuracies(answers) | numbers


def _ends(answers: Answers) -> list[str]:
    """Returns the suffix of each attempt's keys; "" if there is only one."""
    attempts = len(answers.match)
    return [f"_attempt{number}" for number in range(1, attempts + 1)] if attempts > 1 else [""]


def _right(answers: Answers) -> dict[str, np.ndarray]:
    """Returns the correctness per attempt, (n,), by the name of its accuracy."""
    return {f"acc{end}": values.astype(float) for end, values in zip(_ends(answers), answers.match, strict=True)}


def _counts(answers: Answers) -> dict[str, Any]:
    return {"n": len(answers.group), "prompts": int(answers.group.max()) + 1}


def _by_task(answers: Answers) -> dict[str, Any]:
    """Returns the accuracies of each task; {} where all rows are judged alike."""
    accuracies = {}
    for task in sorted(set(answers.task) - {""}):
        of_task = np.array(answers.task) == task
        group = group_of(answers.group[of_task].tolist())
        accuracies[task] = {"n": int(of_task.sum())}
        for name, values in _right(answers).items():
            accuracies[task] |= rate(name, values[of_task], group)
    return {"by_task": accuracies} if accuracies else {}


def _accuracies(answers: Answers) -> dict[str, Any]:
    return {key: number for name, values in _right(answers).items()
            for key, number in rate(name, values, answers.group).items()}  # fmt: skip


def _games(games: list[tuple[bool | None, bool | None]], questions: np.ndarray) -> dict:
    """Summarises the games, one per row; `questions` holds the indices of their questions."""
    is_played = np.array([mine is not None and theirs is not None for mine, theirs in games])
    mine, theirs = np.array(games, dtype=float)[is_played].reshape(-1, 2).T
    group, decisive = questions[is_played], mine != theirs
    wins, losses = int((mine > theirs).sum()), int((mine < theirs).sum())
    row: dict[str, Any] = {
        "games": len(group),
        "wins": wins,
        "losses": losses,
        "missing_games": len(games) - len(group),
    }
    for name, values, of in (("opponent_acc", theirs, group), ("win_rate", mine[decisive], group[decisive])):
        row |= rate(name, values, of)
    return row


def pass_at_k(answers: Answers, samples: int) -> list[dict]:
    """Estimates the chance that one of k first attempts is right, k = 1, 2, 4, ... up to `samples`, with intervals."""
    rows, right, group = [], answers.match[0].reshape(-1, samples), answers.group[::samples]
    for k in doublings(samples):
        chances = np.array([stats.pass_at_k(samples, count, k) for count in right.sum(axis=1).astype(int).tolist()])
        rows.append({"k": k} | rate("pass", chances, group, len(chances) * (samples // k)))
    return rows


def doublings(limit: int) -> list[int]:
    """Returns 1, 2, 4, ... up to `limit`."""
    return [2**i for i in range(limit.bit_length())]
