"""Estimates how long the rest of a run takes, by the pace of what it has done since it was started."""

import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from statistics import fmean, median_low

ENOUGH = 3  # steps; with fewer there is no estimate
RECENT = 10  # steps of a stage that count: answers change in length, and more programs are known from before
MOST = 3.0  # a step counts at most this many medians: saving a checkpoint is part of the pace, a server outage is not


class Pace:
    """Durations of steps, by stage, and of evaluations, since this process started or resumed the run."""

    def __init__(self, now: Callable[[], float] = time.monotonic):
        self._now = now
        self._since = now()
        self._steps: dict[int, deque[float]] = defaultdict(lambda: deque(maxlen=RECENT))
        self._per_completion = 0.0  # seconds, from the last step; used until there has been an evaluation
        self._evaluations: deque[float] = deque(maxlen=ENOUGH)  # seconds per completion

    def start(self) -> None:
        """Starts the clock, once everything is loaded."""
        self._since = self._now()

    def step(self, stage: int = 1, completions: float = 0, sampling: float | None = None, size: float = 1.0) -> None:
        """Records the time since the last call as a step, its checkpoint included; `size`: its size relative to others.

        Of its seconds, `sampling` (None: all) would produce `completions` completions of an evaluation.
        """
        seconds = self._lap()
        self._steps[stage].append(seconds / size)
        if completions:
            self._per_completion = (seconds if sampling is None else sampling) / completions

    def evaluated(self, completions: int) -> None:
        """Records the time since the last call as an evaluation of `completions` completions."""
        self._evaluations.append(self._lap() / max(1, completions))

    def left(self, steps: Mapping[int, float], completions: float = 0) -> float | None:
        """Estimates the seconds for `steps` of each stage (sums of their sizes) and evaluations of `completions`.

        Returns None while it is too early to tell.
        """
        if max(map(len, self._steps.values()), default=0) < ENOUGH:
            return None
        seconds = completions * (median_low(self._evaluations) if self._evaluations else self._per_completion)
        return seconds + sum(count * self._seconds_of(stage) for stage, count in steps.items())

    def _seconds_of(self, stage: int) -> float:
        """Returns the mean seconds of a step of a stage, or of the stage before until ENOUGH steps have been seen.

        The first step is left out: it includes warm-up, or the end of the previous stage.
        """
        known = (number for number, seconds in self._steps.items() if len(seconds) >= ENOUGH and number <= stage)
        seconds = list(self._steps[max(known)])[1:]
        most = MOST * median_low(seconds)  # the lower of two, which is likely to be free of an outage
        return fmean(min(each, most) for each in seconds)

    def _lap(self) -> float:
        before, self._since = self._since, self._now()
        return self._since - before
