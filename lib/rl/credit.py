"""Credit assignment: the advantage of each answer of a step, the weights of its tokens, and which have a gradient.

`credit_of` makes the columns of a step, `with_token_weights` those of its tokens. What only some configs want, such as
minibatches or a teacher, is a function from credit to credit that these configs add.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import pstdev
from typing import Any, NamedTuple

import torch
from accelerate import Accelerator

from lib.rl.batching import MicroBatch
from lib.rl.tree import Answer, Node
from lib.run.distributed import before_mine, collect

SMALLEST_SPREAD = 1e-6  # of advantages: less is rounding
STD_FLOOR = 1e-4  # added to a standard deviation, as in GRPO's implementations


@dataclass(frozen=True)
class Credit:
    """The n answers of a step as columns, (n,) each, numbered by `lib.rl.tree.nodes`: the factors of their loss."""

    nodes: list[Node]
    tree: torch.Tensor  # index of its tree
    turn: torch.Tensor  # of the policy in its chat, from 1
    length: torch.Tensor  # tokens
    counts: torch.Tensor  # bool: in the loss, that is judged, not masked, and written by the policy now
    advantage: torch.Tensor
    kl_weight: torch.Tensor  # of the KL in the loss
    weight: torch.Tensor  # of its tokens, in the whole loss
    teacher_weight: torch.Tensor  # of the KL to a teacher in the loss
    importance: torch.Tensor  # 1 over the probability with which an answer was drawn for the KL; 0 if it was dropped.
    # `weight` has it already: it multiplies again only what is logged as a mean
    in_means: torch.Tensor  # bool: its tree is in the means over the step
    sampled_logp: torch.Tensor  # (tokens of all answers,) log-probs from the sampler
    parts: list[list[Node]]  # the groups of each minibatch
    divisor: float = 1.0  # last answers of full trees per optimizer step, over all processes

    @cached_property
    def start(self) -> torch.Tensor:
        """Returns the offset of each answer's tokens in `sampled_logp`, (n,)."""
        return self.length.cumsum(0) - self.length

    @property
    def has_signal(self) -> torch.Tensor:
        """True for each answer that has an advantage or a teacher, (n,) bool; others have a KL at most."""
        return (self.advantage != 0) | (self.teacher_weight != 0)

    @cached_property
    def learned(self) -> list[bool]:
        """True for each answer that has a gradient; the others need no forward."""
        return (self.counts & (self.has_signal | (self.kl_weight != 0)) & (self.importance > 0)).tolist()

    def tokens_of(self, batch: MicroBatch) -> torch.Tensor:
        """Returns the indices of a micro-batch's tokens in the concatenation of all answers' tokens, (N,)."""
        return self.start[batch.answer] + batch.token

    def notes(self) -> dict[int, dict[str, Any]]:
        """Returns the fields of generations.jsonl with each answer's advantage, by the `id()` of its completion."""
        answers = [answer for node in self.nodes for answer in node.group.answers]
        advantages = zip(answers, self.advantage.tolist(), strict=True)
        return {id(answer.completion): {"advantage": round(advantage, 5)} for answer, advantage in advantages}

    def learned_in(self, part: list[Node]) -> list[int]:
        """Returns the numbers of a minibatch's answers that have a gradient."""
        return [number for node in part for number in node.numbers if self.learned[number]]


def is_counted(answer: Answer, mask_truncated: bool) -> bool:
    """True if an answer counts: it was judged, and not truncated if `mask_truncated` is on."""
    return answer.verdict.scored and (answer.completion.finished or not mask_truncated)


def overlong_penalty(length: int, budget: int, buffer: int) -> float:
    """Returns 0 up to `budget - buffer` tokens, falling linearly to -1 at `budget` (DAPO, arXiv 2503.14476, eq. 13)."""
    return min(0.0, max(-1.0, (budget - buffer - length) / buffer)) if buffer else 0.0


def chains_of(nodes: list[Node]) -> torch.Tensor:
    """Returns for each answer, (n,), which of the first answers it goes back to, counted from 0."""
    first: list[int] = []  # by number: the number of that first answer
    for node in nodes:
        first += [number if node.parent is None else first[node.parent] for number in node.numbers]
    return torch.tensor(first).unique(return_inverse=True)[1]


# -- advantages


class Peers(NamedTuple):
    """Which answers are compared with each other: those of one set, a turn and the number of its first answer."""

    sets: list[tuple[int, int]]  # by number of the answer
    stand_ins: list[tuple[int, int, int]]  # a set, and the last attempt of a chat that stopped before


