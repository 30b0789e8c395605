"""Which prompts a step draws, and at which temperature: what both RL scripts can schedule or learn as they go."""

from itertools import pairwise
from typing import Any, Literal

from pydantic import Field, model_validator

from lib.core.config.section import Conflicts, Count, CountOrZero, Fraction, Name, Positive, Section, Weight

# Share of easy prompts by step: from the replay system that this one succeeds.
EASY_SHARES = [
    (0, 1.0), (50, 0.9), (100, 0.8), (150, 0.7), (200, 0.6), (250, 0.55), (300, 0.53), (400, 0.51), (500, 0.49),
    (600, 0.47), (700, 0.44), (800, 0.42), (900, 0.4), (1000, 0.38), (1100, 0.36), (1200, 0.34), (1300, 0.32),
    (1400, 0.3), (1500, 0.28), (1600, 0.26), (1700, 0.24), (1800, 0.22), (1900, 0.2), (2000, 0.18), (2100, 0.16),
    (2200, 0.14), (2300, 0.12), (2400, 0.1), (2500, 0.08), (2600, 0.06), (2700, 0.04), (2800, 0.03), (2900, 0.02),
    (3000, 0.01),
]  # fmt: skip


class Weighting(Section):
    """How likely a prompt is drawn, by how much its answers are likely to differ: 4 p (1 - p), p its pass rate.

    With an opponent, a prompt that it solved and the policy never did weighs twice as much.
    """

    floor: Fraction = 0.1  # weight of a prompt that is always or never solved; one solved half the time has weight 1


class EasyPool(Section):
    """Easy training rows, which come more often at first. They are no part of the shuffle, but may be replayed."""

    column: Name  # of the data set, such as difficulty
    values: list[Any] = Field(min_length=1)  # the values of this column that make a row easy
    share: list[tuple[CountOrZero, Fraction]] = EASY_SHARES
    # [step, share that is easy of a step's prompts, those from the buffer aside], by step; each holds until the next
    interpolate: bool = False  # true: the share moves in a straight line from one entry to the next

    @model_validator(mode="after")
    def _ascends(self) -> "EasyPool":
        steps = [step for step, _ in self.share]
        if not steps or steps[0] != 0 or any(later <= step for step, later in pairwise(steps)):
            raise ValueError(f"share: got steps {steps}, expected 0 first and each step once, in ascending order")
        return self


class ReplaySettings(Section):
    """A buffer of prompts worth another look. They are answered anew, so that training stays on-policy."""

    share: Fraction = 0.25  # of a step's prompts that come from the buffer, as soon as it holds `warmup`
    warmup: Count = 64  # prompts in the buffer before the first is replayed
    capacity: Count = 4000  # most prompts; when it is full, a new one takes the place of the least valuable
    value: Literal["learnability", "reward", "advantage"] = "learnability"
    # what makes a prompt worth it; one worth 0 does not enter. learnability: 4 p (1 - p), p the share of right answers;
    # reward: the mean reward, so that what was solved comes again; advantage: the mean absolute advantage
    coefficient: Weight = 1.0
    # how much is explored: a draw is by mean value + coefficient * sqrt(ln N / n), n its draws and N all draws, the
    # untried first; values are between 0 and 1, if rewards are
    exploit: Fraction = 0.7  # probability that a draw is by this rule, not uniform; 0: all are uniform


class CurriculumSettings(Section):
    """How the prompts of a step are drawn; with nothing set, by a new shuffle every epoch."""

    weighting: Weighting | None = None  # {}: by pass rate
    easy_pool: EasyPool | None = None
    replay: ReplaySettings | None = None  # {}: a share of prompts is drawn from a buffer

    def _conflicts(self) -> Conflicts:
        if self.replay and self.replay.capacity < self.replay.warmup:
            keys = ("replay.capacity", "replay.warmup")
            yield keys, f"a buffer of {self.replay.capacity} never holds {self.replay.warmup}: lower the latter"


class TemperatureSchedule(Section):
    """A temperature that falls in a straight line from generation.temperature; sampling and log-probs share it."""

    end: Positive = 0.3  # the last temperature
    steps: Count = 3000  # of training, all stages together, until it is reached
    high_every: CountOrZero = 0
    # from then on, steps between single ones at the first temperature, which look for something new; 0: none
