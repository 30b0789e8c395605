"""Credit assignment: the advantage of each answer of a step, the weights of its tokens, and which have a gradient."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from statistics import pstdev
from typing import NamedTuple

import torch
from accelerate import Accelerator
from torch.nn.utils.rnn import pad_sequence

from lib.rl.batching import MicroBatch
from lib.rl.tree import Answer, Node
from lib.run.distributed import before_mine, collect

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


def overlong_penalty(length: int, budget: int, buffer: int) -> float:
    """Returns 0 up to `budget - buffer` tokens, falling linearly to -1 at `budget` (DAPO, arXiv 2503.14476, eq. 13)."""
    return min(0.0, max(-1.0, (budget - buffer - length) / buffer)) if buffer else 0.0


class Peers(NamedTuple):
    """Answers of one turn whose rewards are compared with each other, by number."""

    answers: list[int]
    ended: list[int]  # last attempts of the chats that stopped before this turn and would else have an answer here


def compared(nodes: list[Node], turn: int, followed: int | None = None) -> list[Peers]:
    """Returns the sets of answers of a turn that are compared with each other: those of a group.

    A group of one answer is compared with its siblings, the groups of one answer that follow answers of the same group.
    Where the chat of a sibling stopped, what stands at its end takes part: with nothing in its place, an answer whose
    siblings all stopped would have no advantage, and the expected gradient would be smaller by the chance of that. It
    may take part since it does not depend on the answer. No more than `followed` first answers of a tree go on; the
    others did not stop.
    """
    owner = {number: node for node in nodes for number in node.numbers}
    parents = {node.parent for node in nodes}
    sets: dict[int, Peers] = {}
    for node in nodes:
        above = node
        while len(above.numbers) == 1 and above.parent is not None:
            above = owner[above.parent]
        peers = sets.setdefault(above.numbers.start, Peers([], []))
        if node.turn == turn:
            peers.answers.extend(node.numbers)
        elif node.turn < turn:
            goes_on = node.numbers[:followed] if node.parent is None else node.numbers
            ends = [number for number in goes_on if number not in parents]
            peers.ended.extend(number if node.is_attempt else node.parent for number in ends)
    return [peers for peers in sets.values() if peers.answers or peers.ended]


def advantages_of(
    kind: str, sets: list[Peers], rewards: list[float], counts: list[bool], accelerator: Accelerator,
    penalties: list[float] | None = None, standing: Sequence[float | None] = (),
) -> dict[int, float]:  # fmt: skip
    """Computes advantages by number of the answer (`group_advantages`), for `sets` of answers that are compared.

    `rewards`, `counts` and `penalties`, the KL in the rewards, are by number; an answer that does not count gets 0 and
    is in no mean. `standing` is by number too: the reward of an attempt at which a chat ended, None without a verdict.
    Some kinds use the rewards of all processes; for `batch` all sets of all processes are one.
    """
    penalty_of = penalties or [0.0] * len(rewards)
    local = [
        [
            [*(rewards[n] for n in answers), *(standing[n] or 0.0 for n in ended)],
            [*(counts[n] for n in answers), *(standing[n] is not None for n in ended)],
            [penalty_of[n] for n in (*answers, *ended)],
        ]
        for answers, ended in sets
    ]
    ranks = collect([local], accelerator)
    # a baseline must not depend on how prompts are distributed over processes
    every, before = flat(ranks), sum(map(len, ranks[: accelerator.process_index]))
    if not every:
        return {}
    sizes = [len(reward) for reward, *_ in every]
    if kind == "batch":
        every = [[flat([fields[i] for fields in every]) for i in range(3)]]
    reward, count, penalty = (
        pad_sequence([torch.tensor(fields[i]) for fields in every], batch_first=True) for i in range(3)
    )
    how = "leave_one_out" if kind == "batch" else kind
    values = group_advantages(how, reward, count, penalty if penalties else None)
    rows = values[0].split(sizes) if kind == "batch" else values
    mine = zip(sets, rows[before:], strict=False)
    return {n: value for peers, row in mine for n, value in zip(peers.answers, row.tolist(), strict=False)}


def leave_one_out(rewards: torch.Tensor, scored: torch.Tensor | None = None) -> torch.Tensor:
    """Returns advantages r_i - mean of the others along the last dimension, (..., K) (RLOO, arXiv 2402.14740).

    Entries that are not `scored` (bool, same shape) get 0 and count in no mean. A single scored entry gets 0 too.
    """
    scored = torch.ones_like(rewards, dtype=torch.bool) if scored is None else scored
    count = scored.sum(-1, keepdim=True)
    return _centred(rewards, scored) * (count / (count - 1).clamp(min=1))


def against_others(penalty: torch.Tensor, scored: torch.Tensor) -> torch.Tensor:
    """Subtracts from a penalty (..., K) the mean of the others along the last dimension; nothing if there are none.

    Without this baseline the gradient would be as strong but noisier; a mean that includes the entry would weaken it.
    """
    is_alone = scored & (scored.sum(-1, keepdim=True) == 1)
    return torch.where(is_alone, penalty, leave_one_out(penalty, scored))


def _centred(rewards: torch.Tensor, scored: torch.Tensor) -> torch.Tensor:
    """Subtracts the mean of the scored rewards along the last dimension; returns 0 for entries not scored.

    Exactly 0 if all are equal: Adam would turn the rounding error of 0.1 into a full step.
    """
    first = scored.int().argmax(-1, keepdim=True)
    shifted = torch.where(scored, rewards - rewards.gather(-1, first), 0.0)
    mean = shifted.sum(-1, keepdim=True) / scored.sum(-1, keepdim=True).clamp(min=1)
    return torch.where(scored, shifted - mean, 0.0)


STD_FLOOR = 1e-4  # added to a standard deviation, as in GRPO's implementations


def group_advantages(
    kind: str, rewards: torch.Tensor, scored: torch.Tensor, penalty: torch.Tensor | None = None
) -> torch.Tensor:
    """Returns advantages of G groups of K answers to one prompt each, (G, K); 0 for entries not `scored` (bool).

    group_std      (r - mean of the group) / its standard deviation (GRPO, arXiv 2402.03300). With large groups and
                   binary rewards this weights a prompt by 1 / sqrt(p (1 - p)); with K = 8 hardly (c = 1.7 to 2.4)
    group          r - mean of the group (Dr.GRPO, arXiv 2503.20783)
    batch_std      the same, divided by the standard deviation over all groups (arXiv 2508.08221)
    leave_one_out  r - mean of the others: K / (K - 1) of `group`, and unbiased (RLOO, arXiv 2402.14740)
    none           the reward itself

    Standard deviations use Bessel's correction. A group of equal rewards gets exactly 0. `penalty` (G, K), the KL in
    the reward, is subtracted afterwards: divided by the deviation of such a group, its noise would look like rewards.
    """
    if penalty is not None:
        off = penalty if kind == "none" else against_others(penalty, scored)
        return torch.where(scored, group_advantages(kind, rewards, scored) - off, 0.0)
    if kind == "none":
        return torch.where(scored, rewards, 0.0)
    if kind == "leave_one_out":
        return leave_one_out(rewards, scored)
    centred = _centred(rewards, scored)
    if kind == "group":
        return centred
    if kind == "group_std":
        count = scored.sum(-1, keepdim=True)
        return centred / (((centred**2).sum(-1, keepdim=True) / (count - 1).clamp(min=1)).sqrt() + STD_FLOOR)
    if kind == "batch_std":
        everything = rewards[scored]
        return centred / ((everything.std() if len(everything) > 1 else 0.0) + STD_FLOOR)
    raise ValueError(f"unknown advantage '{kind}'")


def length_weights(norm: str, lengths: torch.Tensor, max_new_tokens: int, all_lengths: torch.Tensor) -> torch.Tensor:
    """Returns token weights per sample, (B,), that turn a sum over samples and tokens into a mean over samples.

    sequence: 1/|y|. constant: 1/max_new_tokens, the only one whose gradient does not change when a constant is added
    to the reward (Dr.GRPO, arXiv 2503.20783); two attempts must share this number, or their gradients are not those of
    the sum of their rewards. budget: 1 over the budget of this attempt. token: every token of the step counts the same
    (DAPO, arXiv 2503.14476); `all_lengths` holds the lengths of all samples of the step, over all processes, 0 for a
    sample that is not trained on.
    """
    if norm == "sequence":
        return 1.0 / lengths.clamp(min=1)
    if norm in ("constant", "budget"):
        return torch.full_like(lengths, 1.0 / max_new_tokens, dtype=torch.float32)
    if norm == "token":
        return torch.full_like(lengths, 1.0, dtype=torch.float32) * len(all_lengths) / all_lengths.sum().clamp(min=1)
    raise ValueError(f"unknown length_norm '{norm}'")


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
        before, total = before_mine(len(is_paid), accelerator)
        drawn = torch.rand(total, generator=generator, device=device)[before:][: len(is_paid)] < kl_sample
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
    before = before_mine(len(used), accelerator)[0]  # the same minibatches whatever the number of processes
    # a stride: what was added later stands last
    parts = [used[(part - before) % minibatches :: minibatches] for part in range(minibatches)]
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
