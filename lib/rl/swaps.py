"""Counterfactuals of attempt 2: what it makes of first attempts that are not its own.

Beside every first attempt y1 of the policy, attempt 2 is sampled after three others, and judged for the same question:

    own      y1 itself, with the attempt 2 that followed it
    other    what the policy wrote for the next question
    right    y1, where it is right; else another first attempt of the policy at this question that is right, if it was
             sampled more than once; else a rendering of the right answer
    random   a rendering of the right answer to another question, drawn at random

A rendering is a right first attempt to the nearest question behind this one that has one, with the new answer in all
places where the old one stands as a word of its own: format and reasoning are the policy's, the latter about something
else. The judge must find it right, or wrong where it is random; what cannot be rendered so is left out and counted.
An attempt 2 that solves the question again does as well after all four; one that checks what it reads does not.
"""

import random
import re
from bisect import bisect_right
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator

from engine import Completion
from judge.parsing import unchanged
from lib.core import stats
from lib.generators.reply_cache import key_of
from lib.model.policy import Policy
from lib.rewards.judge import Judge, Verdict
from lib.rl.corrections import CorrectionPrompts
from lib.rl.evaluation import ROWS_AT_ONCE, group_of, rate
from lib.rl.tree import Answer, Group, Sampling, sample, verdicts_on
from lib.run.distributed import collect

CONTEXTS = ("own", "other", "right", "random")
SPLITS = {"": None, "_own_wrong": False, "_own_right": True}  # of all questions, and by whether y1 is right


@dataclass(frozen=True)
class First:
    """A first attempt, in the tree of its question."""

    tree: Group
    answer: Answer

    @property
    def verdict(self) -> Verdict:
        """Returns the verdict on it."""
        return self.answer.verdict


@dataclass(frozen=True)
class Context:
    """A first attempt for attempt 2 to read, and its source."""

    completion: Completion
    answer: str  # extracted; "" where there is none
    source: str  # own, sampled, other or rendered


