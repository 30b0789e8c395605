"""How long the rest of a run takes, by the pace of what it has done since it was started."""

import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from statistics import fmean, median_low

ENOUGH = 3  # steps, before which nobody can tell
RECENT = 30  # steps of a stage that count: answers become longer or shorter
MOST = 3.0  # medians that a single step counts: a checkpoint belongs to the pace, a minute's wait for a server does not


class Pace:
    """Seconds of steps, stage by stage, and of evaluations; what a run did before it was resumed is not among them."""

    def __init__(self, now: Callable[[], float] = time.monotonic):
        self._now = now
        self._since = now()
        self._steps: dict[int, deque[float]] = defaultdict(lambda: deque(maxlen=RECENT))
        self._per_completion = 0.0  # of steps, until there has been an evaluation
        self._evaluations: deque[float] = deque(maxlen=ENOUGH)  # seconds per completion

    def start(self) -> None:
        """From now on the time counts: everything is loaded."""
        self._since = self._now()

    def step(self, stage: int = 1, completions: float = 0, sampling: float | None = None, size: float = 1.0) -> None:
        """Everything since the last call was a step, its checkpoint included; `size` where steps are known to differ.

        Of its seconds `sampling` ones (None: all) would make so many completions of an evaluation.
        """
        seconds = self._lap()
        self._steps[stage].append(seconds / size)
        if completions:
            self._per_completion = (seconds if sampling is None else sampling) / completions

    def evaluated(self, completions: int) -> None:
        """Everything since the last call was an evaluation of so many completions."""
        self._evaluations.append(self._lap() / max(1, completions))

    def left(self, steps: Mapping[int, float], completions: float = 0) -> float | None:
        """Seconds that so many steps of each stage take (the sum of their sizes), and evaluations of so many
        completions; None: too early."""
        if max(map(len, self._steps.values()), default=0) < ENOUGH:
            return None
        seconds = completions * (median_low(self._evaluations) if self._evaluations else self._per_completion)
        return seconds + sum(count * self._seconds_of(stage) for stage, count in steps.items())

    def _seconds_of(self, stage: int) -> float:
        """Of a step of a stage; until enough of its steps have been seen, of a step of the one before.

        The first one is left out: it warms up, or has the end of the stage before in it.
        """
        known = (number for number, seconds in self._steps.items() if len(seconds) >= ENOUGH and number <= stage)
        seconds = list(self._steps[max(known)])[1:]
        most = MOST * median_low(seconds)  # of two, the one without a wait
        return fmean(min(each, most) for each in seconds)

    def _lap(self) -> float:
        before, self._since = self._since, self._now()
        return self._since - before
