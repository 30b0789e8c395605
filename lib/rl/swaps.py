"""Does attempt 2 read attempt 1? It is sampled after the first attempt to another question, too.

    own      the policy's first attempt, with the attempt 2 that followed it
    other    what the policy wrote for the next question

An attempt 2 that solves the question again does as well after both; one that checks what it reads does not.
"""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator

from judge.parsing import unchanged
from lib.generators.reply_cache import key_of
from lib.model.policy import Policy
from lib.rewards.judge import Judge, Verdict
from lib.rl.corrections import CorrectionPrompts
from lib.rl.evaluation import ROWS_AT_ONCE, difference, group_of, rate
from lib.rl.tree import Answer, Group, Sampling, sample
from lib.run.distributed import collect

CONTEXTS = ("own", "other")
SPLITS = {"": None, "_own_wrong": False, "_own_right": True}  # of all questions, and by whether attempt 1 is right
SwapOutcome = tuple[bool, bool]  # whether attempt 2 is right, and whether it repeats the answer it read


def swap_attempts(
    policy: Policy,
    prompts: CorrectionPrompts,
    trees: list[Group],
    judge: Judge,
    sampling: Sampling,
    seed: int,
    accelerator: Accelerator,
) -> dict:
    """Returns a row of swaps.jsonl: accuracies of attempt 2 by the context it reads, intervals clustered by question.

    `trees` are this process's, one per question, with one revision of each first attempt. Other first attempts are
    taken from these, so the pairs of questions depend on the number of processes.
    """
    generator = torch.Generator(policy.device).manual_seed(seed + accelerator.process_index)
    firsts = [(tree.prompt, answer) for tree in trees for answer in tree.answers]
    samples = sampling.copies[0]
    others = [answer for _, answer in firsts[samples:] + firsts[:samples]] if len(trees) > 1 else []
    results = [{"own": _outcome(answer.following.answers[0].verdict, answer)} for _, answer in firsts]
    revising = replace(sampling, copies=(1,), max_new_tokens=sampling.max_new_tokens[1:2])
    for start in range(0, len(others), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        seconds = [
            prompts.next_prompt(prompt, other.completion)
            for (prompt, _), other in zip(firsts[part], others[part], strict=True)
        ]
        groups = sample(policy, prompts, seconds, judge, revising, generator)
        for result, other, group in zip(results[part], others[part], groups, strict=True):
            result["other"] = _outcome(group.answers[0].verdict, other)
    questions = collect([key_of(prompt.ids) for prompt, _ in firsts], accelerator)
    is_right = collect([answer.verdict.match for _, answer in firsts], accelerator)
    return summarise(questions, is_right, collect(results, accelerator), sampling.temperature)


def summarise(
    questions: Sequence[Hashable], is_right: list[bool], results: list[dict[str, SwapOutcome]], temperature: float
) -> dict:
    """Returns the row. The lists hold an entry per first attempt, over all processes.

    `questions`: what each answers; `is_right`: whether it is right; `results`: the outcomes of attempt 2, by context.
    """
    group, right = group_of(questions), np.array(is_right)
    row: dict[str, Any] = {"n": len(results), "prompts": int(group.max()) + 1, "temperature": temperature}
    row |= rate("acc_attempt1", right.astype(float), group)
    row["after"] = {}
    after_own = np.array([result["own"][0] for result in results], dtype=float)
    for name in CONTEXTS:
        there = np.array([name in result for result in results])
        match, repeats = (np.array([result.get(name, (0, 0))[k] for result in results], dtype=float) for k in (0, 1))
        numbers: dict = {}
        for split, wanted in SPLITS.items():
            chosen = there if wanted is None else there & (right == wanted)
            numbers[f"n{split}"] = int(chosen.sum())
            numbers |= rate(f"acc{split}", match[chosen], group[chosen])
            numbers |= difference(f"minus_own{split}", after_own[chosen], match[chosen], group[chosen])
        row["after"][name] = numbers | rate("repeats", repeats[there], group[there])
    return row


def _outcome(verdict: Verdict, read: Answer) -> SwapOutcome:
    return bool(verdict.match), not verdict.is_blank and unchanged(verdict.answer, read.verdict.answer)
