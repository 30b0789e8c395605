"""Which rows come next: a new shuffle every epoch, decided by the seed alone, and resumable in the middle."""

import random


class Sampler:
    """Endless batches of row indices. Two samplers with equal seed and state give equal batches."""

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
        """The next `count` row indices; an epoch's last rows are followed by the next epoch's first."""
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
        """How often the data has been gone through."""
        return self.epoch + self.position / self.size

    def state_dict(self) -> dict[str, int]:
        """Everything that moves."""
        return {"size": self.size, "seed": self.seed, "epoch": self.epoch, "position": self.position}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Goes on exactly where `state_dict` was taken; with the next epoch where the data has changed since."""
        if "epoch" not in state:  # that of another kind of sampler: the config has changed
            return
        self.seed, self.epoch, self.position = state["seed"], state["epoch"], state["position"]
        if state["size"] != self.size:
            self.epoch, self.position = self.epoch + 1, 0
        self._order = self._shuffled()
