"""A buffer of prompts worth another look, drawn by an upper confidence bound of what they are worth.

What is kept are prompts, never answers to be trained on: those are sampled anew by the current policy, so that no
importance weight is needed. UCB1: Auer, Cesa-Bianchi and Fischer 2002; the mean forgets,
because the policy changes (Garivier and Moulines 2008).
"""

import heapq
import math
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

import numpy as np

from lib.core.config import ReplaySettings

MEMORY = 8  # outcomes that a mean remembers, about: the policy changes, and with it what a prompt is worth


@dataclass
class ReplayEntry:
    """An item of the buffer, with the running mean and variance of what it was worth."""

    uid: int
    key: str
    item: Any
    mean: float
    variance: float = 0.0
    draws: int = 0
    outcomes: int = 1


class ReplayBuffer:
    """At most `capacity` items, each once.

    Not thread-safe: one thread draws and notes. Equal seeds and calls give equal draws, so processes that make the same
    calls hold the same buffer.
    """

    def __init__(self, settings: ReplaySettings, seed: int):
        self.settings, self._seed = settings, seed
        self._uid = 0  # of the next entry
        self._calls = 0  # of `sample`
        self._entries: list[ReplayEntry] = []

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, key: str) -> int | None:
        """Returns the uid of the entry with this key, if there is one."""
        return next((entry.uid for entry in self._entries if entry.key == key), None)

    def add(self, key: str, item: Any, value: float) -> int | None:
        """Adds an item with its first value, and returns its uid; None if it is known, or not worth it.

        A full buffer takes it in place of the entry with the lowest mean, if it is worth more than that.
        """
        if not math.isfinite(value) or self.find(key) is not None:
            return None
        if len(self) >= self.settings.capacity:
            lowest = self._lowest()
            if value <= lowest.mean:
                return None
            self._drop(lowest)
        self._entries.append(ReplayEntry(self._uid, key, item, value))
        self._uid += 1
        return self._uid - 1

    def credit(self, uid: int, value: float) -> None:
        """Notes what an entry was worth this time; a value that is not finite, or an entry that is gone, is passed by.

        Mean and variance are Welford's, with at most MEMORY outcomes as the weight of the past.
        """
        entry = next((entry for entry in self._entries if entry.uid == uid), None)
        if entry is None or not math.isfinite(value):
            return
        entry.outcomes += 1
        step, off = 1 / min(entry.outcomes, MEMORY), value - entry.mean
        entry.mean += step * off
        entry.variance = (1 - step) * (entry.variance + step * off * off)

    def sample(self, count: int) -> list[ReplayEntry]:
        """Draws up to `count` different entries. A draw counts at once, before its outcome is known."""
        count = min(count, len(self))
        if not count:
            return []
        dice = np.random.default_rng([self._seed, self._calls])
        self._calls += 1
        by_rule = int((dice.random(count) < self.settings.exploit).sum())
        drawn = self._highest(by_rule)
        others = [self._entries[i] for i in dice.choice(len(self), count, replace=False)]  # as many as could be needed
        drawn += [entry for entry in others if entry not in drawn][: count - by_rule]
        for entry in drawn:
            entry.draws += 1
        return drawn

    def numbers(self) -> dict[str, float]:
        """Returns how many entries there are, how often one was drawn, and the mean of their means and deviations."""
        if not self._entries:
            return {"entries": 0}
        return {
            "entries": len(self),
            "draws": fmean(entry.draws for entry in self._entries),
            "value": fmean(entry.mean for entry in self._entries),
            "deviation": fmean(math.sqrt(entry.variance) for entry in self._entries),
        }

    def state_dict(self) -> dict[str, Any]:
        """Returns everything that changes, as JSON has it."""
        return {"uid": self._uid, "calls": self._calls, "entries": list(map(asdict, self._entries))}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resumes exactly where `state_dict` was taken; drops the least valuable if the capacity is smaller now."""
        self._uid, self._calls = state["uid"], state["calls"]
        self._entries = [ReplayEntry(**entry) for entry in state["entries"]]
        while len(self) > self.settings.capacity:
            self._drop(self._lowest())

    def _highest(self, count: int) -> list[ReplayEntry]:
        """Returns the entries with the highest mean + C sqrt(ln(N + 1) / n).

        An entry that was never drawn comes before all others. Of equal scores the lot decides.
        """
        logarithm = math.log(sum(entry.draws for entry in self._entries) + 1)

        def rank(entry: ReplayEntry) -> tuple[float, float, int]:
            bonus = self.settings.coefficient * math.sqrt(logarithm / entry.draws) if entry.draws else math.inf
            return -entry.mean - bonus, -entry.mean, hash((self._seed, entry.uid, entry.draws))

        return heapq.nsmallest(count, self._entries, key=rank)

    def _lowest(self) -> ReplayEntry:
        """Returns the entry with the lowest mean, of several the oldest."""
        return min(self._entries, key=lambda entry: (entry.mean, entry.uid))

    def _drop(self, entry: ReplayEntry) -> None:
        """Takes an entry out; the last one takes its place."""
        place, last = self._entries.index(entry), self._entries.pop()
        if last is not entry:
            self._entries[place] = last
