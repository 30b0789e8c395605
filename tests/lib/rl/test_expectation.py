"""The expected gradient of a step, over all trees that a tiny policy can grow, is that of what its recipe claims.

A policy is a table: three logits after each history. Each tree goes through the run's own credit, and the sum over all
trees, weighted by their probability, is compared with the sum over all single chats of what the docstring of the recipe
pays each answer.
"""

from collections import defaultdict
from dataclasses import replace
from itertools import pairwise, product
from math import prod
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from conftest import part
from test_feedback import folder as folder

from engine import Completion
from lib.core.config import ATTEMPT, ScoreConfig, load
from lib.core.errors import ConfigError
from lib.rewards.judge import Verdict
from lib.rl.prompts import Prompt
from lib.rl.recipes.choice import recipe_of
from lib.rl.recipes.ufo import REPEAT_PENALTY
from lib.rl.reviews import review_of
from lib.rl.score import ScoreRun
from lib.rl.task import load_task
from lib.rl.tree import Answer, Group, nodes
from lib.run import distributed

END = 0  # a token; an answer of at most two tokens may end with the first
REVIEWS = ("right", "wrong")  # a token each
MOST_TREES = 400
PHRASES = ("prompts.self.right=right", "prompts.self.wrong=wrong")
CHATS = {  # what stands between two attempts
    "plain": ("prompts.feedback=none", "prompts.stop=never"),
    "stop": ("prompts.feedback=none", "prompts.stop=verdict"),
    "checked": ("prompts.feedback=self", "prompts.stop=never", *PHRASES),
    "stop by check": ("prompts.feedback=self", "prompts.stop=self", *PHRASES),
    "reflected": ("prompts.feedback=self", "prompts.stop=verdict", "prompts.self.right=null"),
}
PAID = {
    "stage I": ("train.recipe=score",),
    "score": ("train.recipe=score",),
    "on reward": ("train.recipe=score", "train.bonus_on=reward"),
    "both": ("train.recipe=score", "train.bonus_to=both"),
    **{name: (f"train.recipe={name}",) for name in ("multiturn", "thinktwice", "ufo", "pag", "reflect")},
}
TREES = [(2, 1, 2), (2, 2, 2), (2, 2, 1), (3, 1, 2)]  # first attempts, revisions of each, first attempts followed


