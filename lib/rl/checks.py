"""Checks of a run's numbers: rules over the steps of a stage, and the table of checks made from them.

A check is a row of `CHECKS` (RL) or of `sft_checks`: the quantity it looks at, a rule, what the rule has seen in words,
and the setting to change. A quantity `q` stands for `q`, `q_attempt1`, `q_attempt2` ..., whichever a row has. Training
does not recover from a collapse by itself, so the run may act on it (`train.on_collapse`); the rest are warnings. Every
check compares within a stage, since a new stage moves everything. The reasons for each threshold are in LOG.md, "A
watch over every run".
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite, log
from statistics import fmean, median
from typing import Any

from lib.text.formats import format_problem

WINDOW = 40  # steps of a stage that are remembered
WARM_UP = 3  # first steps of a stage, in which everything moves: not a baseline for drifts
RECENT = 5  # steps that make up "now", where one step is too noisy
LEVEL = 10  # steps before these that make up a level
SURE = 10.0  # nats of evidence that two shares differ: one false alarm in 60 runs of 240 steps that only fluctuate
CERTAIN = 14.0  # the same for checks that stop a run: odds of one in a million
OF_RIGHT = ("malformed_paid", "paid_outside")  # shares of the right answers, by how they begin


@dataclass(frozen=True)
class Seen:
    """A finding of a rule: a quantity was `before` and is `now`, the mean of its last `over` steps."""

    before: float
    now: float
    over: int = RECENT


class History:
    """The remembered steps of one stage, which the rules read."""

    def __init__(self, quantities: frozenset[str] = frozenset()) -> None:
        self._quantities = quantities  # the only ones kept: others, such as times, differ from run to run
        self.steps: list[int] = []  # the last WINDOW of them
        self.values: dict[str, list[float | None]] = {}  # of each quantity, step by step; None: absent or not finite
        self.first: dict[str, float] = {}  # of each quantity, the first value in the stage
        # first, lowest and highest mean of LEVEL steps, and the answers behind it
        self.levels: dict[str, dict[str, list[float]]] = {}
        self.streaks: dict[str, int] = {}  # steps in a row with a value of 1

    def add(self, row: Mapping[str, Any]) -> None:
        """Adds a step, a row of metrics.jsonl."""
        numbers = {
            key: float(value)
            for key, value in row.items()
            if quantity_of(key) in self._quantities and isinstance(value, int | float) and isfinite(value)
        }
        self.steps = [*self.steps, row["step"]][-WINDOW:]
        for key in {**self.values, **numbers}:
            past = self.values.get(key, [None] * (len(self.steps) - 1))
            self.values[key] = [*past, numbers.get(key)][-WINDOW:]
        for key, value in numbers.items():
            self.first.setdefault(key, value)
            self.streaks[key] = self.streaks.get(key, 0) + 1 if value == 1 else 0
            level = self.shares(key, LEVEL + RECENT, settled=True)[:-RECENT]
            if len(level) >= RECENT:
                mark = [*pooled(level)]
                past = self.levels.setdefault(key, {"first": mark, "low": mark, "high": mark})
                self.levels[key] |= {"low": min(past["low"], mark), "high": max(past["high"], mark)}

    def clear(self, key: str) -> None:
        """Forgets the values of a quantity, but not its levels."""
        self.values[key] = [None] * len(self.steps)

    def all(self, key: str) -> list[float]:
        """Returns the remembered values of a quantity."""
        return [value for value in self.values.get(key, []) if value is not None]

    def settled(self, key: str, steps: int = WINDOW) -> list[float]:
        """Returns its values in the last `steps` steps, without those in the warm-up of the stage."""
        return [value for value, _ in self.shares(key, steps, settled=True)]

    def shares(self, key: str, steps: int = WINDOW, settled: bool = False) -> list[tuple[float, float]]:
        """Returns its values in the last `steps` steps, each with the number of answers behind it.

        That is a lower bound on the independent ones: one for each prompt, of shares of the right answers for each that
        was solved, where the log has their number. `settled`: without the warm-up of the stage.
        """
        quantity = quantity_of(key)
        solved = key.replace(quantity, "prompts_solved") if quantity.startswith(OF_RIGHT) else ""
        counts = self.values.get(solved, [None] * len(self.steps))
        rows = zip(self.steps, self.values.get(key, []), counts)  # noqa: B905  no row may have had it
        return [
            (value, self.prompts() if count is None else count)
            for step, value, count in list(rows)[-steps:]
            if value is not None and count != 0 and (step > WARM_UP or not settled)
        ]

    def last(self, key: str, steps: int = RECENT) -> float | None:
        """Returns the mean of the last `steps` values; None with fewer."""
        values = self.all(key)[-steps:]
        return fmean(values) if len(values) == steps else None

    def prompts(self) -> float:
        """Returns the number of prompts in a step, a lower bound on its independent answers; 1 if unknown."""
        return (self.all("prompts") or [1.0])[-1]

    def since(self, key: str, seen: Seen) -> int:
        """Returns the first of the latest steps in a row in which the quantity was nearer to `now` than to `before`."""
        middle, first = (seen.before + seen.now) / 2, self.steps[-1]
        for step, value in zip(reversed(self.steps), reversed(self.values[key]), strict=True):
            if value is None or (value - middle) * (seen.now - middle) <= 0:
                break
            first = step
        return first

    def state(self) -> dict[str, Any]:
        """Returns the remembered values, by attribute name."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}


