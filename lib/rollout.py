"""First and second attempts of a batch of prompts, judged; and the token sequences that training scores.

A tree: P prompts x K1 first attempts x K2 revisions of each. Rollouts are listed prompt by prompt, attempt by attempt,
so a flat list of rewards reshapes to (P, K1, K2).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from lib.errors import OutOfMemory
from lib.generators import Completion, native
from lib.model import Policy
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
    """How a batch is sampled. `y1_by_base`: this share of the prompts gets its first attempts from the reference."""

    temperature: float
    max_new_tokens: tuple[int, int]
    stop_ids: frozenset[int]
    pad_id: int
    batch_size: int
    attempts: int = 1  # K1
    revisions: int = 1  # K2
    y1_by_base: float = 0.0


def two_attempts(
    policy: Policy,
    prompts: TwoTurnPrompts,
    rows: list[dict],
    target_field: str,
    judge: Judge,
    sampling: Sampling,
    generator: torch.Generator,
) -> list[Rollout]:
    """Samples and judges P x K1 x K2 rollouts of the rows, in that order."""
    from_base = round(len(rows) * sampling.y1_by_base)  # the sampler shuffles, so the first rows are as good as any
    owners = [row for row in rows for _ in range(sampling.attempts)]
    first_prompts = [ids for row in rows for ids in [prompts.first(row)] * sampling.attempts]
    split = from_base * sampling.attempts

    def sample(ids: list[list[int]], attempt: int) -> list[Completion]:
        if not ids:
            return []
        try:
            with policy.generation_mode() as model:
                return native.generate(
                    model,
                    ids,
                    max_new_tokens=sampling.max_new_tokens[attempt - 1],
                    temperature=sampling.temperature,
                    stop_ids=sampling.stop_ids,
                    pad_id=sampling.pad_id,
                    generator=generator,
                    batch_size=sampling.batch_size,
                )
        except torch.OutOfMemoryError as error:
            raise OutOfMemory(
                f"out of memory while sampling attempt {attempt}: lower generation.batch_size = "
                f"{sampling.batch_size} or generation.max_new_tokens_attempt{attempt}"
            ) from error

    with policy.reference_mode():
        firsts = sample(first_prompts[:split], attempt=1)
    firsts += sample(first_prompts[split:], attempt=1)

    second_prompts = [prompts.second(*parts) for parts in zip(owners, first_prompts, firsts, strict=True)]
    leaves = [i for i in range(len(owners)) for _ in range(sampling.revisions)]
    seconds = sample([second_prompts[i].ids for i in leaves], attempt=2)

    def judged(completions: list[Completion], whose: list[dict]) -> tuple[list[str], list[Score]]:
        texts = [prompts.text(completion) for completion in completions]
        columns = {name: [row[name] for row in whose] for name in whose[0]}
        questions = [prompts.question(row) for row in whose]
        return texts, judge(texts, [row[target_field] for row in whose], columns, questions)

    texts1, scores1 = judged(firsts, owners)
    texts2, scores2 = judged(seconds, [owners[i] for i in leaves])
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
            y1_by_base=i < split,
        )
        for leaf, i in enumerate(leaves)
    ]


@dataclass(frozen=True)
class Sequence:
    """Token ids of one forward, and which attempt (1, 2, or 0 = not trained) each of them belongs to."""

    ids: list[int]
    attempt: list[int]
    rollout: int  # index into the list of rollouts


def sequences(rollouts: list[Rollout]) -> list[Sequence]:
    """`[x | y1 | retry | y2]` for each rollout: by causality one forward gives the log-probs of both attempts.

    y1 is shared by its revisions and marked in the first of them only. Where attempt 2 does not continue the sampled
    ids (another history mode, or a cut context), the two attempts are two sequences.
    """
    result: list[Sequence] = []
    for index, rollout in enumerate(rollouts):
        trains_y1 = rollout.revision == 0 and not rollout.y1_by_base
        x, y1, y2, second = rollout.prompt1, rollout.y1.ids, rollout.y2.ids, rollout.prompt2
        marks1 = [0] * len(x) + [int(trains_y1)] * len(y1)
        if second.continues:
            between = len(second.ids) - len(x) - len(y1)
            result.append(Sequence(second.ids + y2, marks1 + [0] * between + [2] * len(y2), index))
        else:
            if trains_y1:
                result.append(Sequence(x + y1, marks1, index))
            result.append(Sequence(second.ids + y2, [0] * len(second.ids) + [2] * len(y2), index))
    return result


@dataclass(frozen=True)
class MicroBatch:
    """Sequences padded on the right to the longest of them."""

    ids: torch.Tensor  # (B, T)
    mask: torch.Tensor  # (B, T), 1 where there is a token
    scored: torch.Tensor  # (B, T) bool, the tokens that are trained
    attempt: torch.Tensor  # (N,) 1 or 2, for every scored token, row by row
    rollout: torch.Tensor  # (N,) index of its rollout


def micro_batches(items: list[Sequence], size: int, pad_id: int, device: torch.device) -> Iterator[MicroBatch]:
    """`size` sequences at a time, longest first: if memory does not suffice, the first forward tells."""
    ordered = sorted(items, key=lambda item: -len(item.ids))
    for start in range(0, len(ordered), size):
        rows = ordered[start : start + size]
        width = len(rows[0].ids)
        ids = torch.tensor([row.ids + [pad_id] * (width - len(row.ids)) for row in rows], device=device)
        mask = torch.tensor([[1] * len(row.ids) + [0] * (width - len(row.ids)) for row in rows], device=device)
        marks = torch.tensor([row.attempt + [0] * (width - len(row.ids)) for row in rows], device=device)
        scored = marks > 0
        owner = torch.tensor([row.rollout for row in rows], device=device)[:, None].expand_as(marks)
        yield MicroBatch(ids, mask, scored, marks[scored], owner[scored])
