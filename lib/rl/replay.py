"""A buffer of prompts worth another look, drawn by an upper confidence bound of what they are worth.

What is kept are prompts, never answers to be trained on: those are sampled anew by the current policy, so that no
importance weight is needed. UCB1: Auer, Cesa-Bianchi and Fischer 2002; the mean forgets,
because the policy changes (Garivier and Moulines 2008).
"""

import heapq
import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np

from lib.core.config import ReplaySettings

MEMORY = 8  # outcomes that a mean remembers, about: the policy changes, and with it what a prompt is worth


@dataclass(frozen=True)
class Replayed:
    """An entry drawn from the buffer."""

    uid: int
    item: Any


class ReplayBuffer:
    """At most `capacity` items, each once, with the running mean and variance of what they were worth.

    Not thread-safe: one thread draws and notes. Equal seeds and calls give equal draws, so processes that make the same
    calls hold the same buffer.
    """

    def __init__(self, settings: ReplaySettings, seed: int):
        self.settings, self._seed = settings, seed
        self._uid = 0  # of the next entry
        self._calls = 0  # of `sample`
        self._items: list[Any] = []  # by slot, as all below
        self._keys: list[str] = []
        self._uids: list[int] = []
        self._slots: dict[int, int] = {}  # by uid
        self._known: dict[str, int] = {}  # uid by key
        self._mean, self._variance = np.zeros((2, settings.capacity))
        self._draws, self._outcomes = np.zeros((2, settings.capacity), int)
        self._rank_all()

    def __len__(self) -> int:
        return len(self._items)

    def find(self, key: str) -> int | None:
        """Returns the uid of the entry with this key, if there is one."""
        return self._known.get(key)

    def add(self, key: str, item: Any, value: float) -> int | None:
        """Adds an item with its first value, and returns its uid; None if it is known, or not worth it.

        A full buffer takes it in place of the entry with the lowest mean, if it is worth more than that.
        """
        if not math.isfinite(value) or key in self._known:
            return None
        if len(self) >= self.settings.capacity:
            mean, cheapest = self._lowest()
            if value <= mean:
                return None
            self._drop(cheapest)
        uid, slot = self._uid, len(self)
        self._uid += 1
        self._items.append(item)
        self._keys.append(key)
        self._uids.append(uid)
        self._slots[uid], self._known[key] = slot, uid
        self._mean[slot], self._variance[slot], self._draws[slot], self._outcomes[slot] = value, 0.0, 0, 1
        self._rank(slot)
        return uid

    def credit(self, uid: int, value: float) -> None:
        """Notes what an entry was worth this time; a value that is not finite, or an entry that is gone, is passed by.

        Mean and variance are Welford's, with at most MEMORY outcomes as the weight of the past.
        """
        slot = self._slots.get(uid)
        if slot is None or not math.isfinite(value):
            return
        outcomes = int(self._outcomes[slot]) + 1
        step, mean, variance = 1 / min(outcomes, MEMORY), float(self._mean[slot]), self._variance[slot]
        off = value - mean
        mean += step * off
        self._mean[slot], self._outcomes[slot] = mean, outcomes
        self._variance[slot] = (1 - step) * (variance + step * off * off)
        self._rank(slot)

    def sample(self, count: int) -> list[Replayed]:
        """Draws up to `count` different entries. A draw counts at once, before its outcome is known."""
        size = len(self)
        count = min(count, size)
        if not count:
            return []
        dice = np.random.default_rng([self._seed, self._calls])
        self._calls += 1
        by_rule = int((dice.random(count) < self.settings.exploit).sum())
        drawn = self._highest(by_rule)
        taken, others = set(drawn), dice.choice(size, count, replace=False)  # as many as could be needed
        others = [slot for slot in others.tolist() if slot not in taken][: count - by_rule]
        self._draws[others] += 1
        drawn += others
        for slot in drawn:
            self._rank(slot)
        return [Replayed(self._uids[slot], self._items[slot]) for slot in drawn]

    def numbers(self) -> dict[str, float]:
        """Returns how many entries there are, how often one was drawn, and the mean of their means and deviations."""
        size = len(self)
        if not size:
            return {"entries": 0}
        return {
            "entries": size,
            "draws": float(self._draws[:size].mean()),
            "value": float(self._mean[:size].mean()),
            "deviation": float(np.sqrt(self._variance[:size]).mean()),
        }

    def state_dict(self) -> dict[str, Any]:
        """Returns everything that changes, as JSON has it."""
        size = len(self)
        return {
            "uid": self._uid, "calls": self._calls, "items": list(self._items), "keys": list(self._keys),
            "uids": list(self._uids),
            **{name: column[:size].tolist() for name, column in self._columns.items()},
        }  # fmt: skip

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resumes exactly where `state_dict` was taken; drops the least valuable if the capacity is smaller now."""
        self._uid, self._calls = state["uid"], state["calls"]
        self._items, self._keys, self._uids = (list(state[name]) for name in ("items", "keys", "uids"))
        self._slots = {uid: slot for slot, uid in enumerate(self._uids)}
        self._known = dict(zip(self._keys, self._uids, strict=True))
        size = len(self)
        for name in self._columns:
            grown = np.zeros(max(size, self.settings.capacity), self._columns[name].dtype)
            grown[:size] = state[name]
            setattr(self, f"_{name}", grown)
        self._rank_all()
        while len(self) > self.settings.capacity:
            self._drop(self._lowest()[1])

    @property
    def _columns(self) -> dict[str, np.ndarray]:
        return {"mean": self._mean, "variance": self._variance, "draws": self._draws, "outcomes": self._outcomes}

    def _highest(self, count: int) -> list[int]:
        """Takes the slots of the highest mean + C sqrt(ln(N + 1) / n), and counts their draws.

        An entry that was never drawn comes before all others. Of equal scores the lot decides.
        """
        logarithm = math.log(int(self._draws[: len(self)].sum()) + 1)
        bonus = {n: self.settings.coefficient * math.sqrt(logarithm / n) if n else math.inf for n in self._best}
        tops = [top for n in list(self._best) if (top := self._top(n, bonus[n]))]
        heapq.heapify(tops)
        slots: list[int] = []
        while len(slots) < count:
            *_, slot, n = tops[0]
            slots.append(slot)
            self._draws[slot] += 1  # with that, it is out of date in its heap
            if top := self._top(n, bonus[n]):
                heapq.heapreplace(tops, top)
            else:
                heapq.heappop(tops)
        return slots

    def _top(self, draws: int, bonus: float) -> tuple[float, float, int, int, int] | None:
        """Returns the best entry of so many draws as (-score, -mean, lot, slot, draws); None if there is none."""
        heap = self._best[draws]
        while heap:
            negative, lot, uid = heap[0]
            slot = self._slots.get(uid)
            if slot is not None and self._draws[slot] == draws and self._mean[slot] == -negative:
                return negative - bonus, negative, lot, slot, draws
            heapq.heappop(heap)
        del self._best[draws]
        return None

    def _rank(self, slot: int) -> None:
        """Puts an entry into the heaps anew, since its mean or its draws have changed."""
        uid, mean, draws = self._uids[slot], float(self._mean[slot]), int(self._draws[slot])
        heapq.heappush(self._cheapest, (mean, uid))
        heapq.heappush(self._best[draws], (-mean, hash((self._seed, uid, draws)), uid))
        self._ranked += 1
        if self._ranked > 4 * len(self) + 64:
            self._rank_all()

    def _rank_all(self) -> None:
        """Makes the heaps anew, without what is out of date in them."""
        means, draws = self._mean.tolist(), self._draws.tolist()
        self._ranked = len(self)  # entries in a heap, about
        self._cheapest = [(means[slot], uid) for slot, uid in enumerate(self._uids)]
        # entries with equally many draws have the same bonus, so that the best of them is on top of a heap of means
        self._best: defaultdict[int, list[tuple[float, int, int]]] = defaultdict(list)
        for slot, uid in enumerate(self._uids):
            n = draws[slot]
            self._best[n].append((-means[slot], hash((self._seed, uid, n)), uid))  # the hash is the lot
        heapq.heapify(self._cheapest)
        for heap in self._best.values():
            heapq.heapify(heap)

    def _lowest(self) -> tuple[float, int]:
        """Returns the lowest mean, and the uid of the entry that has it, the oldest of several."""
        while True:
            mean, uid = self._cheapest[0]
            slot = self._slots.get(uid)
            if slot is not None and self._mean[slot] == mean:
                return mean, uid
            heapq.heappop(self._cheapest)

    def _drop(self, uid: int) -> None:
        """Takes an entry out, with its key, so that it may come back; the last one takes its slot."""
        slot, last = self._slots.pop(uid), len(self) - 1
        del self._known[self._keys[slot]]
        columns: list[list] = [self._items, self._keys, self._uids]
        for values in columns:
            values[slot] = values[last]
            values.pop()
        for column in self._columns.values():
            column[slot] = column[last]
        if slot != last:
            self._slots[self._uids[slot]] = slot
