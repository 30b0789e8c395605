"""What each answer earns, and what that does to its tokens: advantages, weights, the optimizer step that sees them."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from accelerate import Accelerator

from lib.config import GspoTrain, SelfPlayConfig
from lib.distributed import collect
from lib.groups import Answer, Group, answer_sequences
from lib.losses import group_advantages, overlong_penalty
from lib.rollout import MicroBatch, Sequence
from lib.selfplay import Played, played_reward


@dataclass(frozen=True)
class Credit:
    """The n answers of a step, numbered from 0 group by group, and what multiplies the loss of their tokens."""

    groups: list[Group]
    numbers: list[list[int]]  # by group and answer: its number, or -1 where it is not trained
    advantage: torch.Tensor  # (n,)
    weight: torch.Tensor  # (n,) length normalisation
    off_policy: torch.Tensor  # (n,) bool: sampled under another prompt than it is trained under
    start: torch.Tensor  # (n,) where an answer's tokens begin in a row of the tokens of all answers
    sampled_logp: torch.Tensor  # (tokens of all answers,) as the sampler had them
    parts: list[list[int]]  # the groups of each minibatch
    divisor: float  # answers of one optimizer step, over all processes

    def sequences(self, part: list[int], pays: Callable[[int, list[int]], bool]) -> list[Sequence]:
        """What one minibatch trains."""
        return answer_sequences([self.groups[i] for i in part], [self.numbers[i] for i in part], pays)

    def tokens_of(self, batch: MicroBatch) -> torch.Tensor:
        """Where the tokens of a micro-batch stand in the row of all answers' tokens, (N,)."""
        return self.start[batch.rollout] + batch.token

    def must_pull(self, part: list[int]) -> bool:
        """Whether a minibatch must have a gradient: an advantage that no importance weight can make vanish."""
        numbers = [number for i in part for number in self.numbers[i] if number >= 0]
        return bool(((self.advantage != 0) & ~self.off_policy)[numbers].any())


def rewards_of(played: Played, config: SelfPlayConfig) -> list[float]:
    """What each answer of a group earns: its reward, its game, and the price of its last tokens."""
    budget, buffer = config.generation.most_tokens, config.train.overlong_buffer
    return [
        played_reward(answer.score.reward, answer.score, played.reaction, config.opponent)
        + overlong_penalty(len(answer.completion.ids), budget, buffer)
        for answer in played.group.answers
    ]


def is_trained(answer: Answer, train: GspoTrain) -> bool:
    """Whether an answer counts at all: it was judged, and it was not cut off where that matters."""
    return answer.score.scored and (answer.completion.finished or not train.mask_truncated)


def trained_rewards(played: Played, config: SelfPlayConfig) -> list[float]:
    """Those of the answers that count: where they are all equal, a group has nothing to tell."""
    rewards = zip(rewards_of(played, config), played.group.answers, strict=True)
    return [reward for reward, answer in rewards if is_trained(answer, config.train)]


def advantages_of(
    kind: str, rewards: list[list[float]], trained: list[list[bool]], accelerator: Accelerator,
    penalties: list[list[float]] | None = None,
) -> list[list[float]]:  # fmt: skip
    """By group and answer (lib/losses.py); some kinds look at the groups of all processes."""
    ranks = collect([(rewards, trained, penalties or [])], accelerator)
    every_reward, every_trained, every_penalty = (flat([rank[i] for rank in ranks]) for i in range(3))
    before = sum(len(rank[0]) for rank in ranks[: accelerator.process_index])
    width = max((len(own) for own in every_reward), default=0)

    def padded(groups: list[list], by: float | bool) -> torch.Tensor:
        return torch.tensor([own + [by] * (width - len(own)) for own in groups])

    penalty = padded(every_penalty, 0.0) if penalties is not None else None
    values = group_advantages(kind, padded(every_reward, 0.0), padded(every_trained, False), penalty).tolist()
    return [values[before + i][: len(own)] for i, own in enumerate(rewards)]


def numbered(chosen: list[list[bool]]) -> list[list[int]]:
    """Numbers from 0 in place of what is chosen, -1 in place of the others, which are counted too."""
    count = iter(range(sum(map(len, chosen))))
    return [[number if is_on else -1 for is_on, number in zip(own, count, strict=False)] for own in chosen]


def flat(parts: list[list]) -> list:
    """One list of many."""
    return [value for part in parts for value in part]
