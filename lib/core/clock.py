"""Measures the time of a step by phase. `with phase("generate"):` anywhere counts towards the running clock, if any.

generate          sampling
reward            judging them
waiting           for an opponent or a teacher behind a server
reference         log-probs without a gradient: of the frozen base, a teacher, the policy before its step
forward_backward  log-probs of the policy, loss, gradient
optimizer         clipping and the step
sync              the adapter into the sampler, and waiting for the other processes
other             everything else: prompts, logs, checkpoints
"""

import contextlib
import time
from collections.abc import Iterator

import torch

PHASES = ("generate", "reward", "waiting", "reference", "forward_backward", "optimizer", "sync", "other")
_running: list["Clock"] = []


class Clock:
    """Measures seconds per phase since the last `lap`. Nested phases count for the inner one alone."""

    def __init__(self) -> None:
        self._seconds = dict.fromkeys(PHASES, 0.0)
        self.open = ["other"]  # the phases that have begun and not ended, the inner ones last
        self._since = time.perf_counter()

    def start(self) -> None:
        """Makes phases count towards this clock from now on."""
        _running[:] = [self]
        self.lap()

    def lap(self) -> dict[str, float]:
        """Returns `seconds_<phase>` since the last call, and resets them."""
        self.book()
        seconds = {f"seconds_{name}": value for name, value in self._seconds.items()}
        self._seconds = dict.fromkeys(PHASES, 0.0)
        return seconds

    def book(self) -> None:
        """Adds the time since the last call to the open phase."""
        if torch.cuda.is_available():
            torch.cuda.synchronize()  # else GPU time would count for the phase that waits for it
        now = time.perf_counter()
        self._seconds[self.open[-1]] += now - self._since
        self._since = now


@contextlib.contextmanager
def phase(name: str) -> Iterator[None]:
    """Counts the time inside towards phase `name`, on the running clock and in a profiler's trace."""
    if name not in PHASES:
        raise ValueError(f"phase '{name}' is not one of {', '.join(PHASES)}")
    clock = _running[0] if _running else None
    if clock:
        clock.book()
        clock.open.append(name)
    try:
        with torch.profiler.record_function(name):
            yield
    finally:
        if clock:
            clock.book()
            clock.open.pop()
