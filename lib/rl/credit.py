"""What each answer of a step earns, and what that does to its tokens: advantages, weights, who has a gradient."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from statistics import pstdev

import torch
from accelerate import Accelerator
from torch.nn.utils.rnn import pad_sequence

from lib.rl.batching import MicroBatch
from lib.rl.losses import group_advantages, length_weights
from lib.rl.tree import Answer, Node
from lib.run.distributed import collect

SMALLEST_SPREAD = 1e-6  # of advantages: less is rounding


@dataclass(frozen=True)
class Credit:
    """The n answers of a step, numbered by `lib.rl.tree.nodes`, and the factors of their tokens' loss, (n,) each."""

    nodes: list[Node]
    turn: torch.Tensor  # of the policy in its chat, from 1
    advantage: torch.Tensor
    weight: torch.Tensor  # length normalisation, times the last answers below it in a full tree, times `importance`
    kl_weight: torch.Tensor  # of the KL in the loss
    teacher_weight: torch.Tensor  # of the KL to a teacher in the loss
    importance: torch.Tensor  # 1 over the probability with which an answer was drawn for the KL; 0 if it was dropped
    learned: list[bool]  # has a gradient; the others need no forward
    off_policy: torch.Tensor  # bool: sampled under a different prompt from the one it is trained under
    start: torch.Tensor  # offset of an answer's tokens in `sampled_logp`
    sampled_logp: torch.Tensor  # (tokens of all answers,) log-probs from the sampler
    parts: list[list[Node]]  # the groups of each minibatch
    divisor: float  # last answers of full trees per optimizer step, over all processes

    @property
    def is_taught(self) -> torch.Tensor:
        """Tells of each answer whether it has an advantage or a teacher, (n,) bool; others have a KL at most."""
        return (self.advantage != 0) | (self.teacher_weight != 0)

    def is_learned(self, answer: int) -> bool:
        """Tells whether an answer has a gradient."""
        return self.learned[answer]

    def tokens_of(self, batch: MicroBatch) -> torch.Tensor:
        """Returns the indices of a micro-batch's tokens in the concatenation of all answers' tokens, (N,)."""
        return self.start[batch.answer] + batch.token

    def advantages(self) -> dict[int, float]:
        """Returns the advantage of each answer, by its `id()`."""
        answers = [answer for node in self.nodes for answer in node.group.answers]
        return dict(zip(map(id, answers), self.advantage.tolist(), strict=True))

    def must_pull(self, part: list[Node]) -> bool:
        """Tells whether a minibatch must have a gradient: an advantage that no importance weight can bring to zero."""
        numbers = [number for node in part for number in node.numbers if self.learned[number]]
        return bool(((self.advantage != 0) & ~self.off_policy)[numbers].any())


def is_whole(answer: Answer, mask_truncated: bool) -> bool:
    """Tells whether an answer counts: it was judged, and not truncated if `mask_truncated` is on."""
    return answer.verdict.scored and (answer.completion.finished or not mask_truncated)


def compared(found: list[Node]) -> dict[int, list[list[int]]]:
    """Returns by turn the sets of answers, by number, whose rewards are compared with each other: those of a group.

    A group of one answer is compared with its siblings, the groups of one answer that follow answers of the same group.
    """
    owner = {number: node for node in found for number in node.numbers}
    sets: dict[int, dict[int, list[int]]] = {}
    for node in found:
        above = node
        while len(above.numbers) == 1 and above.parent is not None:
            above = owner[above.parent]
        sets.setdefault(node.turn, {}).setdefault(above.numbers.start, []).extend(node.numbers)
    return {turn: list(own.values()) for turn, own in sets.items()}


def advantages_of(
    kind: str, sets: list[list[int]], rewards: list[float], counts: list[bool], accelerator: Accelerator,
    penalties: list[float] | None = None,
) -> dict[int, float]:  # fmt: skip
    """Computes advantages by number of the answer (lib/rl/losses.py), for `sets` of answers that are compared.

    `rewards`, `counts` and `penalties`, the KL in the rewards, are by number; an answer that does not count gets 0 and
    is in no mean. Some kinds use the rewards of all processes; for `batch` all sets of all processes are one.
    """
    fields = (rewards, counts, penalties or [0.0] * len(rewards))
    ranks = collect([[[[values[n] for n in own] for values in fields] for own in sets]], accelerator)
    # a baseline must not depend on how prompts are distributed over processes
    every, before = flat(ranks), sum(map(len, ranks[: accelerator.process_index]))
    if not every:
        return {}
    sizes = [len(reward) for reward, *_ in every]
    if kind == "leave_one_out" and max(sizes) < 2:  # chats that stop may leave nobody to be compared with
        return {number: 0.0 for own in sets for number in own}
    if kind == "batch":
        every = [[flat([own[field] for own in every]) for field in range(3)]]
    reward, count, penalty = (
        pad_sequence([torch.tensor(own[field]) for own in every], batch_first=True) for field in range(3)
    )
    values = group_advantages("group" if kind == "batch" else kind, reward, count, penalty if penalties else None)
    rows = values[0].split(sizes) if kind == "batch" else values
    mine = zip(sets, rows[before:], strict=False)
    return {number: value for own, row in mine for number, value in zip(own, row.tolist(), strict=False)}