def peers_of(nodes: list[Node], turns: int = 1, followed: int | None = None) -> Peers:
    """Returns the sets of answers that are compared with each other: those of a group.

    A group of one answer is compared with its siblings, the groups of one answer that follow answers of the same group.
    Where the chat of a sibling stopped, what stands at its end takes part: with nothing in its place, an answer whose
    siblings all stopped would have no advantage, and the expected gradient would be smaller by the chance of that. It
    may take part since it does not depend on the answer. No more than `followed` first answers of a tree go on; the
    others did not stop.
    """
    owner = {number: node for node in nodes for number in node.numbers}
    parents = {node.parent for node in nodes}
    peers = Peers([], [])
    for node in nodes:
        above = node
        while len(above.numbers) == 1 and above.parent is not None:
            above = owner[above.parent]
        first = above.numbers.start
        peers.sets.extend((node.turn, first) for _ in node.numbers)
        goes_on = node.numbers[:followed] if node.parent is None else node.numbers
        ends = [number if node.is_attempt else node.parent for number in goes_on if number not in parents]
        # a chat that ends here stands in at all later turns, in the set of the nearest group of several above it
        peers.stand_ins.extend((turn, first, end) for turn in range(node.turn + 1, turns + 1) for end in ends)
    return peers


def advantages_of(
    kind: str, peers: Peers, rewards: list[float], counts: list[bool], accelerator: Accelerator,
    penalties: list[float] | None = None, standing: Sequence[float | None] = (),
) -> list[float]:  # fmt: skip
    """Computes advantages by number of the answer (`group_advantages`).

    `rewards`, `counts` and `penalties`, the KL in the rewards, are by number; an answer that does not count gets 0 and
    is in no mean. `standing`: the reward of each of the attempts that ended, None without a verdict. For `batch`, all
    answers of a turn on all processes are one set.
    """
    penalty = penalties or [0.0] * len(rewards)
    ends = [number for *_, number in peers.stand_ins]
    columns = zip(
        [*peers.sets, *((turn, first) for turn, first, _ in peers.stand_ins)],
        [*rewards, *(reward or 0.0 for reward in standing)],
        [*counts, *(reward is not None for reward in standing)],
        [*penalty, *(penalty[number] for number in ends)],
        strict=True,
    )
    rank = accelerator.process_index
    local = [((turn,) if kind == "batch" else (turn, first, rank), *row) for (turn, first), *row in columns]
    # a baseline must not depend on how prompts are distributed over processes
    every, before = collect(local, accelerator), before_mine(len(local), accelerator)[0]
    if not every:
        return []
    keys, *values = zip(*every, strict=True)
    number = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    reward, count, off = map(torch.tensor, values)
    sets = torch.tensor([number[key] for key in keys])
    return group_advantages(kind, reward, count, sets, off if penalties else None)[before:][: len(rewards)].tolist()


