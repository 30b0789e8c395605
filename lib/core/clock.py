"""Measures the time of a step by phase. `with phase("generate"):` anywhere counts towards the running clock, if any.

generate          sampling
reward            judging them
waiting           for an opponent or a teacher behind a server
reference         log-probs of the frozen base
forward_backward  log-probs of the policy, loss, gradient
optimizer         clipping and the step
sync              the adapter into the sampler, and waiting for the other processes
other             everything else: prompts, logs, checkpoints
"""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import torch

PHASES = ("generate", "reward", "waiting", "reference", "forward_backward", "optimizer", "sync", "other")
_running: list["Clock"] = []


class Clock:
    """Measures seconds per phase since the last `lap`. Nested phases count for the inner one alone."""

    def __init__(self) -> None:
        self._seconds = dict.fromkeys(PHASES, 0.0)
        self._open = ["other"]
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

    def book(self, entered: str | None = None, left: bool = False) -> None:
        """Adds the time since the last call to the open phase; may then open phase `entered`, or close the open one."""
        if torch.cuda.is_available():
            torch.cuda.synchronize()  # else GPU time would count for the phase that waits for it
        now = time.perf_counter()
        self._seconds[self._open[-1]] += now - self._since
        self._since = now
        if entered:
            self._open.append(entered)
        if left:
            self._open.pop()


@contextlib.contextmanager
def phase(name: str) -> Iterator[None]:
    """Counts the time inside towards phase `name`, on the running clock and in a profiler's trace."""
    if name not in PHASES:
        raise ValueError(f"phase '{name}' is not one of {', '.join(PHASES)}")
    clock = _running[0] if _running else None
    if clock:
        clock.book(entered=name)
    try:
        with torch.profiler.record_function(name):
            yield
    finally:
        if clock:
            clock.book(left=True)


class Profile:
    """Runs torch's profiler over `steps` optimizer steps, after one that is not recorded; 0 steps: off."""

    def __init__(self, steps: int, folder: Path, rank: int = 0):
        self._folder, self._rank, self._left = folder, rank, steps
        self._profile: torch.profiler.profile | None = None

    def step(self) -> str | None:
        """Advances by one optimizer step; returns the message to show once the trace is written."""
        if self._profile is None and self._left > 0:
            self._profile = torch.profiler.profile()
            self._profile.start()
            return None
        self._left -= 1
        return None if self._left > 0 else self.close()

    def close(self) -> str | None:
        """Writes the trace of the steps profiled so far, if any, and returns the message to show."""
        if not self._profile:
            return None
        self._profile.stop()
        profile, self._profile = self._profile, None
        self._folder.mkdir(parents=True, exist_ok=True)
        trace = self._folder / f"trace_rank{self._rank}.json.gz"
        profile.export_chrome_trace(str(trace))
        where = "self_cuda_time_total" if torch.cuda.is_available() else "self_cpu_time_total"
        table = profile.key_averages().table(sort_by=where, row_limit=30, max_name_column_width=60)
        (self._folder / f"operators_rank{self._rank}.txt").write_text(table, encoding="utf-8")
        return f"profile: {trace}, to be opened at ui.perfetto.dev, and a table of operators next to it"
