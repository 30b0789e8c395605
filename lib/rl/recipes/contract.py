"""What every recipe is, and the answers of a step that it pays."""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from lib.rl.tree import Answer, Node


@dataclass(frozen=True)
class StepAnswers:
    """The answers of a step, by number."""

    nodes: list[Node]
    rewards: list[float]  # of the judge, the penalty for long answers included

    @cached_property
    def answers(self) -> list[Answer]:
        """Returns the answers."""
        return [answer for node in self.nodes for answer in node.group.answers]

    @cached_property
    def before(self) -> list[list[int]]:
        """Returns of each answer the numbers of the earlier ones in its chat, the first attempt first."""
        found: list[list[int]] = []
        for node in self.nodes:
            earlier = [] if node.parent is None else [*found[node.parent], node.parent]
            found += [earlier for _ in node.numbers]
        return found

    @cached_property
    def chats(self) -> list[list[list[int]]]:
        """Returns of each answer the chats that go through it, as the numbers of all their answers."""
        parents = {node.parent for node in self.nodes}
        found: list[list[list[int]]] = [[] for _ in self.rewards]
        for last, earlier in enumerate(self.before):
            if last not in parents:
                chat = [*earlier, last]
                for number in chat:
                    found[number].append(chat)
        return found


class CorrectionRecipe(Protocol):
    """Decides what attempts earn. Who is compared with whom, and what a token weighs, is the same for all recipes."""

    def paid(self, node: Node, step: StepAnswers, stage: int) -> list[float | None]:
        """Returns what the answers of a group earn; None for one that has no verdict it depends on: it is left out."""
