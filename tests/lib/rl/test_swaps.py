import math

import pytest
import torch
from accelerate import Accelerator
from conftest import chatterbox
from helpers.judges import judge_by
from transformers import AutoModelForCausalLM, AutoTokenizer

from lib.core.config import Generation, Lora, Model, Prompts
from lib.core.registry import register_extractor
from lib.model.loading import attach_tuner
from lib.model.policy import Policy
from lib.rl import swaps
from lib.rl.corrections import CorrectionPrompts
from lib.rl.evaluation import evaluate
from lib.rl.tree import Sampling, sample

ALONE = Accelerator(cpu=True)


@register_extractor("in_answer_tags")
def in_answer_tags(text):
    return text.partition("<answer>")[2].partition("</answer>")[0] if "<answer>" in text else text


# eight first attempts to four questions, two to each; (attempt 2 is right, it repeats what it read)
QUESTIONS = "aabbccdd"
IS_RIGHT = [True, True, True, False, False, False, False, False]
FOUND = [
    {"own": (True, True), "other": (True, False)},
    {"own": (True, True), "other": (False, True)},
    {"own": (False, False), "other": (True, False)},
    {"own": (True, False), "other": (True, False)},
    {"own": (True, False), "other": (False, False)},
    {"own": (False, True), "other": (False, False)},
    {"own": (False, True), "other": (False, False)},
    {"own": (False, True), "other": (False, True)},
]


def test_a_table_of_swaps_by_hand():
    row = swaps.summarise(QUESTIONS, IS_RIGHT, FOUND, temperature=0.5)
    assert (row["n"], row["prompts"], row["temperature"], row["acc_attempt1"]) == (8, 4, 0.5, 3 / 8)
    own, other = (row["after"][name] for name in swaps.CONTEXTS)
    assert (own["n"], own["acc"], own["minus_own"], own["repeats"]) == (8, 0.5, 0, 5 / 8)
    assert (own["n_own_wrong"], own["acc_own_wrong"]) == (5, 0.4)
    assert (own["n_own_right"], own["acc_own_right"]) == (3, pytest.approx(2 / 3))
    assert (other["acc"], other["minus_own"]) == (3 / 8, -1 / 8)
    assert (other["acc_own_wrong"], other["minus_own_own_wrong"]) == (0.2, pytest.approx(-0.2))
    # by question, other - own is 0, -1, 1, 0, -1, 0, 0, 0: sums -1, 1, -1, 0 about a mean of -1/8, with t(3) = 3.1824
    squares = (-1 + 0.25) ** 2 + (1 + 0.25) ** 2 + (-1 + 0.25) ** 2 + 0.25**2
    half = 3.1824 * math.sqrt(squares * 4 / 3) / 8
    assert other["minus_own_ci95"] == pytest.approx([-1 / 8 - half, -1 / 8 + half], abs=1e-4)


def test_nothing_to_compare_has_no_number():
    row = swaps.summarise("ab", [True, True], [{"own": (True, True)}] * 2, temperature=0.0)
    assert row["after"]["other"]["n"] == row["after"]["own"]["n_own_wrong"] == 0
    assert row["after"]["other"]["acc"] is row["after"]["own"]["acc_own_wrong_ci95"] is None


# -- with a model


