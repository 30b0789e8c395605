"""Curricula and replay: draws prompts shuffled, or by pass rate, from an easy pool at first, or from a replay buffer.

All processes draw and note the same, so that their choices agree.
"""

import random
from collections.abc import Callable, Iterable
from math import exp
from statistics import fmean
from typing import Any, NamedTuple, TypeVar

from accelerate import Accelerator

from lib.core.config import ATTEMPT, CurriculumSettings, EasyPool, ReplaySettings, TemperatureSchedule, Weighting
from lib.core.errors import ConfigError
from lib.core.registry import did_you_mean
from lib.generators.reply_cache import key_of
from lib.rl.credit import Credit
from lib.rl.prompts import Choice
from lib.rl.replay import ReplayBuffer
from lib.rl.tree import Group
from lib.run.distributed import collect, part_of, share

UNSEEN = (0.5, 0, 0)  # a row that has not been drawn
MEMORY = 0.3  # weight of the old estimate of a pass rate when a new outcome updates it
FORGET_AFTER = 4.0  # epochs after which, without new outcomes, its distance from one half has decayed to 1/e

Sampled = TypeVar("Sampled")
_Part = tuple[Group, list[float]]  # a group and the absolute advantages of its answers


class PromptOutcome(NamedTuple):
    """The outcome of a step for a prompt."""

    choice: Choice
    key: str  # the same for prompts of the same text
    pass_rate: float | None  # share of right answers, of the group that differs most; None if none was judged
    reward: float  # the mean
    advantage: float  # the mean of the absolute values
    opponent_is_right: bool | None = None


class Sampler:
    """Draws endless batches of row indices. Two samplers with equal seed and state give equal batches."""

    def __init__(self, size: int, seed: int):
        self.size = size
        self.seed = seed
        self.epoch = 0
        self.position = 0
        self._order = self._shuffled()

    def _shuffled(self) -> list[int]:
        order = list(range(self.size))
        random.Random(f"{self.seed}/{self.epoch}").shuffle(order)
        return order

    def take(self, count: int) -> list[int]:
        """Returns the next `count` row indices, continuing into the next epoch where one ends."""
        taken: list[int] = []
        while len(taken) < count:
            if self.position == self.size:
                self.epoch, self.position = self.epoch + 1, 0
                self._order = self._shuffled()
            piece = self._order[self.position : self.position + count - len(taken)]
            self.position += len(piece)
            taken += piece
        return taken

    @property
    def epochs(self) -> float:
        """Returns the number of passes over the data so far, a fraction."""
        return self.epoch + self.position / self.size

    def state_dict(self) -> dict[str, int]:
        """Returns the full state: size, seed, epoch and position."""
        return {"size": self.size, "seed": self.seed, "epoch": self.epoch, "position": self.position}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Resumes exactly where `state_dict` was taken; at the next epoch if the data's size has changed since."""
        if "epoch" not in state:  # saved by another kind of sampler: the config has changed
            return
        self.seed, self.epoch, self.position = state["seed"], state["epoch"], state["position"]
        if state["size"] != self.size:
            self.epoch, self.position = self.epoch + 1, 0
        self._order = self._shuffled()


