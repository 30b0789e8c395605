"""Requests to the sampler and their results, in tokens."""

from collections.abc import Callable
from dataclasses import dataclass

TreePath = tuple[int, ...]  # identifies a completion: its turn's path, and its number among the copies


@dataclass(frozen=True)
class Turn:
    """Asks for `copies` completions of one prompt."""

    ids: list[int]
    max_new_tokens: int
    copies: int = 1


@dataclass(frozen=True)
class Completion:
    """The tokens that a model wrote after one prompt."""

    ids: list[int]  # as sampled, the end token included when there is one
    logps: list[float]  # log-prob of each id at the sampling temperature, in nats
    finished: bool  # False: cut off by the budget, no end token

    def text_ids(self) -> list[int]:
        """Returns the ids without the end token."""
        return self.ids[:-1] if self.finished else self.ids


# what follows a completion: another turn that continues the conversation, or nothing
FollowUp = Callable[[TreePath, Completion], Turn | None]


def nothing_follows(_path: TreePath, _completion: Completion) -> None:
    """Returns None, so that a conversation has one turn."""
    return None