class Chats:
    """All trees of a config, and their probabilities; `tokens` of an attempt, at most."""

    def __init__(self, config, tokens=1, is_context=False, question="question"):
        self.config, self.tokens, self.is_context, self.root = config, tokens, is_context, (question,)
        self.turns = list(config.turns)
        random = np.random.default_rng(len(question))
        self.logits = defaultdict(lambda: random.normal(size=3))
        self.copies = (config.train.attempts_per_prompt, config.train.revisions_per_attempt, *[1] * len(self.turns))
        self.words = 3  # in the vocabulary; two where there would be too many trees
        self.words = 3 if tokens == 1 and self.size(self.root) <= MOST_TREES else 2

    def is_attempt(self, history):
        return self.turns[len(history) - 1].startswith(ATTEMPT)

    def texts(self, history):
        """The answers after a history, as tokens."""
        if not self.is_attempt(history):
            return [(word,) for word in range(len(REVIEWS))]
        one = [(word,) for word in range(self.words)]
        two = product(range(self.words), repeat=2)
        return one if self.tokens == 1 else [one[END], *(ids for ids in two if ids[0] != END)]

    def tokens_of(self, history, ids):
        """Yields for each token of an answer the history before it and the chances there."""
        places = self.words if self.is_attempt(history) else len(REVIEWS)
        for i in range(len(ids)):
            before = (*history, *ids[:i])
            chances = np.exp(self.logits[before][:places])
            yield before, chances / chances.sum()

    def chance(self, history, ids):
        return prod(chances[word] for word, (_, chances) in zip(ids, self.tokens_of(history, ids), strict=True))

    def slopes(self, history, ids):
        """Yields for each token of an answer the history before it, and the gradient of its log-prob by the logits."""
        for word, (before, chances) in zip(ids, self.tokens_of(history, ids), strict=True):
            slope = np.zeros(3)
            slope[: len(chances)] = -chances
            slope[word] += 1
            yield before, slope

    def answer(self, ids, about):
        """An answer, and whether its chat ends there; `about` is the verdict on the attempt that it reviews."""
        done, stop = Completion(list(ids), [0.0] * len(ids), True), self.config.prompts.stop
        if about:
            verdict = review_of(self.config.prompts, about).verdict(done, REVIEWS[ids[0]])
            return Answer(done, "", verdict), stop == "self" and verdict.answer == "right"
        is_right = ids in ((1,), (1, END))
        verdict = Verdict(1.0 if is_right else 0.25 * (sum(ids) % 2 == 0), {}, is_right, str(ids))
        return Answer(done, "", verdict), stop == "verdict" and is_right

    def below(self, history, about, ids):
        """The answer, and what the next prompt is about; False where the chat ends."""
        answer, is_last = self.answer(ids, about)
        if is_last or len(history) == len(self.turns):
            return answer, False
        return answer, answer.verdict if about is None and self.config.prompts.reviewed_by else None

    def size(self, history, about=None):
        """How many groups there are after a history, with what follows."""
        texts, copies = self.texts(history), self.copies[len(history) - 1]
        befores = [(ids, self.below(history, about, ids)[1]) for ids in texts]
        after = sum(1 if then is False else self.size((*history, ids), then) for ids, then in befores)
        followed = copies if len(history) > 1 else self.config.train.followed
        return after**followed * len(texts) ** (copies - followed)

    def grow(self, copies, followed, history, about=None):
        """All groups after a history, with what follows, and their probabilities."""
        ways, groups = [], []
        for ids in self.texts(history):
            answer, then = self.below(history, about, ids)
            after = [(1.0, None)] if then is False else self.grow(copies, followed, (*history, ids), then)
            ways.append((answer, self.chance(history, ids), after))
        review = review_of(self.config.prompts, about) if about else None
        for chosen in product(ways, repeat=copies[len(history) - 1]):
            after = [rest if len(history) > 1 or i < followed else [(1.0, None)] for i, (*_, rest) in enumerate(chosen)]
            for following in product(*after):
                chance = prod(chance for _, chance, _ in chosen) * prod(chance for chance, _ in following)
                answers = [replace(a, following=rest) for (a, *_), (_, rest) in zip(chosen, following, strict=True)]
                is_context = self.is_context and len(history) == 1
                groups.append((chance, Group(Prompt({}, [0], "", review=review), answers, is_context)))
        return groups

    def trees(self):
        return self.grow(self.copies, self.config.train.followed, self.root)

    def single(self):
        """All chats, as a list of (history, answer), and their probabilities."""
        for chance, group in self.grow([1] * len(self.turns), 1, self.root):
            chat, history = [], self.root
            while group:
                (answer,) = group.answers
                chat.append((history, answer))
                history, group = (*history, tuple(answer.completion.ids)), answer.following
            yield chance, chat


def claimed(paid, chats, chat):
    """What the answers of a chat are paid, by the recipe's docstring."""
    train, on = chats.config.train, "reward" if paid == "on reward" else "match"
    attempts = [answer.verdict for history, answer in chat if chats.is_attempt(history)]
    at_end = train.discount ** (len(attempts) - 1) * attempts[-1].reward
    gains = [0.0, *(train.alpha * (getattr(b, on) - getattr(a, on)) for a, b in pairwise(attempts)), 0.0]
    number, is_nothing_new = 0, False  # of attempts so far
    for history, answer in chat:
        verdict, is_attempt = answer.verdict, chats.is_attempt(history)
        number += is_attempt
        if is_attempt:
            is_nothing_new = verdict.answer in [earlier.answer for earlier in attempts[: number - 1]]
        if paid in ("multiturn", "ufo"):
            yield at_end - REPEAT_PENALTY * (paid == "ufo" and is_attempt and is_nothing_new)
        elif paid == "reflect":
            yield 0.0 if is_attempt else float(attempts[number].match)
        elif paid == "pag":
            yield verdict.reward + gains[number - 1] * is_attempt
        elif paid == "thinktwice":
            yield float(verdict.match)
        elif not is_attempt or (paid == "stage I" and number == 1):
            yield 0.0
        else:
            bonus = 0.0 if paid == "stage I" else gains[number - 1] + gains[number] * (paid == "both")
            yield train.discount ** (number - 1) * verdict.reward + bonus


