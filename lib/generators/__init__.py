"""Shelf of generators: whoever writes text. They share `Completion`; YAML picks one by name."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Completion:
    """What a generator wrote after one prompt."""

    ids: list[int]  # as sampled, the end token included when there is one
    logps: list[float]  # log-prob of each id at the sampling temperature, in nats
    finished: bool  # False: cut off by the budget, no end token

    def text_ids(self) -> list[int]:
        """The ids without the end token."""
        return self.ids[:-1] if self.finished else self.ids
