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
    """The n answers of a step, numbered from 0 group by group, and the factors of their tokens' loss."""

    groups: list[Group]
    numbers: list[list[int]]  # by group and answer: its number, or -1 where it is not trained
    advantage: torch.Tensor  # (n,)
    weight: torch.Tensor  # (n,) length normalisation
    off_policy: torch.Tensor  # (n,) bool: sampled under a different prompt from the one it is trained under
    start: torch.Tensor  # (n,) offset of an answer's tokens in the concatenation of all answers' tokens
    sampled_logp: torch.Tensor  # (tokens of all answers,) log-probs from the sampler
    parts: list[list[int]]  # the groups of each minibatch
    divisor: float  # answers of one optimizer step, over all processes

    def sequences(self, part: list[int], pays: Callable[[int, list[int]], bool]) -> list[Sequence]:
        """Returns the sequences of one minibatch; `pays` tells if sharing their prompts is cheaper."""
        return answer_sequences([self.groups[i] for i in part], [self.numbers[i] for i in part], pays)

    def tokens_of(self, batch: MicroBatch) -> torch.Tensor:
        """Returns the indices of a micro-batch's tokens in the concatenation of all answers' tokens, (N,)."""
        return self.start[batch.rollout] + batch.token

    def must_pull(self, part: list[int]) -> bool:
        """Tells whether a minibatch must have a gradient: an advantage that no importance weight can bring to zero."""
        numbers = [number for i in part for number in self.numbers[i] if number >= 0]
        return bool(((self.advantage != 0) & ~self.off_policy)[numbers].any())


def rewards_of(played: Played, config: SelfPlayConfig) -> list[float]:
    """Returns what each answer of a group earns: its reward, adjusted by its game, plus the overlong penalty."""
    budget, buffer = config.generation.most_tokens, config.train.overlong_buffer
    return [
        played_reward(answer.score.reward, answer.score, played.reaction, config.opponent)
        + overlong_penalty(len(answer.completion.ids), budget, buffer)
        for answer in played.group.answers
    ]


def is_trained(answer: Answer, train: GspoTrain) -> bool:
    """Tells whether an answer is trained: it was judged, and not truncated if `mask_truncated` is on."""
    return answer.score.scored and (answer.completion.finished or not train.mask_truncated)


def trained_rewards(played: Played, config: SelfPlayConfig) -> list[float]:
    """Returns the rewards of the answers that are trained; if they are all equal, the group gives no signal."""
    rewards = zip(rewards_of(played, config), played.group.answers, strict=True)
    return [reward for reward, answer in rewards if is_trained(answer, config.train)]


def advantages_of(
    kind: str, rewards: list[list[float]], trained: list[list[bool]], accelerator: Accelerator,
    penalties: list[list[float]] | None = None,
) -> list[list[float]]:  # fmt: skip
    """Computes advantages by group and answer (lib/losses.py); some kinds use the groups of all processes."""
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
    """Numbers all answers from 0, group by group, and puts -1 in place of those that are not chosen."""
    count = iter(range(sum(map(len, chosen))))
    return [[number if is_on else -1 for is_on, number in zip(own, count, strict=False)] for own in chosen]


def flat(parts: list[list]) -> list:
    """Returns the concatenation of lists."""
    return [value for part in parts for value in part]