def objective(paid, chats, weight=lambda turn, length: 1.0):
    """The gradient of what is claimed, by history."""
    gradient = defaultdict(lambda: np.zeros(3))
    for chance, chat in chats.single():
        for (history, answer), value in zip(chat, claimed(paid, chats, chat), strict=True):
            ids = answer.completion.ids
            for before, slope in chats.slopes(history, tuple(ids)):
                if not (chats.is_context and len(history) == 1):
                    gradient[before] += chance * weight(len(history), len(ids)) * value * slope
    return gradient


def run_of(run, chats):
    """The run with the config of the chats; roles are not scaled, since that depends on the other trees of a step."""
    run.config, run.budgets, run.recipe = chats.config, chats.config.budgets, recipe_of(chats.config.train)
    run.recipe.scales_roles = False
    return run


def expected(run, chats, steps, stage=2):
    """The mean of the gradients of steps, each the chances of its trees and the trees, by history."""
    gradient = defaultdict(lambda: np.zeros(3))
    for chances, trees in steps:
        credit = run.credit(SimpleNamespace(number=stage), trees)
        factors = (credit.weight * credit.advantage * len(trees) / credit.divisor).tolist()
        histories = []
        for node in credit.nodes:
            history = chats[node.tree % len(chats)].root if node.parent is None else histories[node.parent]
            for number, answer in zip(node.numbers, node.group.answers, strict=True):
                ids = tuple(answer.completion.ids)
                histories.append((*history, ids))
                for before, slope in chats[node.tree % len(chats)].slopes(history, ids):
                    gradient[before] += chances[node.tree] * factors[number] * slope
    return gradient


def assert_equal(found, wanted, *case):
    """Cosine and ratio are 1."""
    keys = sorted({*found, *wanted}, key=str)
    one, two = (np.concatenate([values[key] for key in keys]) for values in (found, wanted))
    sizes = np.linalg.norm(one), np.linalg.norm(two)
    assert sizes[1] > 1e-3, case
    assert (one @ two / prod(sizes), sizes[0] / sizes[1]) == pytest.approx((1, 1), abs=1e-5), case


def config_of(chat, paid, shape, attempts=2, *more):
    """The config of a case, or None if it is refused."""
    firsts, revisions, followed = shape
    more = (*more, *([f"train.followed_attempts={followed}"] if followed < firsts else []))
    options = [
        *CHATS[chat], *PAID[paid], f"train.attempts={attempts}", f"train.attempts_per_prompt={firsts}",
        f"train.revisions_per_attempt={revisions}",
        "train.alpha=2", "train.discount=0.5", "model.max_seq_length=1024",
        f"train.stage1_steps={int(paid == 'stage I')}", *more,
    ]  # fmt: skip
    try:
        return load(ScoreConfig, Path("tiny.yaml"), options)
    except ConfigError:
        return None


def all_at_once(chats):
    """A single step of all trees: no baseline but that of the batch depends on other trees."""
    chances, trees = zip(*chats.trees(), strict=True)
    assert sum(chances) == pytest.approx(1)
    return [(chances, trees)]


@pytest.fixture
def run(folder):
    return ScoreRun(load_task(load(ScoreConfig, Path("tiny.yaml"), []), say=lambda text: None))


CASES = [*product(CHATS, PAID, TREES, (2, 3))]


def test_the_gradient_of_every_recipe_is_that_of_its_objective(run):
    tried = set()
    for case in part(CASES, 3):
        chats = Chats(config) if (config := config_of(*case)) else None
        if chats and chats.size(chats.root) <= MOST_TREES:
            found = expected(run_of(run, chats), [chats], all_at_once(chats), 1 if case[1] == "stage I" else 2)
            assert_equal(found, objective(case[1], chats), case)
            tried |= {*case}
    assert tried >= {*CHATS, *PAID, *TREES, 2, 3}