def scaled_by_role(
    found: list[Node], advantage: list[float], counts: list[bool], accelerator: Accelerator
) -> list[float]:
    """Returns advantages over the standard deviation of those of their role, attempts or reviews, on all processes."""
    scaled = list(advantage)
    for is_attempt in (True, False):
        own = [n for node in found if node.is_attempt == is_attempt for n in node.numbers if counts[n]]
        values = collect([advantage[number] for number in own], accelerator)
        spread = pstdev(values) if values else 0.0
        for number in own if spread > SMALLEST_SPREAD else ():
            scaled[number] /= spread
    return scaled


def credit_of(
    found: list[Node],
    advantage: list[float],
    trained: list[bool],
    kl_weights: tuple[float, ...],
    teacher_weights: list[float] | None = None,
    *,
    length_norm: str,
    budgets: tuple[int, ...],
    accelerator: Accelerator,
    generator: torch.Generator,
    kl_sample: float = 1.0,
    minibatches: int = 1,
    others_drawn: bool = False,
    below: tuple[int, ...] = (1,),
    followed: int | None = None,
) -> Credit:
    """Selects what is learned, in which minibatch, and how much each token weighs.

    `below` counts, by turn, the last answers below an answer of a full tree. An answer weighs as much where nothing
    follows it: if a right attempt that ends its chat weighed less than a wrong one, the gradient would be biased. Where
    no more than `followed` first answers of a tree are followed, what follows these stands for what would the others.

    `advantage`, `trained`, not masked and by the policy, and `teacher_weights` of a KL to a teacher, if there is one,
    are by number of the answer; `kl_weights` and `budgets`, in tokens, by turn. With `others_drawn`, trees without a
    gradient are left out of all means, since others were drawn in their place. A first answer without an advantage or a
    teacher, in itself and in what follows it, has only a KL term: it is kept with probability `kl_sample` and weighted
    by its inverse (Horvitz and Thompson 1952), so that the expected gradient is unchanged.
    """
    device = accelerator.device
    completions = [answer.completion for node in found for answer in node.group.answers]

    def by_answer(values: Iterable, dtype: torch.dtype = torch.long) -> torch.Tensor:
        return torch.tensor(list(values), dtype=dtype, device=device)

    tree = by_answer(node.tree for node in found for _ in node.numbers)
    turn = by_answer(node.turn for node in found for _ in node.numbers)
    advantages, kept = by_answer(advantage, torch.float32), by_answer(trained, torch.bool)
    kl_weight = torch.tensor((0.0, *kl_weights), device=device)[turn]
    teacher_weight = by_answer(teacher_weights or [0.0] * len(advantage), torch.float32)
    is_taught = (advantages != 0) | (teacher_weight != 0)
    pulls = kept & (is_taught | (kl_weight != 0))
    importance = torch.ones_like(advantages)
    if kl_sample < 1:
        branch = by_answer(_branches(found))
        is_paid = _any(is_taught, branch)
        drawn = torch.rand(len(is_paid), generator=generator, device=device) < kl_sample
        importance = torch.where(is_paid, 1.0, drawn / kl_sample)[branch]
    learned = pulls & (importance > 0)
    counted = _any(pulls, tree)[tree] if others_drawn else torch.ones_like(kept)
    lengths = by_answer((len(completion.ids) for completion in completions), torch.float32)
    weight = torch.zeros_like(lengths)
    for number, budget in enumerate(budgets, start=1):
        own = turn == number
        every_length = torch.tensor(collect((lengths * kept)[counted & own].tolist(), accelerator), device=device)
        weight[own] = length_weights(length_norm, lengths[own], budget, every_length)
    leaves = by_answer(_leaves(found, below, followed), torch.float32)
    roots = counted & (turn == 1)
    used = _any(learned, tree).nonzero()[:, 0].tolist()
    parts = [used[part::minibatches] for part in range(minibatches)]  # a stride: what was added later stands last
    return Credit(
        nodes=found,
        turn=turn,
        advantage=advantages,
        weight=weight * kept * leaves * importance,
        kl_weight=kl_weight,
        teacher_weight=teacher_weight,
        importance=importance,
        learned=learned.tolist(),
        off_policy=by_answer((node.group.prompt.trained_ids is not None for node in found for _ in node.numbers),
                             torch.bool),
        start=lengths.long().cumsum(0) - lengths.long(),
        sampled_logp=by_answer(flat([completion.logps for completion in completions]), torch.float32),
        parts=[[node for node in found if node.tree in part] for part in map(set, parts)],
        divisor=max(1, below[0] * sum(collect([int(roots.sum())], accelerator))) / minibatches,
    )  # fmt: skip


def _branches(found: list[Node]) -> list[int]:
    """Returns for each answer the index of the first answer that it goes back to, counted over all trees."""
    branch: list[int] = []
    firsts = count()
    for node in found:
        branch += [next(firsts) if node.parent is None else branch[node.parent] for _ in node.numbers]
    return branch


def _leaves(found: list[Node], below: tuple[int, ...], followed: int | None) -> list[float]:
    """Returns for each answer the number of last answers below it in a full tree, of which it is the share it is."""
    leaves: list[float] = []
    share = 1.0
    for node in found:
        if node.parent is None:
            share = 1.0 if followed is None else len(node.numbers) / min(followed, max(1, len(node.numbers)))
        leaves += [below[node.turn - 1] * (1.0 if node.parent is None else share) for _ in node.numbers]
    return leaves


def _any(values: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Tells for each index, from 0 to the highest, whether one of its values (n,) bool is true."""
    count = int(index.max()) + 1 if len(index) else 0
    return torch.zeros(count, device=values.device).index_add(0, index, values.float()) > 0


def flat(parts: list[list]) -> list:
    """Returns the concatenation of lists."""
    return [value for part in parts for value in part]
