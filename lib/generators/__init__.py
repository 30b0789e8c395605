"""Shelf of generators: whoever writes text. They share `Turn` and `Completion`."""

from collections.abc import Callable
from dataclasses import dataclass

Path = tuple[int, ...]  # which completion: its turn's path, and its number among the copies


@dataclass(frozen=True)
class Turn:
    """What is asked of a generator: `copies` completions of one prompt."""

    ids: list[int]
    max_new_tokens: int
    copies: int = 1


@dataclass(frozen=True)
class Completion:
    """What a generator wrote after one prompt."""

    ids: list[int]  # as sampled, the end token included when there is one
    logps: list[float]  # log-prob of each id at the sampling temperature, in nats
    finished: bool  # False: cut off by the budget, no end token

    def text_ids(self) -> list[int]:
        """The ids without the end token."""
        return self.ids[:-1] if self.finished else self.ids


# what follows a completion: another turn that continues the conversation, or nothing
FollowUp = Callable[[Path, Completion], Turn | None]


def nothing_follows(_path: Path, _completion: Completion) -> None:
    """A conversation of one turn."""
    return None
