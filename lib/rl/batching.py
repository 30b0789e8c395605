"""Trees of answers as token sequences to score, packed into micro-batches: by causality, one forward scores a path."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate, chain

import torch
from accelerate import Accelerator

from lib.model.policy import Inputs
from lib.rl.tree import Node
from lib.run.distributed import highest


@dataclass(frozen=True)
class Span:
    """The tokens of one answer, and the positions in a sequence whose hidden states predict them."""

    ids: list[int]
    before: int  # the position that predicts the first token
    start: int  # the position of the first token, which predicts the second one, and so on
    answer: int  # its number among the answers of the step


@dataclass(frozen=True)
class PackedSequence:
    """Token ids of one forward: a trunk, then branches that all continue the trunk and do not see each other.

    A chat without alternatives is a trunk alone. An answer's last token is left out where nothing follows it.
    """

    ids: list[int]
    trunk: int  # tokens of the trunk
    branches: tuple[int, ...]  # tokens of each branch
    spans: tuple[Span, ...]


def sequences(
    nodes: list[Node],
    is_learned: Callable[[int], bool] = lambda answer: True,
    should_share: Callable[[int, list[int]], bool] = lambda trunk, branches: False,
) -> list[PackedSequence]:
    """Builds `[x | y1 | retry | y2]`, or `[x | y1]` where nothing follows, so that each learned answer is scored once.

    An answer that is continued is scored in the first sequence that continues it; where the next prompt does not
    continue the sampled ids (another history mode, or a cut context), both have sequences of their own. Where
    `should_share(tokens of the trunk, tokens of each branch)` is true, answers to one prompt branch off one copy of it.
    Answers for which `is_learned(number)` is false have no gradient; they may be context of others.
    """
    following = {node.parent: node for node in nodes if node.parent is not None}
    result: list[PackedSequence] = []

    def is_read(node: Node | None) -> bool:
        """True if a sequence holds the prompt of a group, and with it the answer that it continues."""
        if node is None or not node.group.prompt.continues:
            return False
        return any(is_learned(number) or is_read(following.get(number)) for number in node.numbers)

    def add(node: Node, spans: tuple[Span, ...]) -> None:
        """Adds the sequences of a group and of all that follow it; the first one trains `spans` of its prompt too."""
        prompt, alone = node.group.prompt.ids, []
        for number, answer in zip(node.numbers, node.group.answers, strict=True):
            ids, after = answer.completion.ids, following.get(number)
            span = (Span(ids, len(prompt) - 1, len(prompt), number),) if is_learned(number) else ()
            if is_read(after):
                add(after, spans + span)
                spans = ()
            else:
                alone += span
                if after:
                    add(after, ())
        result.extend(_alone(prompt, alone, should_share, spans))

    for node in nodes:
        if node.parent is None:
            add(node, ())
    return result


def _alone(
    prompt: list[int], answers: list[Span], should_share: Callable[[int, list[int]], bool], spans: tuple[Span, ...]
) -> list[PackedSequence]:
    """Builds `[prompt | answer]` of answers that nothing continues; `spans` of the prompt are trained once."""
    trunk, lengths = len(prompt), [len(answer.ids) - 1 for answer in answers]
    if len(answers) > 1 and should_share(trunk, lengths):
        starts = accumulate(lengths, initial=trunk)
        branches = [replace(answer, start=start) for answer, start in zip(answers, starts, strict=False)]
        together = prompt + [token for answer in answers for token in answer.ids[:-1]]
        return [PackedSequence(together, trunk, tuple(lengths), (*spans, *branches))]
    wholes = [prompt + answer.ids[:-1] for answer in answers]
    return [
        PackedSequence(whole, len(whole), (), (*(() if i else spans), answer))
        for i, (whole, answer) in enumerate(zip(wholes, answers, strict=True))
    ]


@dataclass(frozen=True)
class MicroBatch:
    """Sequences padded on the right to the longest of them, and their N scored tokens, row by row."""

    inputs: Inputs
    answer: torch.Tensor  # (N,) the number of its answer
    token: torch.Tensor  # (N,) its number within the answer


def micro_batches(items: list[PackedSequence], tokens: int, pad_id: int, device: torch.device) -> Iterator[MicroBatch]:
    """Yields as many sequences at a time as fit into `tokens` once padded, or a single longer one.

    Sequences of similar length come together, and the batch with most tokens comes first: if memory does not suffice,
    the first forward of the step fails.
    """
    ordered = sorted(items, key=lambda item: -len(item.ids))
    batches = []
    while ordered:
        count = max(1, tokens // len(ordered[0].ids))
        batches.append(ordered[:count])
        ordered = ordered[count:]
    for rows in sorted(batches, key=lambda rows: -len(rows) * len(rows[0].ids)):
        yield _packed(rows, len(rows[0].ids), pad_id, device)


def evened(
    batches: Iterable[MicroBatch], pad_id: int, device: torch.device, accelerator: Accelerator
) -> Iterator[MicroBatch]:
    """Yields the micro-batches, and empty ones until all processes have had as many."""
    local = list(batches)
    missing = highest(len(local), accelerator) - len(local)  # before the first: then all compute together
    empty = torch.zeros(0, dtype=torch.long, device=device)
    ids = torch.full((1, 1), pad_id, device=device)
    yield from local
    for _ in range(missing):
        yield MicroBatch(Inputs(ids, torch.zeros_like(ids), empty, empty), empty, empty)


def _packed(rows: list[PackedSequence], width: int, pad_id: int, device: torch.device) -> MicroBatch:
    ids, positions, branch = [], [], []  # branch 0: trunk and padding
    for row in rows:
        padding = width - len(row.ids)
        ids.append(row.ids + [pad_id] * padding)
        at, number = list(range(row.trunk)), [0] * row.trunk
        for index, length in enumerate(row.branches, start=1):
            at += range(row.trunk, row.trunk + length)
            number += [index] * length
        positions.append(at + [0] * padding)
        branch.append(number + [0] * padding)
    spans = [(index * width, span) for index, row in enumerate(rows) for span in row.spans]

    def tensor(values: Iterable) -> torch.Tensor:
        return torch.tensor(values if isinstance(values, list) else list(values), device=device)

    lengths = tensor(len(span.ids) for _, span in spans)
    before, start = tensor(at + span.before for at, span in spans), tensor(at + span.start for at, span in spans)
    ends = lengths.cumsum(0)
    within = torch.arange(int(ends[-1]), device=device) - (ends - lengths).repeat_interleave(lengths)
    predictors = start.repeat_interleave(lengths) + within - 1
    predictors[ends - lengths] = before  # a branch's first token is predicted at the end of the trunk
    return MicroBatch(
        Inputs(
            ids=tensor(ids),
            positions=tensor(positions),
            branch=tensor(branch) if any(row.branches for row in rows) else None,
            trunk=min(row.trunk for row in rows),
            predictors=predictors,
            targets=tensor(chain.from_iterable(span.ids for _, span in spans)),
        ),
        answer=tensor(span.answer for _, span in spans).repeat_interleave(lengths),
        token=within,
    )