@pytest.fixture(scope="module")
def setting(tmp_path_factory):
    """`setting(answers, ...)`: the rollouts of a model that answers 7, or 8 once in four times, and what swaps need."""
    folder = chatterbox(tmp_path_factory.mktemp("sevens"), {
        "<|assistant|>": {"<think>": 1}, "<think>": {"</think>": 1}, "</think>": {"<answer>": 1},
        "<answer>": {"7": 0.75, "8": 0.25}, "7": {"</answer>": 1}, "8": {"</answer>": 1},
    })  # fmt: skip
    tokenizer = AutoTokenizer.from_pretrained(folder)
    base = AutoModelForCausalLM.from_pretrained(folder)
    policy = Policy(attach_tuner(base, Lora(r=2, alpha=4), Model(name="x", backend="plain"), "plain", seed=0), 1.0)
    limits = Generation(max_prompt_length_attempt1=40, max_prompt_length_attempt2=120, max_new_tokens_attempt1=6,
                        max_new_tokens_attempt2=6)  # fmt: skip
    prompts = CorrectionPrompts(tokenizer, Prompts(user="{q}", self_correction="again"), limits)
    judge = judge_by(columns=["q", "a"], target="a", answer_extractor="in_answer_tags")

    def make(answers, temperature, samples=1):
        ends = frozenset([tokenizer.eos_token_id])
        sampling = Sampling(temperature, (6, 6), (samples, 1), ends, tokenizer.pad_token_id)
        rows = [{"q": f"q{i}", "a": answer} for i, answer in enumerate(answers)]
        _, trees = evaluate(policy, prompts, rows, judge, sampling, 0, ALONE)
        return policy, prompts, trees, judge, sampling

    return make


def test_who_only_solves_again_is_as_good_after_any_first_attempt(setting):
    """Greedily the policy says 7 to all four questions, which is right for the first and the last one."""
    greedy = swaps.swap_attempts(*setting(["7", "8", "12", "7"], 0.0), 0, ALONE)
    for name in swaps.CONTEXTS:
        numbers = greedy["after"][name]
        told = [numbers[key] for key in ("n", "acc", "minus_own", "acc_own_wrong", "acc_own_right", "repeats")]
        assert told == [4, 0.5, 0, 0, 1, 1]
    sampled = swaps.swap_attempts(*setting(["7", "8"] * 20, 1.0, samples=4), 0, ALONE)
    assert sampled == swaps.swap_attempts(*setting(["7", "8"] * 20, 1.0, samples=4), 0, ALONE)
    for name in swaps.CONTEXTS:
        numbers = sampled["after"][name]
        assert (numbers["n"], numbers["acc"]) == (160, pytest.approx(0.5, abs=0.14))  # 4 sqrt(160 * 0.19) / 160
        low, high = numbers["minus_own_ci95"]
        assert low <= 0 <= high
    alone = swaps.swap_attempts(*setting(["7"], 0.0), 0, ALONE)
    assert [alone["after"][name]["n"] for name in swaps.CONTEXTS] == [1, 0]  # there is no other question


def test_a_second_attempt_reads_what_it_is_given(make_policy, tokenizer, limits):
    """A model whose words depend on all it reads says the same after its own y1, and something else after others."""
    prompts = CorrectionPrompts(tokenizer, Prompts(user="{q}", self_correction="R"), limits)
    policy, rows = make_policy(moved=0.3), [{"q": f"{i}+1=?", "a": "1"} for i in range(6)]
    sampling = Sampling(0.0, (6, 8), (1, 1), frozenset([tokenizer.eos_token_id]), 0)
    judge = judge_by(columns=["q", "a"], target="a")
    _, trees = evaluate(policy, prompts, rows, judge, sampling, 0, ALONE)
    firsts = [(tree.prompt, answer) for tree in trees for answer in tree.answers]
    row = swaps.swap_attempts(policy, prompts, trees, judge, sampling, 0, ALONE)
    assert row["after"]["own"]["n"] == row["after"]["other"]["n"] == len(rows)
    revising = Sampling(0.0, (8,), (1,), sampling.stop_ids, 0)

    def revised(completions):
        seconds = [
            prompts.next_prompt(prompt, completion) for (prompt, _), completion in zip(firsts, completions, strict=True)
        ]
        groups = sample(policy, prompts, seconds, judge, revising, torch.Generator().manual_seed(0))
        return [group.answers[0].completion.ids for group in groups]

    own = [answer.completion for _, answer in firsts]
    before = [answer.following.answers[0].completion.ids for _, answer in firsts]
    assert revised(own) == before != revised(own[1:] + own[:1])
