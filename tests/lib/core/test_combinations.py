"""The table of combinations, whole: what it lets pass works on a tiny model, what it refuses is refused by name."""

import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from conftest import SCRATCH, TEMPLATE, after, long, part
from helpers.weights import move

from engine import Decoding, Turn
from export import check
from lib.core.config import (
    FOLDING,
    FOUR_BITS,
    FUSED,
    OBSTACLES,
    OF_PEFT,
    OWN,
    SLAB,
    UNSLOTH,
    Adapters,
    FromScratch,
    Lora,
    Model,
    ScoreConfig,
    TrainedModel,
    Tuner,
    load,
)
from lib.core.errors import ConfigError
from lib.generators.native import generate
from lib.model.adapters.shelf import BUILDERS
from lib.model.loading import adapted_layers, attach, attach_tuner, load_base, start_backend
from lib.model.merging import merged
from lib.model.policy import Policy
from lib.model.scratch import build

ROOT = Path(__file__).parents[3]
SIZES = {  # 4 bits take multiples of 64
    "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2,
    "num_key_value_heads": 1, "initializer_range": 0.1, "max_position_embeddings": 64,
}  # fmt: skip
KINDS = {
    "llama": SIZES | {"num_key_value_heads": 2, "attention_bias": True},
    "qwen3": SIZES | {"head_dim": 32, "attention_bias": True},
    "phi3": SIZES,
    "gpt2": {"n_embd": 64, "n_layer": 2, "n_head": 2, "n_positions": 64, "initializer_range": 0.1},
}
TRIED_ON = {FOUR_BITS: ["llama"], FUSED: ["phi3", "gpt2"], FOLDING: ["llama", "qwen3"], SLAB: ["qwen3"]}
WHERE = {"where q and k have norms": "qwen3", "in GPT-2's transposed layers": "gpt2"}
NO_PLACE = {("bitfit", "phi3"), ("rope_frequency", "gpt2")}
CASES = [(family, partner, kind) for family in (*OF_PEFT, *OWN) for partner in TRIED_ON for kind in TRIED_ON[partner]]
TEXT = torch.tensor([[5, 6, 7, 8, 9, 10, 11]])
DECODING = Decoding(temperature=1.0, stop_ids=frozenset([2]), pad_id=0, rows=4, columns=24)


def adapters_of(family):
    """The family alone, on all layers that it may have."""
    tuners = {
        "vera": {"r": 8}, "oft": {"block_size": 8}, "tinylora": {"u": 4},
        **{kind: {"kind": kind, "r": 2} for kind in ("lora", "rslora", "dora")},
    }  # fmt: skip
    own = {"head_gates": {"targets": ["q", "k", "v"]}}
    if family not in tuners:
        return {"lora": None, family: own.get(family, {})}
    key = "lora" if "kind" in tuners[family] else family
    where = {"targets": "all-linear"} if key == "lora" else {}
    return {"lora": None, key: where | tuners[family]}


def config_of(name, family, **model):
    return TrainedModel(**{"name": str(name), "backend": "plain", "dtype": "float32"} | model,
                        adapters=adapters_of(family))  # fmt: skip


def told_by(config):
    return [message for _, message in config.conflicts()]


@torch.no_grad()
def logits(policy):
    ids = torch.cat([torch.tensor([policy.prefix], dtype=torch.long), TEXT], 1)
    return policy.model(input_ids=ids).logits[:, -TEXT.shape[1] :]


def tried(config, backend="plain"):
    """A policy that began as its base, gets gradients, moved, and is its base while its adapters are off."""
    base, _ = load_base(config, backend)
    with torch.no_grad():
        before = base(input_ids=TEXT).logits
    policy = Policy(attach(base, config, backend, seed=0), 1.0, backend)
    if not policy.prefix:
        assert (logits(policy) - before).abs().max() < 1e-5
    move(policy.trainable, 0.1)
    policy(after([5, 6, 7, 8], [9, 10, 11]))[0].sum().backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in policy.trainable)
    assert (logits(policy) - before).abs().max() > 1e-3
    with policy.reference_mode():
        assert torch.equal(logits(policy), before)
    return policy


def sampled_as_scored(policy):
    assert policy.supports_slab
    found = generate(policy, {(0,): Turn([5, 6, 7], 6, 2)}, DECODING)
    for completion in found.values():
        with torch.no_grad():
            scored = policy(after([5, 6, 7], completion.ids))[0]
        assert (scored - torch.tensor(completion.logps)).abs().max() < 1e-4


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    found = {kind: tmp_path_factory.mktemp(kind) for kind in KINDS}
    for kind, folder in found.items():
        for each in build(FromScratch(**SCRATCH | {"architecture": KINDS[kind] | {"model_type": kind}}), TEMPLATE, 0):
            each.save_pretrained(folder)
    return found


