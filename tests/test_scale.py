"""The sizes of the cost model are those of real models, its phases as worked out by hand, its page what it prints."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen3Config

from engine import bytes_per_token
from lib.core.config import Lora, Model
from lib.model.loading import attach_tuner

ROOT = Path(__file__).parents[1]
spec = importlib.util.spec_from_file_location("scale", ROOT / "benchmarks/scale.py")
scale = importlib.util.module_from_spec(spec)
spec.loader.exec_module(scale)
A = scale.Assumed()


def skeleton(model):
    """The architecture on the meta device, without numbers."""
    kind = Qwen3Config if model.norms_of_heads else LlamaConfig
    config = kind(
        hidden_size=model.hidden, intermediate_size=model.mlp, num_hidden_layers=model.layers, head_dim=model.head_dim,
        num_attention_heads=model.heads, num_key_value_heads=model.kv_heads, vocab_size=model.vocabulary,
        tie_word_embeddings=model.is_tied,
    )  # fmt: skip
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)


@pytest.mark.parametrize("model", scale.MODELS, ids=lambda model: model.name)
def test_sizes_are_those_of_the_architecture(model):
    few = replace(model, layers=2)  # a layer more adds the same, so two are enough
    real = skeleton(few)
    assert few.parameters == sum(parameter.numel() for parameter in real.parameters())
    assert few.kv_bytes == bytes_per_token(real)


def test_an_adapter_is_as_large_as_pefts():
    few = replace(scale.MODELS[0], layers=2, vocabulary=100)
    targets = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    config = Model(name="skeleton", backend="plain")
    adapted = attach_tuner(
        skeleton(few).to_empty(device="cpu"), Lora(r=16, alpha=16, targets=targets), config, "plain", 0
    )
    assert few.adapter(16) == sum(value.numel() for name, value in adapted.named_parameters() if "lora_" in name)


def test_published_counts():
    counts = {model.name: round(model.parameters / 1e9, 1) for model in scale.MODELS}
    assert counts == {"Qwen3-0.6B": 0.6, "Qwen3-1.7B": 1.7, "Qwen3-4B": 4.0, "Qwen3-8B": 8.2, "Qwen3-14B": 14.8,
                      "Qwen3-32B": 32.8, "Llama-3.3-70B": 70.6}  # fmt: skip


def test_phases_by_hand():
    small = scale.MODELS[0]
    a = replace(A, tail=1, token_overhead=0, prompt=0, prompts=1, group=1, answer=100, decode_efficiency=1)
    read = 2 * (small.body + small.vocabulary * small.hidden) + 50 * small.kv_bytes  # for each of the 100 tokens
    assert scale.generating(small, 1, 1, 1, a) == pytest.approx(100 * read / 3.35e12)
    assert scale.syncing(small, 16, A, adapter_only=True) == (
        pytest.approx(0.05 + 2 * small.adapter(16) / 50e9),
        2 * small.adapter(16),
    )
    whole, size = scale.syncing(small, 16, A, adapter_only=False)
    assert size == 2 * small.parameters and whole == pytest.approx(size / 50e9 + 3 * size / (3.35e12 * 0.6))
    twice = scale.training(small, 1, 20, A) / scale.training(small, 1, 10, A)
    assert twice == pytest.approx(2)


def test_more_of_what_is_scarce_is_never_slower_and_what_does_not_fit_is_told():
    for model in scale.MODELS:
        for gpus in (8, 64):
            one = scale.step(model, gpus, A)
            for name in ("flops", "bandwidth", "network", "link", "memory"):
                more = replace(A, **{name: 2 * getattr(A, name)})
                assert scale.step(model, gpus, more, one.shards).seconds <= one.seconds * 1.0001, (model.name, name)
    assert scale.fits(scale.MODELS[-1], A) == 4 and scale.fits(scale.MODELS[-1], replace(A, memory=16e9)) == 0
    slow = scale.thresholds(scale.MODELS[-1], replace(A, network=1e9))
    fast = scale.thresholds(scale.MODELS[-1], A)
    assert slow["adapter-only sync"] <= 32 and fast["adapter-only sync"] is None


def test_the_page_has_the_thresholds_and_every_constant_its_source():
    page = (ROOT / "docs/gpu.md").read_text(encoding="utf-8")
    assert scale.what_pays(A) in page
    assert scale.sources().keys() == {field.name for field in scale.fields(scale.Assumed)}