class WeightedSampler:
    """Draws rows whose answers are likely to differ in reward, because groups with equal rewards teach nothing.

    A row's weight is floor + (1 - floor) * 4 p (1 - p), times 2 - p where the opponent solved it. Its
    pass rate p starts at one half, moves with each outcome, and decays back, since the policy changes meanwhile. The
    rows of a draw are distinct. Resumable.
    """

    def __init__(self, size: int, seed: int, settings: Weighting):
        self.size, self.seed, self.settings = size, seed, settings
        self.drawn = 0
        self.rows = [UNSEEN] * size  # each: estimate of p, `drawn` at that time, whether the opponent solved it

    def take(self, count: int) -> list[int]:
        """Draws `count` rows without replacement, in proportion to their weights (Efraimidis and Spirakis 2006)."""
        draw = random.Random(f"{self.seed}/{self.drawn}")
        weights = map(self.weight, range(self.size))
        # the largest u^(1 / w) win; keys below 0 put rows of weight 0 after all others
        keys = [(draw.random() ** (1 / weight) if weight else draw.random() - 1) for weight in weights]
        self.drawn += count
        chosen = sorted(range(self.size), key=lambda row: -keys[row])[:count]
        return [chosen[i % len(chosen)] for i in range(count)]

    def weight(self, row: int) -> float:
        """Returns how likely a row is drawn, relative to others."""
        floor, p = self.settings.floor, self.pass_rate(row)
        differs = floor + (1 - floor) * 4 * p * (1 - p)
        return differs * (1 + (1 - p) * self.rows[row][2])

    def pass_rate(self, row: int) -> float:
        """Returns the current estimate of a row's pass rate, decayed towards one half since its last outcome."""
        estimate, at, _ = self.rows[row]
        return 0.5 + (estimate - 0.5) * exp((at - self.drawn) / (self.size * FORGET_AFTER))

    def note(self, row: int, pass_rate: float | None, opponent_is_right: bool | None = None) -> None:
        """Records the outcome of a row; a side that could not be judged changes nothing."""
        if pass_rate is not None:
            now = MEMORY * self.pass_rate(row) + (1 - MEMORY) * pass_rate
            self.rows[row] = (now, self.drawn, self.rows[row][2])
        if opponent_is_right is not None:
            self.rows[row] = (*self.rows[row][:2], int(opponent_is_right))

    @property
    def epochs(self) -> float:
        """Returns the number of rows drawn, in sizes of the data set."""
        return self.drawn / self.size

    def state_dict(self) -> dict:
        """Returns everything that changes."""
        return {"drawn": self.drawn, "rows": [list(row) for row in self.rows]}

    def load_state_dict(self, state: dict) -> None:
        """Resumes exactly where `state_dict` was taken; if config or data changed since, with what still holds."""
        if "rows" in state:  # otherwise the state is another sampler's
            self.drawn = state["drawn"]
            restored = [tuple(row) for row in state["rows"][: self.size]]
            self.rows = restored + self.rows[len(restored) :]