Found = tuple[bool, bool]  # whether attempt 2 is right, and whether it repeats the answer it read


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

    `trees` are this process's, one per question, with one revision of each first attempt. Others and donors are taken
    from these, so the pairs of questions depend on the number of processes.
    """
    dice = random.Random(f"{seed}/{accelerator.process_index}")
    generator = torch.Generator(policy.device).manual_seed(seed + accelerator.process_index)
    firsts = [First(tree, answer) for tree in trees for answer in tree.answers]
    contexts = _contexts(prompts, firsts, judge, sampling.copies[0], dice)
    results: list[dict[str, Found]] = [{} for _ in firsts]
    pending = []
    for i, by_name in enumerate(contexts):
        for name, context in by_name.items():
            if context.source == "own":  # its attempt 2 is there already
                results[i][name] = _found(firsts[i].answer.following.answers[0].verdict, context)
            else:
                pending.append((i, name, context))
    revising = replace(sampling, copies=(1,), max_new_tokens=sampling.max_new_tokens[1:2])
    for start in range(0, len(pending), ROWS_AT_ONCE):
        part = pending[start : start + ROWS_AT_ONCE]
        seconds = [prompts.next_prompt(firsts[i].tree.prompt, context.completion) for i, _, context in part]
        groups = sample(policy, prompts, seconds, judge, revising, generator)
        for (i, name, context), group in zip(part, groups, strict=True):
            results[i][name] = _found(group.answers[0].verdict, context)
    questions = collect([key_of(first.tree.prompt.ids) for first in firsts], accelerator)
    is_right = collect([first.verdict.match for first in firsts], accelerator)
    sources = collect([by_name["right"].source if "right" in by_name else "none" for by_name in contexts], accelerator)
    return summarise(questions, is_right, collect(results, accelerator), sources, sampling.temperature)


def summarise(
    questions: Sequence[Hashable],
    is_right: list[bool],
    results: list[dict[str, Found]],
    sources: list[str],
    temperature: float,
) -> dict:
    """Returns the row. The lists hold an entry per first attempt, over all processes.

    `questions`: what each answers; `is_right`: whether it is right; `results`: the verdicts on attempt 2, by context.
    """
    group, right = group_of(questions), np.array(is_right)
    row: dict[str, Any] = {"n": len(results), "prompts": int(group.max()) + 1, "temperature": temperature}
    row |= rate("acc_attempt1", right.astype(float), group)
    row["right_is"] = {source: sources.count(source) / len(sources) for source in sorted(set(sources))}
    row["after"] = {}
    after_own = np.array([sample["own"][0] for sample in results], dtype=float)
    for name in CONTEXTS:
        there = np.array([name in sample for sample in results])
        match, repeats = (np.array([sample.get(name, (0, 0))[k] for sample in results], dtype=float) for k in (0, 1))
        numbers: dict = {}
        for split, wanted in SPLITS.items():
            chosen = there if wanted is None else there & (right == wanted)
            numbers[f"n{split}"] = int(chosen.sum())
            numbers |= rate(f"acc{split}", match[chosen], group[chosen])
            numbers |= _difference(f"minus_own{split}", after_own[chosen], match[chosen], group[chosen])
        row["after"][name] = numbers | rate("repeats", repeats[there], group[there])
    return row


def _difference(name: str, before: np.ndarray, after: np.ndarray, group: np.ndarray) -> dict:
    if not len(before):
        return {name: None, f"{name}_ci95": None}
    interval = stats.paired_delta_interval(before.tolist(), after.tolist(), group.tolist())
    return {name: float((after - before).mean()), f"{name}_ci95": list(interval)}


def _found(verdict: Verdict, context: Context) -> Found:
    return bool(verdict.match), not verdict.is_blank and unchanged(verdict.answer, context.answer)


def _contexts(
    prompts: CorrectionPrompts, firsts: list[First], judge: Judge, samples: int, dice: random.Random
) -> list[dict[str, Context]]:
    """Returns the contexts that attempt 2 is to read, by name, for every first attempt; `samples` are per question."""
    targets = [judge.answer_of(first.tree.prompt.row) for first in firsts]
    frames = _Frames(prompts, firsts, samples)
    contexts: list[dict[str, Context]] = []
    renderings: list[tuple[int, str, Completion]] = []
    for i, first in enumerate(firsts):
        own_context = _context(first, "own")
        mine: dict[str, Context] = {"own": own_context}
        if len(firsts) > samples:
            mine["other"] = _context(firsts[(i + samples) % len(firsts)], "other")
        siblings = firsts[i // samples * samples :][:samples]
        sampled = next((sibling for sibling in siblings if sibling.verdict.match), None)
        if first.verdict.match:
            mine["right"] = own_context
        elif sampled:
            mine["right"] = _context(sampled, "sampled")
        elif rendered := frames.rendered(i, targets[i]):
            renderings.append((i, "right", rendered))
        start = dice.randrange(len(targets))
        stranger = next((answer for answer in targets[start:] + targets[:start] if answer != targets[i]), None)
        if stranger is not None and (rendered := frames.rendered(i, stranger)):
            renderings.append((i, "random", rendered))
        contexts.append(mine)
    texts = [prompts.text(completion) for *_, completion in renderings]
    verdicts = verdicts_on(judge, texts, [firsts[i].tree.prompt for i, *_ in renderings], [True] * len(texts))
    for (i, name, completion), verdict in zip(renderings, verdicts, strict=True):
        if verdict.scored and verdict.match == (name == "right"):
            contexts[i][name] = Context(completion, verdict.answer, "rendered")
    return contexts


def _context(first: First, source: str) -> Context:
    return Context(first.answer.completion, first.verdict.answer, source)


class _Frames:
    """Right first attempts whose answer can be replaced by another."""

    def __init__(self, prompts: CorrectionPrompts, firsts: list[First], samples: int):
        self.prompts, self.firsts, self.samples = prompts, firsts, samples
        self.donors = [
            i
            for i, first in enumerate(firsts)
            if first.verdict.match
            and first.answer.completion.finished
            and places_of(first.verdict.answer).search(first.answer.text)
        ]

    def rendered(self, index: int, answer: str) -> Completion | None:
        """Returns the next donor after `index`, from another question, with `answer` in place of its own; or None."""
        behind, answer = bisect_right(self.donors, index), self.prompts.outside.harmless(answer)
        for donor in self.donors[behind:] + self.donors[:behind]:
            if donor // self.samples != index // self.samples:
                first = self.firsts[donor]
                text = places_of(first.verdict.answer).sub(lambda _: answer, first.answer.text)
                ids = self.prompts.tokenizer(text, add_special_tokens=False)["input_ids"]
                ids += first.answer.completion.ids[-1:]
                return Completion(ids, [0.0] * len(ids), finished=True)
        return None


def places_of(answer: str) -> re.Pattern[str]:
    """Returns a pattern that matches an answer as a whole word; an empty answer never matches."""
    return re.compile(rf"(?<!\w){re.escape(answer)}(?!\w)" if answer else r"(?!)")