Rule = Callable[[History, str], Seen | None]


def pooled(shares: list[tuple[float, float]]) -> tuple[float, float]:
    """Returns the share of all answers together, and their number, of shares with the number of answers of each."""
    count = sum(answers for _, answers in shares)
    return (sum(share * answers for share, answers in shares) / count if count else 0.0), count


def evidence(before: float, answers_before: float, now: float, answers_now: float) -> float:
    """Returns the nats of evidence that two shares differ: their log likelihood ratio, half the G statistic.

    `answers_*`: the numbers of answers behind each share, not both 0.
    """
    pool = (before * answers_before + now * answers_now) / (answers_before + answers_now)
    return answers_before * _divergence(before, pool) + answers_now * _divergence(now, pool)


def _divergence(p: float, q: float) -> float:
    """Returns KL(p || q) of two Bernoulli distributions, in nats."""
    return sum(a * log(a / b) for a, b in ((p, q), (1 - p, 1 - q)) if a > 0)


# The rules; each function builds one from its thresholds.


def share_moved(by: float, from_most: bool = False) -> Rule:
    """Detects a share that is significantly `by` away from its best level in the stage; the sign is the bad direction.

    `from_most`: only if that level was within 0.25 of the good end of the scale, and the share has moved by at least
    half of that distance.
    """

    def rule(history: History, key: str) -> Seen | None:
        recent, levels = history.shares(key)[-RECENT:], history.levels.get(key)
        if len(recent) < RECENT or levels is None:
            return None
        (now, answers), (before, answers_before) = pooled(recent), levels["low" if by > 0 else "high"]
        least = abs(by)
        if from_most:
            away = abs(before - (by < 0))
            if away > 0.25:
                return None
            least = max(least, away / 2)
        moved = (now - before) * (1 if by > 0 else -1) >= least
        return Seen(before, now) if moved and evidence(before, answers_before, now, answers) > SURE else None

    return rule


def grew(ratio: float, least: float) -> Rule:
    """Detects growth by a factor of `ratio` within the window, to above `least`. Medians: one step is no trend."""
    return _drifted(lambda before, now: now > ratio * before and now > least)


