"""First and second attempts of a batch of prompts, judged; and the token sequences that training scores.

A tree: P prompts x K1 first attempts x K2 revisions of each. Rollouts are listed prompt by prompt, attempt by attempt,
so a flat list of rewards reshapes to (P, K1, K2).
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import torch

from lib.clock import phase
from lib.errors import OutOfMemory
from lib.generators import Completion, Path, Turn, native
from lib.memory import one_error
from lib.model import Inputs, Policy
from lib.prompts import SecondPrompt, TwoTurnPrompts
from lib.rewards import Judge, Score


@dataclass(frozen=True)
class Rollout:
    """One leaf of the tree: a prompt, its first attempt and one revision of that."""

    row: dict
    prompt1: list[int]
    y1: Completion
    prompt2: SecondPrompt
    y2: Completion
    text1: str
    text2: str
    score1: Score
    score2: Score
    revision: int  # 0 .. K2 - 1
    y1_by_base: bool = False  # the reference model wrote y1: context only, never trained


@dataclass(frozen=True)
class Sampling:
    """Sampling settings of a batch. `y1_by_base`: the share of prompts whose first attempts the reference writes."""

    temperature: float
    max_new_tokens: tuple[int, int]
    stop_ids: frozenset[int]
    pad_id: int
    batch_size: int | None = None  # completions decoded at once, at most; None: what memory allows
    attempts: int = 1  # K1
    revisions: int = 1  # K2
    y1_by_base: float = 0.0


def two_attempts(
    policy: Policy,
    prompts: TwoTurnPrompts,
    rows: list[dict],
    judge: Judge,
    sampling: Sampling,
    generator: torch.Generator,
    on_written: Callable[[], None] = lambda: None,
) -> list[Rollout]:
    """Samples and judges P x K1 x K2 rollouts of the rows, in that order; calls `on_written` after each completion."""
    from_base = round(len(rows) * sampling.y1_by_base)  # the sampler shuffles, so the first rows are as good as any
    owners = [row for row in rows for _ in range(sampling.attempts)]
    first_prompts, firsts, second_prompts, seconds = _sampled(
        policy, prompts, rows, sampling, from_base, generator, _early(judge, prompts, rows, on_written)
    )
    leaves = [i for i in range(len(owners)) for _ in range(sampling.revisions)]

    texts1, scores1 = verdicts(prompts, judge, firsts, owners)
    texts2, scores2 = verdicts(prompts, judge, seconds, [owners[i] for i in leaves])
    return [
        Rollout(
            row=owners[i],
            prompt1=first_prompts[i],
            y1=firsts[i],
            prompt2=second_prompts[i],
            y2=seconds[leaf],
            text1=texts1[i],
            text2=texts2[leaf],
            score1=scores1[i],
            score2=scores2[leaf],
            revision=leaf % sampling.revisions,
            y1_by_base=i < from_base * sampling.attempts,
        )
        for leaf, i in enumerate(leaves)
    ]


def verdicts(
    prompts: TwoTurnPrompts, judge: Judge, completions: list[Completion], rows: list[dict]
) -> tuple[list[str], list[Score]]:
    """Returns the texts of completions, each written for the row at its index, and their scores."""
    texts = [prompts.text(completion) for completion in completions]
    questions = [prompts.question(row) for row in rows]
    with phase("reward"):
        return texts, judge.verdicts(texts, rows, questions)


def second_attempts(
    policy: Policy,
    prompts: TwoTurnPrompts,
    rows: list[dict],
    firsts: list[Completion],
    sampling: Sampling,
    generator: torch.Generator,
) -> list[Completion]:
    """Samples one second attempt for each row, after the first attempt at its index, by whichever model."""
    budget = sampling.max_new_tokens[1]
    contexts = [prompts.second(row, prompts.first(row), first).ids for row, first in zip(rows, firsts, strict=True)]
    decoding = native.Decoding(
        temperature=sampling.temperature,
        stop_ids=sampling.stop_ids,
        pad_id=sampling.pad_id,
        rows=min(len(rows), sampling.batch_size or len(rows)),
        columns=max(map(len, contexts)) + budget,
        seed=int(torch.randint(2**62, (), generator=generator, device=generator.device)),
    )
    with memory_explained(decoding):
        written = native.generate(policy, {(i,): Turn(ids, budget) for i, ids in enumerate(contexts)}, decoding)
    return [written[(i, 0)] for i in range(len(rows))]


def _early(
    judge: Judge, prompts: TwoTurnPrompts, rows: list[dict], on_written: Callable[[], None]
) -> Callable[[int, Completion], None]:
    """Returns a callback that lets a reward in other processes begin while the model still writes other completions."""

    def begin(row: int, completion: Completion) -> None:
        on_written()
        if judge.begin is not None:
            judge.begin(prompts.text(completion), rows[row])

    return begin


def _sampled(
    policy: Policy,
    prompts: TwoTurnPrompts,
    rows: list[dict],
    sampling: Sampling,
    from_base: int,
    generator: torch.Generator,
    on_written: Callable[[int, Completion], None],
) -> tuple[list[list[int]], list[Completion], list[SecondPrompt], list[Completion]]:
    """Returns first prompts and first attempts (P x K1), second prompts (P x K1), second attempts (P x K1 x K2).

    The reference writes the first attempts of the first `from_base` rows. `on_written` gets the index of the row and
    the completion as soon as it is finished.
    """
    k1, k2 = sampling.attempts, sampling.revisions
    new1, new2 = sampling.max_new_tokens
    turns = {(i,): Turn(prompts.first(row), new1, k1) for i, row in enumerate(rows)}
    longest_first = max(len(turn.ids) for turn in turns.values()) + new1
    leaves = len(rows) * k1 * k2
    decoding = native.Decoding(
        temperature=sampling.temperature,
        stop_ids=sampling.stop_ids,
        pad_id=sampling.pad_id,
        rows=min(leaves, sampling.batch_size or leaves),
        columns=max(longest_first, prompts.longest_second(longest_first) + new2),
        seed=int(torch.randint(2**62, (), generator=generator, device=generator.device)),
    )
    second_prompts: dict[Path, SecondPrompt] = {}

    def second_turn(path: Path, completion: Completion) -> Turn | None:
        on_written(path[0], completion)
        if len(path) == 3:  # (row, attempt, revision): the conversation is over
            return None
        second_prompts[path] = prompts.second(rows[path[0]], turns[path[:1]].ids, completion)
        return Turn(second_prompts[path].ids, new2, k2)

    by_base: dict[Path, Completion] = {}
    with memory_explained(decoding):
        if from_base:
            with policy.reference_mode():
                by_base = native.generate(policy, {path: turns[path] for path in list(turns)[:from_base]}, decoding)
        asked = {path: second_turn(path, completion) for path, completion in by_base.items()}
        asked |= {path: turns[path] for path in list(turns)[from_base:]}
        written = by_base | native.generate(policy, asked, decoding, second_turn)
    paths = [(i, attempt) for i in range(len(rows)) for attempt in range(k1)]
    firsts = [written[path] for path in paths]
    seconds = [written[(*path, revision)] for path in paths for revision in range(k2)]
    first_prompts = [turns[path[:1]].ids for path in paths]
    return first_prompts, firsts, [second_prompts[path] for path in paths], seconds


@contextlib.contextmanager
def memory_explained(decoding: native.Decoding) -> Iterator[None]:
    """Raises OutOfMemory where sampling runs out of memory, with a message that names the settings to lower."""
    try:
        with one_error():
            yield
    except torch.OutOfMemoryError as error:
        raise OutOfMemory(
            f"out of memory while sampling {decoding.rows} completions of up to {decoding.columns} tokens: lower "
            "generation.batch_size or the budgets of new tokens in generation"
        ) from error


@dataclass(frozen=True)
class Span:
    """The tokens of one attempt, and the positions in a sequence whose hidden states predict them."""

    ids: list[int]
    before: int  # the position that predicts the first token
    start: int  # the position of the first token, which predicts the second one, and so on
    attempt: int  # 1 or 2
    rollout: int  # index into the list of rollouts


@dataclass(frozen=True)
class Sequence:
    """Token ids of one forward: a trunk, then branches that all continue the trunk and do not see each other.

    A chat without alternatives is a trunk alone. The last token of an attempt predicts nothing, and is left out where
    nothing follows it.
    """

    ids: list[int]
    trunk: int  # tokens of the trunk
    branches: tuple[int, ...]  # tokens of each branch
    spans: tuple[Span, ...]


def sequences(
    rollouts: list[Rollout],
    pays: Callable[[int, list[int]], bool] = lambda trunk, branches: False,
    is_learned: Callable[[int, int], bool] = lambda attempt, rollout: True,
) -> list[Sequence]:
    """Builds `[x | y1 | retry | y2]` of each rollout: by causality one forward gives the log-probs of both attempts.

    Where it pays, all revisions of a first attempt branch off one `[x | y1 | retry]`; otherwise y1 is trained in the
    first of their sequences only. Where attempt 2 does not continue the sampled ids (another history mode, or a cut
    context), the two attempts are two sequences. Attempts for which `is_learned(attempt, rollout)` is false have no
    gradient, and are included only as context of others.
    """
    result: list[Sequence] = []
    starts = [i for i, rollout in enumerate(rollouts) if rollout.revision == 0]
    for start, stop in zip(starts, [*starts[1:], len(rollouts)], strict=True):
        first, second = rollouts[start], rollouts[start].prompt2
        answers = [(i, rollouts[i].y2.ids) for i in range(start, stop) if is_learned(2, i)]
        spans1: tuple[Span, ...] = ()
        if not first.y1_by_base and is_learned(1, start):
            begin = len(first.prompt1)
            spans1 = (Span(first.y1.ids, begin - 1, begin, 1, start),)
            if not second.continues or not answers:
                ids = first.prompt1 + first.y1.ids[:-1]
                result.append(Sequence(ids, len(ids), (), spans1))
                spans1 = ()
        result += sequences_of(second.ids, answers, 2, pays, spans1)
    return result


def sequences_of(
    prompt: list[int], answers: list[tuple[int, list[int]]], attempt: int, pays: Callable[[int, list[int]], bool],
    spans: tuple[Span, ...] = (),
) -> list[Sequence]:  # fmt: skip
    """Builds `[prompt | answer]` for numbered answers to one prompt; `spans` of the prompt are trained once.

    Where `pays(tokens of the trunk, tokens of each branch)` says that it is cheaper, all branch off one prompt.
    """
    trunk, lengths = len(prompt), [len(ids) - 1 for _, ids in answers]
    if len(answers) > 1 and pays(trunk, lengths):
        starts = [trunk + sum(lengths[:k]) for k in range(len(answers))]
        branches = [Span(ids, trunk - 1, start, attempt, i) for start, (i, ids) in zip(starts, answers, strict=True)]
        together = prompt + [token for _, ids in answers for token in ids[:-1]]
        return [Sequence(together, trunk, tuple(lengths), (*spans, *branches))]
    result = []
    for i, ids in answers:
        whole = prompt + ids[:-1]
        result.append(Sequence(whole, len(whole), (), (*spans, Span(ids, trunk - 1, trunk, attempt, i))))
        spans = ()
    return result


@dataclass(frozen=True)
class MicroBatch:
    """Sequences padded on the right to the longest of them, and their N scored tokens, row by row."""

    inputs: Inputs
    attempt: torch.Tensor  # (N,) 1 or 2
    rollout: torch.Tensor  # (N,) index of its rollout
    token: torch.Tensor  # (N,) its number within the attempt


def micro_batches(items: list[Sequence], tokens: int, pad_id: int, device: torch.device) -> Iterator[MicroBatch]:
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


def _packed(rows: list[Sequence], width: int, pad_id: int, device: torch.device) -> MicroBatch:
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
        attempt=tensor(span.attempt for _, span in spans).repeat_interleave(lengths),
        rollout=tensor(span.rollout for _, span in spans).repeat_interleave(lengths),
        token=within,
    )
