"""The probe at the start of a run: what it compares, what it refuses, and that it leaves no trace."""

import math
import random

import numpy as np
import pytest
import torch
from helpers.architectures import PROMPT, built

from lib.core.errors import ConfigError, NumericError
from lib.model.logits import HeadTransform
from lib.model.policy import Policy
from lib.rl import probe
from lib.rl.probe import readable


def probe_of(policy):
    return probe.probe(policy, PROMPT, pad_id=0, name="tiny")


def everything_random():
    return [torch.random.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()]


@pytest.mark.parametrize("kind", ["qwen3", "gemma"])
def test_a_sound_model_agrees_and_nothing_is_left_behind(make_policy, kind):
    policy = make_policy(kind=kind, temperature=0.7)
    weights = {name: parameter.clone() for name, parameter in policy.named_parameters()}
    before = everything_random()
    gaps = probe_of(policy)
    assert 0 < gaps.sampled < 1e-4
    assert gaps.scored < 1e-4
    assert torch.equal(before[0], torch.random.get_rng_state())
    assert before[1:] == everything_random()[1:]
    assert all(torch.equal(weights[name], parameter) for name, parameter in policy.named_parameters())
    assert [parameter.requires_grad for parameter in policy.trainable] == [True] * len(policy.trainable)


def test_the_adapter_takes_part(make_policy, monkeypatch):
    """A sampler that forgets it is noticed, though the adapter of a new run changes nothing."""
    policy = make_policy()
    real = probe.native.generate

    def without_adapter(own, *args):
        with own.reference_mode():
            return real(own, *args)

    monkeypatch.setattr(probe.native, "generate", without_adapter)
    monkeypatch.setattr(probe, "LIMIT", 1e-3)
    with pytest.raises(ConfigError, match="nats off as sampled"):
        probe_of(policy)


@pytest.mark.parametrize("around", [HeadTransform(after=1.5), HeadTransform(before=2.0), HeadTransform(softcap=2.0)])
def test_a_head_that_is_not_the_models_is_refused(make_policy, around):
    policy = make_policy()
    policy._head = around.head(policy.language_model.get_output_embeddings())
    with pytest.raises(ConfigError, match=r"model\.name: 'tiny', of type qwen3.* as scored for training"):
        probe_of(policy)


def test_another_temperature_is_refused(make_policy, monkeypatch):
    policy = make_policy(temperature=0.5)
    real = probe.Decoding
    monkeypatch.setattr(probe, "Decoding", lambda temperature, **kwargs: real(temperature=1.0, **kwargs))
    with pytest.raises(ConfigError, match="nats off as sampled"):
        probe_of(policy)


def test_a_batch_that_is_read_as_a_whole_is_refused(make_policy, monkeypatch):
    """A policy that gives every text of a batch what belongs to the first one."""
    policy = make_policy(kind="gemma")
    policy.supports_masks = policy.supports_slab = False
    real = policy.hidden_states

    def of_the_first(inputs):
        hidden = real(inputs)
        return hidden if len(inputs.ids) == 1 else hidden.roll(1, 0)

    monkeypatch.setattr(policy, "hidden_states", of_the_first)
    with pytest.raises(ConfigError, match="as scored for training, expected at most"):
        probe_of(policy)


def test_padding_that_is_read_is_refused_and_without_padding_the_same_model_agrees():
    """minimax takes the positions of a first layer without keys for those of all."""
    from lib.core.config import Lora, Model
    from lib.model.loading import attach_tuner

    policy = Policy(attach_tuner(built("minimax"), Lora(r=4, targets="all-linear"), Model(name="x"), "plain", 0), 1.0)
    assert not policy.supports_padding
    assert probe_of(policy).sampled < 1e-3
    policy.supports_padding = True
    with pytest.raises(ConfigError, match="nats off as sampled"):
        probe_of(policy)


def test_numbers_that_are_none_are_refused(make_policy):
    policy = make_policy()
    with torch.no_grad():
        policy.language_model.model.norm.weight.fill_(math.nan)
    with pytest.raises((ConfigError, NumericError)):
        probe_of(policy)


def test_what_a_models_own_code_raises_is_one_sentence(make_policy):
    model = make_policy().language_model
    told = r"of type qwen3, cannot be sampled.*AttributeError: no such thing\)"
    with pytest.raises(ConfigError, match=told), readable(model, "x"):
        raise AttributeError("no such thing\nand more of it")
    with pytest.raises(RuntimeError, match="DefaultCPUAllocator"), readable(model, "x"):
        raise RuntimeError("DefaultCPUAllocator: not enough memory")