@pytest.mark.parametrize("norm", ["sequence", "constant", "budget", "token"])
def test_the_length_norms_keep_the_objective(run, norm):
    """Of answers of one token or two, a token weighs what the norm says, whatever the chat and its rewards.

    By 1/|y| no baseline is neutral, since its slope over all answers is not zero: there it is left out.
    """
    more = f"train.length_norm={norm}", f"train.baseline={'none' if norm == 'sequence' else 'leave_one_out'}"
    for chat, paid in (("plain", "score"), ("stop", "score"), ("stop", "multiturn")):
        chats = Chats(config_of(chat, paid, (2, 1, 2), 2, *more), tokens=2)
        ((chances, trees),) = all_at_once(chats)
        lengths = defaultdict(list)
        for node in nodes(trees):
            lengths[node.turn] += [len(answer.completion.ids) for answer in node.group.answers]

        def weight(turn, length, lengths=lengths):
            return {"sequence": 1 / length, "constant": 1 / 8, "budget": 1 / (8, 6)[turn - 1],
                    "token": 1 / np.mean(lengths[turn])}[norm]  # fmt: skip

        found = expected(run_of(run, chats), [chats], [(chances, trees)])
        assert_equal(found, objective(paid, chats, weight), chat, paid)


def test_first_attempts_of_the_base_and_no_baseline_keep_the_objective(run):
    for chat, paid in (("plain", "score"), ("stop", "score"), ("stop", "ufo"), ("stop by check", "pag")):
        for is_context, baseline in product((True, False), ("leave_one_out", "none")):
            chats = Chats(config_of(chat, paid, (2, 1, 2), 2, f"train.baseline={baseline}"), is_context=is_context)
            found = expected(run_of(run, chats), [chats], all_at_once(chats))
            assert_equal(found, objective(paid, chats), chat, paid, is_context, baseline)


@pytest.mark.parametrize("chat", ["plain", "stop", "stop by check"])
def test_the_mean_of_the_batch_keeps_the_objective(run, chat):
    """Two prompts with one chat each: all steps that they can make."""
    both = [Chats(config_of(chat, "score", (1, 1, 1), 2, "train.baseline=batch"), question=q) for q in ("one", "three")]
    steps = [
        ([chance * another / 2] * 2, [tree, other])
        for (chance, tree), (another, other) in product(*(chats.trees() for chats in both))
    ]
    found, wanted = expected(run_of(run, both[0]), both, steps), defaultdict(lambda: np.zeros(3))
    for chats in both:
        for history, slope in objective("score", chats).items():
            wanted[history] += slope / 2
    assert_equal(found, wanted)


@pytest.mark.parametrize("baseline", ["leave_one_out", "batch"])
@pytest.mark.parametrize("chat", ["stop", "stop by check"])
def test_two_processes_give_the_credit_of_one(run, chat, baseline, monkeypatch):
    """One has trees of right answers alone, so that none of its chats may come to a second turn."""
    config = config_of(chat, "score", (2, 1, 2), 2, f"train.baseline={baseline}", "train.length_norm=token")
    chats = Chats(config)
    trees = sorted((tree for _, tree in chats.trees()), key=lambda tree: (-sum(tree.matches), len(nodes([tree]))))
    parts, stage = (trees[:1], trees[1:]), SimpleNamespace(number=2)
    one, sent = run_of(run, chats).credit(stage, trees), ([], [])
    for _ in range(3):  # what is sent settles
        received, sent = sent, ([], [])
        two = []
        for rank, own in enumerate(parts):

            def gather(items, rank=rank, received=received, sent=sent):
                sent[rank].append(items)
                place = len(sent[rank]) - 1
                return [item for items in received for item in items[place]] if received[0] else items

            monkeypatch.setattr(distributed, "gather_object", gather)
            run.accelerator = SimpleNamespace(num_processes=2, process_index=rank, device=torch.device("cpu"))
            two.append(run.credit(stage, own))
    assert [credit.divisor for credit in two] == [one.divisor] * 2
    for name in ("advantage", "weight"):
        found = torch.cat([getattr(credit, name) for credit in two])
        torch.testing.assert_close(found, getattr(one, name), rtol=1e-6, atol=1e-6)


def test_a_lone_revision_is_compared_with_no_other_and_the_run_says_so(run, capsys):
    chats = Chats(config_of("stop", "score", (2, 1, 1)))
    found, first = expected(run_of(run, chats), [chats], all_at_once(chats)), objective("score", chats)[chats.root]
    assert found[chats.root] == pytest.approx(first)
    assert not any(slope.any() for history, slope in found.items() if history != chats.root)
    assert "is compared with no other" not in capsys.readouterr().out
    ScoreRun(load_task(chats.config, say=lambda text: None))
    assert "is compared with no other" in capsys.readouterr().out