@pytest.mark.parametrize(("family", "partner", "kind"), part(CASES, 5))
def test_what_the_table_lets_pass_works_and_the_rest_is_refused(family, partner, kind, folders):
    config = config_of(folders[kind], family, load_in_4bit=partner == FOUR_BITS)
    obstacle = OBSTACLES[partner].get(family)
    if (family, kind) in NO_PLACE:
        with pytest.raises(ConfigError, match=f"model.adapters.{family}: a model of type {kind}"):
            tried(config)
        return
    if obstacle and not obstacle.where and partner == FOUR_BITS:
        remedy = "set load_in_4bit: false, or take lora in its place"
        expected = f"not all of these adapters work with {partner} ({family}: {obstacle.reason}): {remedy}"
        assert told_by(config) == [expected]
        return
    is_refused = obstacle and WHERE.get(obstacle.where, kind) == kind
    if is_refused and partner == FUSED:
        with pytest.raises(ConfigError, match=f"model.adapters.{family}: {obstacle.reason}, and .* take lora"):
            tried(config)
        return
    policy = tried(config)
    assert told_by(config) == []
    if partner in (FOUR_BITS, SLAB):
        sampled_as_scored(policy)
    elif partner == FOLDING and is_refused:
        with pytest.raises(
            ConfigError, match=rf"not all of these adapters can be merged \({family}: {obstacle.reason}"
        ):
            merged(policy.model, "outputs/x", TEXT.tolist())
    elif partner == FOLDING:
        before = logits(policy)
        with torch.no_grad():
            assert (merged(policy.model, "outputs/x", TEXT.tolist())(input_ids=TEXT).logits - before).abs().max() < 1e-4


@pytest.mark.parametrize(("kind", "target"), [("phi3", "qkv_proj"), ("gpt2", "c_attn")])
def test_a_fused_layer_is_a_target_by_its_name_and_counted(kind, target, folders):
    config = Model(name=str(folders[kind]), backend="plain", dtype="float32")
    base, lora = load_base(config, "plain")[0], Lora(r=2, targets=[target])
    layers = adapted_layers(base, lora)
    assert [name.rpartition(".")[2] for name in layers] == [target] * 2
    expected = sum(2 * sum(layer.weight.shape) for layer in layers.values())
    model = attach_tuner(base, lora, config, "plain", seed=0)
    assert sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad) == expected


@pytest.mark.parametrize("family", [*OF_PEFT, *OWN])
def test_unsloth_is_refused_or_passed_over_by_name_before_weights_load(family, monkeypatch, caplog):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setitem(sys.modules, "unsloth", None)  # an attempt to import it would end otherwise
    told = told_by(config_of("tiny", family, backend="unsloth"))
    assert start_backend(config_of("tiny", family, backend="auto")) == "plain"
    if family in ("lora", "rslora"):
        assert not told and "unsloth could not be imported" in caplog.text
        return
    reason = f"not all of these adapters work with Unsloth ({family}: {OBSTACLES[UNSLOTH][family].reason})"
    assert told == [f"{reason}: set backend: plain, or keep lora alone"]
    assert f"model.backend: auto uses plain transformers: {reason}" in caplog.text


def test_all_that_stand_in_the_way_are_named_at_once():
    adapters = {"lora": {"kind": "dora"}, "ia3": {}, "bitfit": {}}
    (told,) = told_by(TrainedModel(name="tiny", backend="unsloth", adapters=adapters))
    own, of_peft = (OBSTACLES[UNSLOTH][name].reason for name in ("ia3", "dora"))
    assert f"(dora: {of_peft}; ia3, bitfit: {own})" in told


def through_unsloth(folder):
    """In a process of its own: what Unsloth attaches."""
    for family in ("lora", "rslora"):
        config = config_of(folder, family, backend="unsloth", max_seq_length=64)
        policy = tried(config, start_backend(config))
        sampled_as_scored(policy)
        print(json.dumps([family, type(policy.model).__name__]))


@long
@pytest.mark.skipif(importlib.util.find_spec("unsloth") is None, reason="Unsloth, which is optional, is not installed")
def test_what_unsloth_attaches_works_through_it(folders, tmp_path):
    code = f"from test_combinations import through_unsloth\nthrough_unsloth({str(folders['llama'])!r})"
    path = os.pathsep.join((str(ROOT), str(ROOT / "tests"), str(ROOT / "tests/lib/core")))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONPATH": path}
    ended = subprocess.run(
        [sys.executable, "-c", f"import unsloth\n{code}"], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert '["lora", ' in ended.stdout and '["rslora", ' in ended.stdout


def test_what_never_folds_is_refused_before_weights_load(tmp_path):
    config = load(ScoreConfig, ROOT / "configs" / "tiny_sums.yaml", ["model.adapters.soft_prompt={tokens: 2}"])
    with pytest.raises(
        ConfigError, match=r"--to gguf: not all of these adapters can be merged \(soft_prompt: no weights"
    ):
        check(argparse.Namespace(to="gguf", out=tmp_path / "new"), config, tmp_path)


def test_the_table_has_every_family():
    assert set(OWN) == set(BUILDERS)
    assert {key for key in Adapters.model_fields if key != "warmup_steps"} == {*OWN, "lora", "vera", "oft", "tinylora"}
    assert {family for found in OBSTACLES.values() for family in found} <= {*OF_PEFT, *OWN}
    for family in (*OF_PEFT, *OWN):
        adapters = Adapters(**adapters_of(family))
        assert adapters.names == [family]
        assert not adapters.tuner or isinstance(getattr(adapters, adapters.tuner.key), Tuner)


def test_the_documentation_shows_it():
    text = (ROOT / "docs" / "tasks.md").read_text(encoding="utf-8")
    for partner, obstacles in OBSTACLES.items():
        [cell] = re.findall(rf"^\| {re.escape(partner)}[^|]*\| ([^|]*) \|", text, re.MULTILINE)
        named = set(re.findall(r"`(\w+)`", cell))
        assert named == ({*OF_PEFT, *OWN} - obstacles.keys() if cell.startswith("all but ") else obstacles.keys())
        assert all(obstacle.where in cell for obstacle in obstacles.values()), partner