class Curriculum:
    """Draws the prompts of each step, and learns from their outcomes. Part of the train state."""

    def __init__(self, settings: CurriculumSettings, rows: list[dict], seed: int):
        """Raises ConfigError where no row is easy, or every one."""
        self.settings, self._seed = settings, seed
        easy = easy_rows(settings.easy_pool, rows)
        self._easy, self._others = sorted(easy), [row for row in range(len(rows)) if row not in easy]
        self._places = {row: place for place, row in enumerate(self._others)}
        size, weighting = len(self._others), settings.weighting
        self._order = WeightedSampler(size, seed, weighting) if weighting else Sampler(size, seed)
        self._easy_order = Sampler(len(easy), seed + 1)
        self._replay = ReplayBuffer(settings.replay, seed) if settings.replay else None
        self._taken = 0  # draws, which seed the dice
        self._last: list[PromptOutcome] = []

    @property
    def chooses(self) -> bool:
        """True if outcomes decide which prompts come."""
        return bool(self.settings.weighting or self.settings.replay)

    @property
    def reads_outcomes(self) -> bool:
        """True if outcomes choose prompts or are in the metrics; otherwise no one computes them."""
        return self.chooses or self.settings.easy_pool is not None

    @property
    def epochs(self) -> float:
        """Returns the number of passes over the training rows so far, without the easy pool and replay."""
        return self._order.epochs

    def draw(
        self, step: int, wanted: int, rounds: int, accelerator: Accelerator,
        answer: Callable[[list[Choice], int], list[Sampled]], have_signal: Callable[[list[Sampled]], list[bool]],
    ) -> list[Sampled]:  # fmt: skip
        """Draws `wanted` prompts, and returns the results of `answer` on this process's share, one per prompt.

        `answer` also gets the place of its first prompt among all prompts of the draw. Up to `rounds` times, draws
        further prompts for those without a training signal, until `wanted` have one; `have_signal` says which do.
        """
        results: list[Sampled] = []
        missing = wanted
        for round_ in range(1 + rounds):
            drawn = self.take(missing, step)
            local = part_of(len(drawn), accelerator)  # of a further round perhaps nothing
            results += answer(drawn[local.start : local.stop] if round_ else share(drawn, accelerator), local.start)
            if round_ == rounds:
                break
            missing = wanted - sum(collect(have_signal(results), accelerator))
            if missing <= 0:
                break
        return results

    def take(self, count: int, step: int) -> list[Choice]:
        """Draws the prompts of a step; `step` counts the training steps before it."""
        self._taken += 1
        dice = random.Random(f"{self._seed}/{self._taken}")
        replayed = self._replayed(self.settings.replay, count, dice)
        left = count - len(replayed)
        easy = self._easy_order.take(_rounded(share_at(self.settings.easy_pool, step) * left, dice))
        others = self._order.take(left - len(easy))
        choices = [Choice(self._others[index]) for index in others]
        choices += [*(Choice(self._easy[index], "easy") for index in easy), *replayed]
        if easy or replayed or self.settings.weighting:
            dice.shuffle(choices)  # processes, and first attempts by the base, take their part from the front
        return choices

    def _replayed(self, settings: ReplaySettings | None, count: int, dice: random.Random) -> list[Choice]:
        if self._replay is None or settings is None or len(self._replay) < settings.warmup:
            return []
        drawn = self._replay.sample(_rounded(settings.share * count, dice))
        return [Choice(entry.item, "replay", entry.uid) for entry in drawn]

    def note(self, outcomes: Iterable[PromptOutcome]) -> None:
        """Records the outcomes of a step, over all processes."""
        self._last = list(outcomes)
        for outcome in self._last:
            row = outcome.choice.row
            if row in self._places and not isinstance(self._order, Sampler):
                self._order.note(self._places[row], outcome.pass_rate, outcome.opponent_is_right)
            replay, settings = self._replay, self.settings.replay
            if replay is None or settings is None or outcome.pass_rate is None:
                continue
            value = _VALUES[settings.value](outcome)
            entry = outcome.choice.entry if outcome.choice.entry is not None else replay.find(outcome.key)
            if entry is not None:
                replay.credit(entry, value)
            elif value > 0:
                replay.add(outcome.key, row, value)

    def numbers(self) -> dict[str, float]:
        """Returns the metrics of a step: the epoch, prompts by source, and how many of each had something to teach."""
        numbers: dict[str, float] = {"epoch": self.epochs}
        for source in ("data", "easy", "replay") if self._last and (self._easy or self._replay is not None) else ():
            numbers[f"curriculum/{source}"] = fmean(outcome.choice.source == source for outcome in self._last)
            if teaches := [outcome.advantage > 0 for outcome in self._last if outcome.choice.source == source]:
                numbers[f"curriculum/teaching_{source}"] = fmean(teaches)
        if self._replay is not None:
            numbers |= {f"replay/{name}": value for name, value in self._replay.numbers().items()}
        return numbers

    def state_dict(self) -> dict[str, Any]:
        """Returns everything that changes."""
        state: dict[str, Any] = {"taken": self._taken, "order": self._order.state_dict()}
        state |= {"easy": self._easy_order.state_dict(), "easy_rows": list(self._easy)}
        return state | ({"replay": self._replay.state_dict()} if self._replay is not None else {})

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resumes exactly where `state_dict` was taken; if config or data changed since, with what still holds."""
        self._taken = state["taken"]
        if state["easy_rows"] == self._easy:  # otherwise places are those of other rows
            self._order.load_state_dict(state["order"])
            self._easy_order.load_state_dict(state["easy"])
        entries = state.get("replay", {"entries": []})["entries"]
        rows = len(self._others) + len(self._easy)
        if self._replay is not None and entries and max(entry["item"] for entry in entries) < rows:
            self._replay.load_state_dict(state["replay"])


_VALUES: dict[str, Callable[[PromptOutcome], float]] = {
    "learnability": lambda outcome: 4 * (outcome.pass_rate or 0.0) * (1 - (outcome.pass_rate or 0.0)),
    "reward": lambda outcome: outcome.reward,
    "advantage": lambda outcome: outcome.advantage,
}


def outcomes_of(trees: list[Group], credit: Credit) -> list[PromptOutcome]:
    """Returns an outcome for each prompt of a step; `credit` may hold further trees after these."""
    parts: dict[int, list[_Part]] = {}  # by tree: its groups, with their advantages
    for node in credit.nodes:
        parts.setdefault(node.tree, []).append((node.group, credit.advantage[list(node.numbers)].abs().tolist()))
    return [_outcome(tree.prompt.choice, parts[i], key_of(tree.prompt.ids)) for i, tree in enumerate(trees)]


def _outcome(choice: Choice, parts: list[_Part], key: str) -> PromptOutcome:
    """Returns the outcome of groups, without the answers that an earlier policy or the reference model wrote."""
    ours = [part for part in parts if not part[0].is_context]
    attempts = [group for group, _ in ours if group.role == ATTEMPT]
    judged = [[answer.verdict for answer in group.answers if answer.verdict.scored] for group in attempts]
    rates = [fmean(verdict.match for verdict in verdicts) for verdicts in judged if verdicts]
    rewards = [verdict.reward for verdicts in judged for verdict in verdicts]
    advantages = [value for _, values in ours for value in values]
    pass_rate = min(rates, key=lambda rate: abs(rate - 0.5), default=None)
    return PromptOutcome(
        choice, key, pass_rate, fmean(rewards) if rewards else 0.0, fmean(advantages) if advantages else 0.0
    )


def share_at(pool: EasyPool | None, step: int) -> float:
    """Returns the share of easy prompts after `step` steps; 0 without a pool."""
    if pool is None:
        return 0.0
    later = next((i for i, (start, _) in enumerate(pool.share) if start > step), None)
    if later is None:
        return pool.share[-1][1]
    (start, share), (end, then) = pool.share[later - 1], pool.share[later]
    return share + (then - share) * (step - start) / (end - start) if pool.interpolate else share


def temperature_at(first: float, schedule: TemperatureSchedule | None, step: int) -> float:
    """Returns the temperature after `step` steps."""
    if schedule is None:
        return first
    if step >= schedule.steps:
        is_high = schedule.high_every and (step - schedule.steps) % schedule.high_every == 0
        return first if is_high else schedule.end
    return first + (schedule.end - first) * step / schedule.steps


def easy_rows(pool: EasyPool | None, rows: list[dict]) -> set[int]:
    """Returns the rows of an easy pool by index. Raises ConfigError where no row is easy, or every one."""
    if pool is None:
        return set()
    columns = {column for row in rows for column in row}
    if pool.column not in columns:
        raise ConfigError(
            f"curriculum.easy_pool.column: the data has no column '{pool.column}'"
            f"{did_you_mean(pool.column, columns, '.')} Columns: {', '.join(sorted(columns))}"
        )
    easy = {i for i, row in enumerate(rows) if row.get(pool.column) in pool.values}
    if not easy or len(easy) == len(rows):
        values = sorted({str(row.get(pool.column)) for row in rows})
        shown = ", ".join(values[:10]) + (", ..." if len(values) > 10 else "")
        raise ConfigError(
            f"curriculum.easy_pool.values: {len(easy)} of {len(rows)} rows have {pool.values} as '{pool.column}', "
            f"expected some, not all; it holds {shown}"
        )
    return easy


def _rounded(number: float, dice: random.Random) -> int:
    """Rounds up or down by lot, so that shares hold on average."""
    whole = int(number)
    return whole + (dice.random() < number - whole)
