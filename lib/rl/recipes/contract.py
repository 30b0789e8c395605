"""What every recipe is, and the answers of a step that it pays."""

from dataclasses import dataclass
from functools import cached_property

from lib.core.config import ScoreTrain
from lib.rl.tree import Answer, Node


@dataclass(frozen=True)
class StepAnswers:
    """The answers of a step, by number: attempts, and reviews of them."""

    nodes: list[Node]
    rewards: list[float]  # of the judge, the penalty for long answers included

    @cached_property
    def answers(self) -> list[Answer]:
        """Returns the answers."""
        return [answer for node in self.nodes for answer in node.group.answers]

    @cached_property
    def node_of(self) -> list[Node]:
        """Returns the node of each answer."""
        return [node for node in self.nodes for _ in node.numbers]

    @cached_property
    def before(self) -> list[list[int]]:
        """Returns of each answer the numbers of the earlier attempts in its chat, the first one first."""
        attempts: list[list[int]] = []
        for node in self.nodes:
            earlier: list[int] = []
            if node.parent is not None:
                earlier = [*attempts[node.parent], *([node.parent] if self.node_of[node.parent].is_attempt else [])]
            attempts += [earlier for _ in node.numbers]
        return attempts

    @cached_property
    def chats(self) -> list[list[list[int]]]:
        """Returns of each answer the chats that go through it, as the numbers of all their attempts."""
        parents = {node.parent for node in self.nodes}
        chats: list[list[list[int]]] = [[] for _ in self.rewards]
        for last, node in enumerate(self.node_of):
            if last in parents:
                continue
            chat = [*self.before[last], *([last] if node.is_attempt else [])]
            above: int | None = last
            while above is not None:
                chats[above].append(chat)
                above = self.node_of[above].parent
        return chats

    def gained(self, number: int, on: str) -> float | None:
        """Returns the gain of an attempt over the one before, in `on`: match or reward; None without both verdicts."""
        before = self.before[number][-1]
        one, two = self.answers[before].verdict, self.answers[number].verdict
        if not (one.scored and two.scored):
            return None
        if on == "match":
            return float(two.match) - float(one.match)
        return self.rewards[number] - self.rewards[before]


class CorrectionRecipe:
    """Decides what answers earn. Who is compared with whom, and what a token weighs, is the same for all recipes."""

    pays_attempts = True  # False: they earn nothing, as does one at which a chat has ended
    scales_roles = False  # advantages are divided by the standard deviation of those of attempts, or of reviews

    def __init__(self, train: ScoreTrain):
        self.train = train

    def paid(self, node: Node, step: StepAnswers, stage: int) -> list[float | None]:
        """Returns the rewards of a group's answers; None leaves an answer out, for instance one without a verdict."""
        raise NotImplementedError