def sum_by(values: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Sums values (n,) by their index (n,), from 0 to the highest."""
    size = int(index.max()) + 1 if len(index) else 0
    return torch.zeros(size, dtype=values.dtype, device=values.device).index_add(0, index, values)


def leave_one_out(values: torch.Tensor, counts: torch.Tensor, sets: torch.Tensor) -> torch.Tensor:
    """Returns advantages r_i - mean of the others in a set, (n,) (RLOO, arXiv 2402.14740).

    Values that do not count (bool, (n,)) get 0 and are in no mean. The only one of a set that counts gets 0 too.
    """
    # r_i - mean of the others = K / (K - 1) * (r_i - mean of all)
    count = sum_by(counts.to(values.dtype), sets)[sets]
    return centred(values, counts, sets) * (count / (count - 1).clamp(min=1))


def centred(values: torch.Tensor, counts: torch.Tensor, sets: torch.Tensor) -> torch.Tensor:
    """Subtracts from values (n,) the mean of those of their set that count; returns 0 for what does not count.

    Exactly 0 if all are equal: Adam would turn the rounding error of 0.1 into a full step.
    """
    lowest = torch.full_like(values, -torch.inf)  # there are no more sets than values
    top = lowest.scatter_reduce(0, sets, values.where(counts, -torch.inf), "amax")[sets]
    shifted = torch.where(counts, values - top, 0.0)  # equal values are exactly 0 from here on
    mean = sum_by(shifted, sets) / sum_by(counts.to(values.dtype), sets).clamp(min=1)
    return torch.where(counts, shifted - mean[sets], 0.0)


def group_advantages(
    kind: str, rewards: torch.Tensor, counts: torch.Tensor, sets: torch.Tensor, penalty: torch.Tensor | None = None
) -> torch.Tensor:
    """Returns advantages of n answers, (n,), each compared with those of its set, whose number is in `sets`.

    group_std      (r - mean of the group) / its standard deviation (GRPO, arXiv 2402.03300). With large groups and
                   binary rewards this weights a prompt by 1 / sqrt(p (1 - p)); with K = 8 hardly (c = 1.7 to 2.4)
    group          r - mean of the group (Dr.GRPO, arXiv 2503.20783)
    batch_std      the same, divided by the standard deviation over all groups (arXiv 2508.08221)
    leave_one_out  r - mean of the others: K / (K - 1) of `group`, and unbiased (RLOO, arXiv 2402.14740)
    batch          the same in a set of all answers
    none           the reward itself

    Standard deviations use Bessel's correction. A group of equal rewards gets exactly 0, as does an answer that
    does not count (bool, (n,)). `penalty` (n,), the KL in the reward, is subtracted afterwards: divided by the
    deviation of such a group, its noise would look like rewards. The mean penalty of the others is its baseline, where
    there are others: without it the gradient would be as strong but noisier, and a mean that includes the answer itself
    would weaken it.
    """
    if penalty is not None:
        is_alone = counts & (sum_by(counts.long(), sets)[sets] == 1)
        is_plain = is_alone | (kind == "none")
        off = torch.where(is_plain, penalty, leave_one_out(penalty, counts, sets))
        return torch.where(counts, group_advantages(kind, rewards, counts, sets) - off, 0.0)
    if kind == "none":
        return torch.where(counts, rewards, 0.0)
    if kind in ("leave_one_out", "batch"):
        return leave_one_out(rewards, counts, sets)
    values = centred(rewards, counts, sets)
    if kind == "group":
        return values
    if kind == "group_std":
        variance = sum_by(values**2, sets) / (sum_by(counts.to(values.dtype), sets) - 1).clamp(min=1)
        return values / (variance.sqrt() + STD_FLOOR)[sets]
    if kind == "batch_std":
        everything = rewards[counts]
        return values / ((everything.std() if len(everything) > 1 else 0.0) + STD_FLOOR)
    raise ValueError(f"unknown advantage '{kind}'")


# -- credit


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
    if norm == "token":  # 1 / mean |y|: the caller's mean over samples is then one over tokens
        return torch.full_like(lengths, 1.0, dtype=torch.float32) * len(all_lengths) / all_lengths.sum().clamp(min=1)
    raise ValueError(f"unknown length_norm '{norm}'")


def credit_of(
    nodes: list[Node], advantage: list[float], counts: list[bool], kl_weights: tuple[float, ...], device: torch.device
) -> Credit:
    """Returns the columns of a step in which every answer that counts weighs 1, for one optimizer step.

    `advantage` and `counts` are by number of the answer, `kl_weights` by turn.
    """
    answers = [(node, answer.completion) for node in nodes for answer in node.group.answers]

    def column(values: Iterable, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.tensor(list(values), dtype=dtype, device=device)

    turn = column((node.turn for node, _ in answers), torch.long)
    return Credit(
        nodes=nodes,
        tree=column((node.tree for node, _ in answers), torch.long),
        turn=turn,
        length=column((len(completion.ids) for _, completion in answers), torch.long),
        counts=column(counts, torch.bool),
        advantage=column(advantage),
        kl_weight=column((0.0, *kl_weights))[turn],
        weight=column(counts),
        teacher_weight=column([0.0] * len(answers)),
        importance=column([1.0] * len(answers)),
        in_means=column([True] * len(answers), torch.bool),
        sampled_logp=column(logp for _, completion in answers for logp in completion.logps),
        parts=[nodes],
    )


def with_token_weights(
    credit: Credit, norm: str, budgets: tuple[int, ...], accelerator: Accelerator, below: tuple[int, ...] = (1,),
    by_turn: bool = True,
) -> Credit:  # fmt: skip
    """Sets `weight`, the length weight of tokens times the last answers below, and `divisor`, the last answers of all.

    `budgets`, in tokens, and `below`, the last answers below an answer of a full tree, are by turn. An answer weighs as
    much where nothing follows it: if a right attempt that ends its chat weighed less than a wrong one, the gradient
    would be biased. `by_turn`: `token` makes tokens of a turn count the same; else those of all turns.
    """
    # an attempt 1 counts once for each of its K2 revisions, as if every pair had been sampled alone: the loss is
    # 1 / (P K1 K2) times the sum over answers of `below` * length weight * loss of the answer
    weight = torch.zeros_like(credit.weight)
    for turn, (budget, leaves) in enumerate(zip(budgets, below, strict=True), start=1):
        in_turn = credit.turn == turn
        alike = credit.in_means & in_turn if by_turn else credit.in_means
        lengths = collect((credit.length * credit.counts)[alike].tolist(), accelerator)
        lengths = torch.tensor(lengths, dtype=weight.dtype, device=weight.device)
        weight[in_turn] = leaves * length_weights(norm, credit.length[in_turn], budget, lengths)
    roots = sum(collect([int((credit.in_means & (credit.turn == 1)).sum())], accelerator))
    if norm == "token" and not by_turn:
        weight *= roots / max(1, len(lengths))  # the divisor counts chats, while `token` has counted all their answers
    return replace(credit, weight=weight * credit.weight, divisor=float(max(1, below[0] * roots)))


# -- what some configs add to it


def scaled_by_role(credit: Credit, accelerator: Accelerator) -> Credit:
    """Divides advantages by the standard deviation of those of their role, attempts or reviews, on all processes."""
    advantage = credit.advantage.clone()
    is_attempt = torch.tensor([node.is_attempt for node in credit.nodes for _ in node.numbers], device=advantage.device)
    for of_role in (credit.counts & is_attempt, credit.counts & ~is_attempt):
        values = collect(advantage[of_role].tolist(), accelerator)
        spread = pstdev(values) if values else 0.0
        if spread > SMALLEST_SPREAD:
            advantage[of_role] /= spread
    return replace(credit, advantage=advantage)


def with_teacher(credit: Credit, weights: list[float], reward_weight: float) -> Credit:
    """Adds the weights of a KL to a teacher, by number of the answer, and weighs rewards against it."""
    teacher_weight = torch.tensor(weights, device=credit.weight.device)
    return replace(credit, advantage=reward_weight * credit.advantage, teacher_weight=teacher_weight)


def without_idle_trees(credit: Credit) -> Credit:
    """Excludes trees without a gradient from all means, since others were drawn in their place."""
    learned = torch.tensor(credit.learned, device=credit.tree.device)
    return replace(credit, in_means=(sum_by(learned.long(), credit.tree) > 0)[credit.tree])


def some_followed(credit: Credit, followed: int) -> Credit:
    """Weights the chats after `followed` first answers of a tree, at most, to stand for the others' as well."""
    firsts = sum_by((credit.turn == 1).float(), credit.tree)
    share = (firsts / firsts.clamp(min=1, max=followed))[credit.tree]
    return replace(credit, weight=torch.where(credit.turn == 1, 1.0, share) * credit.weight)


def kl_sampled(credit: Credit, share: float, generator: torch.Generator, accelerator: Accelerator) -> Credit:
    """Drops most of the answers that have only a KL term, first answers with all that follows them.

    That is a first answer without an advantage or a teacher, in itself and in what follows it. It is kept with
    probability `share` and weighted by its inverse (Horvitz and Thompson 1952), so the expected gradient is as before.
    """
    branch = chains_of(credit.nodes).to(credit.tree.device)
    is_paid = sum_by(credit.has_signal.long(), branch) > 0
    before, total = before_mine(len(is_paid), accelerator)
    drawn = torch.rand(total, generator=generator, device=branch.device)[before:][: len(is_paid)] < share
    importance = torch.where(is_paid, 1.0, drawn / share)[branch]
    return replace(credit, importance=importance, weight=credit.weight * importance)


def in_minibatches(credit: Credit, parts: int, accelerator: Accelerator) -> Credit:
    """Spreads the trees that have a gradient over `parts` optimizer steps."""
    used = sorted({node.tree for node in credit.nodes if credit.learned_in([node])})
    before = before_mine(len(used), accelerator)[0]  # the same minibatches whatever the number of processes
    # a stride: what was added later stands last
    trees = [set(used[(part - before) % parts :: parts]) for part in range(parts)]
    nodes = [[node for node in credit.nodes if node.tree in part] for part in trees]
    return replace(credit, parts=nodes, divisor=credit.divisor / parts)
