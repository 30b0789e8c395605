"""Where the time of a step goes. `with phase("generate"):` anywhere counts towards the clock that runs, if one does.

generate          sampling both attempts
reward            judging them
reference         log-probs of the frozen base
forward_backward  log-probs of the policy, loss, gradient
optimizer         clipping and the step
sync              the adapter into the sampler, and waiting for the other processes
other             everything else: prompts, logs, checkpoints
"""

import contextlib
import time
from collections.abc import Iterator

import torch

PHASES = ("generate", "reward", "reference", "forward_backward", "optimizer", "sync", "other")
_running: list["Clock"] = []


class Clock:
    """Seconds by phase since the last `lap`. A phase within a phase counts for the inner one alone."""

    def __init__(self) -> None:
        self._seconds = dict.fromkeys(PHASES, 0.0)
        self._open = ["other"]
        self._since = time.perf_counter()

    def start(self) -> None:
        """From now on phases count here."""
        _running[:] = [self]
        self.lap()

    def lap(self) -> dict[str, float]:
        """`seconds_<phase>` since the last call, and starts anew."""
        self.book()
        seconds = {f"seconds_{name}": value for name, value in self._seconds.items()}
        self._seconds = dict.fromkeys(PHASES, 0.0)
        return seconds

    def book(self, entered: str | None = None, left: bool = False) -> None:
        """The time since the last call goes to the phase that was open; another one may open or this one close."""
        if torch.cuda.is_available():
            torch.cuda.synchronize()  # or the time would be booked where it is waited for, not where it is spent
        now = time.perf_counter()
        self._seconds[self._open[-1]] += now - self._since
        self._since = now
        if entered:
            self._open.append(entered)
        if left:
            self._open.pop()


@contextlib.contextmanager
def phase(name: str) -> Iterator[None]:
    """What happens within belongs to phase `name`, for the clock that runs and for a profiler's trace."""
    clock = _running[0] if _running else None
    if clock:
        clock.book(entered=name)
    try:
        with torch.profiler.record_function(name):
            yield
    finally:
        if clock:
            clock.book(left=True)
