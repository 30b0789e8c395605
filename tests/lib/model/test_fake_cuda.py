"""Sampling, scoring and credit on a GPU that is not there: devices, waits of the host, and operators per layer."""

from collections import Counter
from itertools import pairwise

import pytest
import torch
from accelerate import Accelerator
from helpers.fake_cuda import fake_cuda, moved
from peft import LoraConfig, get_peft_model
from transformers import AutoConfig, AutoModelForCausalLM

from engine import Completion, Decoding, Turn, decoder, generate
from lib.model import policy as policy_module
from lib.model.logits import HeadTransform
from lib.model.policy import Inputs, Policy
from lib.rewards.judge import Verdict
from lib.rl import credit as columns
from lib.rl.prompts import Prompt
from lib.rl.tree import Answer, Group, nodes

SIZES = {  # of Qwen3-0.6B
    "hidden_size": 1024, "intermediate_size": 3072, "num_attention_heads": 16, "num_key_value_heads": 8,
    "head_dim": 128, "vocab_size": 151_936,
}  # fmt: skip
OPERATORS = 30  # of a layer in a step of decoding; transformers' layer with PEFT's adapters takes some 100
ROWS, PROMPT, BUDGET = 128, 20, 30


class Enough(Exception):
    """Ends sampling, whose rows never end: the host reads zeros."""


@pytest.fixture
def build(monkeypatch):
    """Calls back with a bfloat16 policy on the fake GPU and the watch over it."""
    monkeypatch.setattr(policy_module, "measure", lambda _model: HeadTransform())  # compares numbers
    monkeypatch.setattr(decoder._FixedStep, "_record", lambda *_: None)

    def build(kind, layers, use):
        config = AutoConfig.for_model(kind, num_hidden_layers=layers, **SIZES)
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).requires_grad_(False)
            model = get_peft_model(model, LoraConfig(r=16, target_modules="all-linear"))
        with fake_cuda(monkeypatch) as seen:
            policy = Policy(moved(model), 1.0)
            seen.strays.clear()
            return use(policy, seen)

    return build


def steps_of(policy, seen, temperature=1.0):
    """The operators and waits of everything up to the first token, and of each of two further steps."""
    marks = [(Counter(), 0)]

    def check_interrupt():
        marks.append((seen.launched.copy(), len(seen.waits)))
        if len(marks) == 5:
            raise Enough

    turns = {(i,): Turn([5] * PROMPT, BUDGET, 4) for i in range(ROWS // 4)}
    decoding = Decoding(temperature, frozenset([7]), 0, ROWS, PROMPT + BUDGET)
    with pytest.raises(Enough):
        generate(policy, turns, decoding, check_interrupt=check_interrupt)
    assert len(seen.launched) > 20  # it did run there
    return [(after[0] - before[0], seen.waits[before[1] : after[1]]) for before, after in pairwise(marks[1:])]


@pytest.mark.parametrize("kind", ["llama", "qwen3"])
def test_a_layer_launches_few_operators_in_a_step(build, kind):
    fewer, more = (build(kind, layers, steps_of)[-1][0] for layers in (2, 3))
    assert 15 < (more - fewer).total() <= OPERATORS, more - fewer


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("recorded", [True, False])
def test_a_step_waits_once_for_the_gpu_and_makes_nothing_elsewhere(build, monkeypatch, recorded, temperature):
    monkeypatch.setattr(decoder._FixedStep, "works", recorded)

    def use(policy, seen):
        _prefill, *steps = steps_of(policy, seen, temperature)
        assert [len(waits) for _, waits in steps] == [1, 1], steps
        assert seen.strays == []

    build("qwen3", 2, use)


@pytest.mark.parametrize("branches", [[], [150, 120]])
def test_texts_are_scored_on_the_gpu(build, branches):
    def use(policy, seen):
        total = 200 + sum(branches)
        ids = torch.ones(6, total, dtype=torch.long, device="cuda")
        scored = torch.ones(6 * 150, dtype=torch.long, device="cuda")
        inputs = Inputs(ids, ids, scored, scored, ids if branches else None, 200 if branches else 0)
        with torch.no_grad():
            ref_logp, ref_hidden = policy.reference(inputs)
            scores = policy(inputs, ref_hidden)[:3]
        assert {(score.device.type, score.shape, score.dtype) for score in (ref_logp, *scores)} == {
            ("cuda", scored.shape, torch.float32)
        }
        assert (seen.waits, seen.strays) == ([], [])

    build("qwen3", 2, use)


def test_credit_is_assigned_on_the_gpu(monkeypatch):
    verdict, alone = Verdict(1.0, {"x": 1.0}, True, "7"), Accelerator()

    def chat(*following):
        answers = [Answer(Completion([5, 6], [-1.0, -2.0], True), "7", verdict, group) for group in following]
        return Group(Prompt({}, [1, 2], "?"), answers)

    found = nodes([chat(chat(None, None), chat(None, None)) for _ in range(3)])
    count = sum(len(node.numbers) for node in found)
    with fake_cuda(monkeypatch) as seen:
        credit = columns.credit_of(found, [1.0] * count, [True] * count, (0.1, 0.1), torch.device("cuda"))
        for norm in ("sequence", "constant", "token"):
            credit = columns.with_token_weights(credit, norm, (30, 30), alone, below=(2, 1))
        credit = columns.scaled_by_role(credit, alone)
        credit = columns.with_teacher(credit, [0.5] * count, 0.5)
        credit = columns.some_followed(columns.without_idle_trees(credit), 1)
        credit = columns.in_minibatches(credit, 1, alone)
        assert seen.strays == []
        assert {value.device.type for value in vars(credit).values() if isinstance(value, torch.Tensor)} == {"cuda"}
        assert credit.start.is_cuda and len(credit.learned) == count