def _drifted(is_bad: Callable[[float, float], bool]) -> Rule:
    def rule(history: History, key: str) -> Seen | None:
        values = history.settled(key)
        if len(values) < 2 * RECENT:
            return None
        before, now = median(values[: max(RECENT, len(values) - WINDOW // 2)]), median(values[-RECENT:])
        return Seen(before, now) if is_bad(before, now) else None

    return rule


def above(bound: float, steps: int = 2) -> Rule:
    """Detects values above a bound that no healthy run approaches, in each of the last `steps`. Needs no warm-up."""

    def rule(history: History, key: str) -> Seen | None:
        values = history.all(key)[-steps:]
        if len(values) < steps or min(values) <= bound:
            return None
        return Seen(min(history.first[key], bound), fmean(values), steps)

    return rule


def exploded(ratio: float, least: float) -> Rule:
    """Detects two steps in a row above `ratio` times the largest of the remembered steps before, and above `least`."""

    def rule(history: History, key: str) -> Seen | None:
        values = list(map(abs, history.all(key)))
        if len(values) < 3 or min(values[-2:]) <= max(ratio * max(values[:-2]), least):
            return None
        return Seen(max(values[:-2]), fmean(values[-2:]), 2)

    return rule


def died(to: float, over: tuple[int, ...] = (RECENT,)) -> Rule:
    """Detects an accuracy that fell to `to` of its level or below in the last steps, with CERTAIN evidence.

    `over`: the numbers of steps to average over, tried in turn.
    """

    def rule(history: History, key: str) -> Seen | None:
        shares = history.shares(key)
        for steps in over:
            if len(shares) <= steps:
                return None
            now, answers = pooled(shares[-steps:])
            high = history.levels.get(key, {"high": [0.0, 0.0]})["high"]
            before, answers_before = max([*pooled(shares[:-steps][-LEVEL:])], high)
            if now <= to * before and evidence(before, answers_before, now, answers) > CERTAIN:
                return Seen(before, now, steps)
        return None

    return rule


def always(steps: int) -> Rule:
    """Detects a value of 1 in each of the last `steps` steps."""
    return lambda history, key: Seen(0.0, 1.0, 1) if history.streaks.get(key, 0) >= steps else None


def some(history: History, key: str) -> Seen | None:
    """Detects a value above zero in this step."""
    now = history.last(key, 1)
    return Seen(0.0, now, 1) if now else None


# Rules that compare two quantities.


def shorter(history: History, key: str) -> Seen | None:
    """Detects texts that shrink by a quarter within the window, unless it is because fewer are truncated."""
    cut = history.settled(key.replace("length", "truncated"))
    if cut and fmean(cut[-RECENT:]) < fmean(cut[: max(RECENT, len(cut) - WINDOW // 2)]) - 0.05:
        return None
    return _drifted(lambda before, now: now < 0.75 * before)(history, key)


def certain_too_early(history: History, key: str) -> Seen | None:
    """Detects an entropy near zero although many answers are still wrong."""
    now, right = history.last(key), history.last(last_accuracy(history))
    is_dead = now is not None and right is not None and now < 0.005 and right < 0.8
    return Seen(max(history.first[key], now), now) if is_dead and history.first[key] > 0.02 else None


def last_accuracy(history: History) -> str:
    """Returns the name of the accuracy of the last attempt, or of what stands at the end."""
    return max((name for name in history.values if quantity_of(name) in ("acc", "acc_standing")), default="acc")


def idle(history: History, key: str) -> Seen | None:
    """Detects three steps with an advantage for fewer than one last attempt in ten, where nothing has been gained.

    Where the last attempt has gained on the first, or nearly all are right, or wrong, equal rewards are no fault; nor
    where chats stop: it is the hopeless ones that go on.
    """
    values, last = history.settled(key, 3), last_accuracy(history)
    right, first = history.last(last, 3), history.last("acc_attempt1", 3)
    if len(values) < 3 or min(values) <= 0.9 or right is None or first is None or last == "acc_standing":
        return None
    is_fault = 0.1 < right < 0.9 and right - first < 0.05
    return Seen(min(history.first[key], 0.9), fmean(values), 3) if is_fault else None


def copies(history: History, key: str) -> Seen | None:
    """Detects that attempt 2 repeats nine in ten wrong first attempts or more: `answer_changed` against their share."""
    changed, right = history.last(key, LEVEL), history.last("acc_attempt1", LEVEL)
    if changed is None or right is None or len(history.settled(key)) < 2 * LEVEL or right > 0.9:
        return None
    before = max(changed, (history.levels.get(key) or {"high": [history.first[key]]})["high"][0])
    return Seen(before, changed, LEVEL) if changed < 0.1 * (1 - right) else None


@dataclass(frozen=True)
class Check:
    """A row of the table of checks."""

    name: str
    keys: tuple[str, ...]  # quantities, without the attempt
    rule: Rule
    what: str  # after "in attempt 1 " where there are two, and before "rose from ... to ..."
    remedy: str
    collapse: bool = False


# looked for in runs that declare no format; `answer` covers `think_answer` too
FORMS = {"answer": "an <answer> block", "boxed": r"a \boxed{}"}
# quantities that are told in percent, by how they begin
SHARES = (
    "malformed_paid", "paid_outside", "well_formed", "acc", "truncated", "answer_changed", "idle", "zero_advantage",
    "mean_token_accuracy",
)  # fmt: skip
LOWER_RATE = "lower optimizer.learning_rate"
EQUAL_REWARDS, EQUAL_STEPS = "equal_rewards", 20
CHECKS = (
    Check("malformed_is_paid", ("malformed_paid",), share_moved(+0.05),
          "the share of paid answers that are malformed",
          "set reward.format, and a reward.answer_extractor that reads the declared place alone, and start again: the "
          "policy has learned to leave the format", collapse=True),
    Check("malformed", ("well_formed",), share_moved(-0.05), "the share of well-formed answers",
          "read the texts in generations.jsonl; set reward.format, or raise the KL weight (train.beta1, train.beta)"),
    *(
        Check(f"left_form_{name}", (f"paid_outside_{name}",), share_moved(+0.05, from_most=True),
              f"the share of paid answers that lack {form}, which most had at first,",
              f"set reward.format: {name}, so that nothing is paid without it, and start again: the policy has learned "
              "to leave it out", collapse=True)
        for name, form in FORMS.items()
    ),
    Check("accuracy_died", ("acc", "acc_standing"), died(0.25, over=(2, 3, RECENT)), "the accuracy in training",
          f"{LOWER_RATE} and go back to a checkpoint from before", collapse=True),
    Check("accuracy_fell", ("acc", "acc_standing"), died(0.5), "the accuracy in training",
          "read the texts in generations.jsonl; lower optimizer.learning_rate, or raise the KL weight"),
    Check("kl_exploded", ("kl",), above(2.0), "the KL to the base model in nats per token",
          f"{LOWER_RATE}, or raise the KL weight (train.beta1, train.beta2, train.beta)", collapse=True),
    Check("kl_jumped", ("kl",), grew(4.0, least=0.4), "the KL to the base model in nats per token",
          "read the texts in generations.jsonl; raise the KL weight (train.beta1, train.beta), or lower "
          "optimizer.learning_rate"),
    Check("length_jumped", ("length",), grew(2.0, least=8), "the number of tokens per answer",
          "read the texts in generations.jsonl; raise the KL weight, or set train.length_norm: constant"),
    Check("length_shrank", ("length",), shorter, "the number of tokens per answer",
          "read the texts in generations.jsonl: something is left out; set reward.format, or raise the KL weight"),
    Check("truncated", ("truncated",), share_moved(+0.15), "the share of answers that ran out of tokens",
          "raise generation.max_new_tokens, or read in generations.jsonl how the answers continue"),
    Check("entropy_exploded", ("entropy",), exploded(3.0, least=1.5), "the entropy in nats per token",
          LOWER_RATE, collapse=True),
    Check("entropy_grew", ("entropy",), grew(2.5, least=0.2), "the entropy in nats per token",
          f"{LOWER_RATE}, or raise the KL weight (train.beta1, train.beta)"),
    Check("entropy_vanished", ("entropy",), certain_too_early, "the entropy in nats per token, with much still wrong,",
          f"raise generation.temperature or the KL weight, or {LOWER_RATE}"),
    Check("no_gradient", ("zero_gradient",), some,
          "the number of steps whose gradient was exactly zero although rewards differ",
          f"{LOWER_RATE} and go back to a checkpoint from before: the policy is saturated", collapse=True),
    Check("gradient_exploded", ("grad_norm",), exploded(20.0, least=10), "the norm of the gradient",
          f"{LOWER_RATE} or optimizer.max_grad_norm"),
    Check("loss_exploded", ("loss",), exploded(20.0, least=10), "the loss", LOWER_RATE),
    Check("copies", ("answer_changed",), copies,
          "the share of answers that attempt 2 changed, while it kept nearly all wrong ones,",
          "raise train.alpha, or train.beta2 in stage I"),
    Check("no_advantage", ("zero_advantage",), idle,
          "the share of last attempts without an advantage, while they gain nothing on attempt 1,",
          "raise generation.temperature or train.revisions_per_attempt, or choose prompts that are sometimes right"),
    Check(EQUAL_REWARDS, ("idle",), always(EQUAL_STEPS),
          f"{EQUAL_STEPS} steps in a row in which all completions of every prompt earned the same, so nothing is "
          "learned: the share of such steps", "check the reward, the extractor and the token budgets"),
)  # fmt: skip
# quantities that rules read besides those they check
BESIDE = frozenset({"prompts", "prompts_solved", "reward", "acc", "acc_standing"})


def sft_checks(most: float) -> tuple[Check, ...]:
    """Returns the checks of sft_train.py; `most`: the loss of a uniform model, ln(vocabulary size)."""
    return (
        Check("loss_exploded", ("loss",), _beyond_start(most), "the loss", LOWER_RATE, collapse=True),
        Check("tokens_died", ("mean_token_accuracy",), _tokens_died, "the share of tokens right", LOWER_RATE,
              collapse=True),
        Check("no_gradient", ("grad_norm",), _vanished, "the norm of the gradient, with a loss still to be lowered,",
              f"{LOWER_RATE}, or check lora and model.gradient_checkpointing", collapse=True),
        Check("gradient_exploded", ("grad_norm",), exploded(100.0, least=100), "the norm of the gradient",
              f"{LOWER_RATE} or optimizer.max_grad_norm"),
    )  # fmt: skip


def _beyond_start(most: float) -> Rule:
    def rule(history: History, key: str) -> Seen | None:
        values, start = history.all(key), history.first.get(key)
        if len(values) > 2 and min(values[-2:]) > max(start, most) + 1:  # worse than a uniform model
            return Seen(start, fmean(values[-2:]), 2)
        jump = exploded(3.0, least=3.0)(history, key)
        if jump and jump.now > 1.5 * start:  # on rows of a new kind, the loss may return to where it started
            return jump
        now = history.last(key, LEVEL)
        level = history.levels.get(key)
        if now is not None and level and now > 1.5 * level["first"][0] + 0.5:
            return Seen(level["first"][0], now, LEVEL)
        return None

    return rule


def _tokens_died(history: History, key: str) -> Seen | None:
    """Detects two steps at less than a fifth of the earlier level, if that was above 0.1."""
    values = history.all(key)
    level = fmean(values[:-2][-LEVEL:]) if len(values) > 2 else 0.0
    return Seen(level, fmean(values[-2:]), 2) if level > 0.1 and max(values[-2:]) < level / 5 else None


def _vanished(history: History, key: str) -> Seen | None:
    norms, losses = history.all(key)[-2:], history.all("loss")[-2:]
    if len(norms) == 2 and max(norms) == 0 and min(losses, default=0) > 0.01:
        return Seen(history.first[key] or 1.0, 0.0, 2)
    return None


def form_of(format: str, text: str, well_formed: bool, right: bool) -> dict[str, float | None]:
    """Returns whether an answer was paid as right without its form, for a row of metrics; None: it was not paid.

    Where no format is declared, a text cannot lack it, and the watch looks for common forms (FORMS) instead.
    """
    if format != "free":
        return {"malformed_paid": float(not well_formed) if right else None}
    return {f"paid_outside_{name}": float(bool(format_problem(name, text))) if right else None for name in FORMS}


def quantity_of(key: str) -> str:
    return re.sub(r"_(attempt|turn)\d+$", "", key)
