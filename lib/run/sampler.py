"""Which rows come next: a new shuffle every epoch, decided by the seed alone, and resumable in the middle."""

import random
from collections.abc import Callable
from typing import TypeVar

from accelerate import Accelerator

from lib.run.distributed import collect, part_of, share

Taken = TypeVar("Taken")
Result = TypeVar("Result")


def draw(
    take: Callable[[int], list[Taken]], wanted: int, rounds: int, accelerator: Accelerator,
    answer: Callable[[list[Taken], int], list[Result]], tells: Callable[[list[Result]], list[bool]],
) -> list[Result]:  # fmt: skip
    """Takes the next `wanted` rows, and returns the results of `answer` on this process's share, one per row.

    `answer` also gets the place of the first of them among all rows that were taken with them.
    Up to `rounds` times, further rows are added for those without a training signal, until `wanted` have one: `tells`
    gets the results so far and tells which have one.
    """
    answered: list[Result] = []
    missing = wanted
    for round_ in range(1 + rounds):
        drawn = take(missing)
        own = part_of(len(drawn), accelerator)  # of a further round perhaps nothing
        answered += answer(drawn[own.start : own.stop] if round_ else share(drawn, accelerator), own.start)
        if round_ == rounds:
            break
        missing = wanted - sum(collect(tells(answered), accelerator))
        if missing <= 0:
            break
    return answered


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
