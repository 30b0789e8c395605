"""Which back end, GPU and dtype are taken, on imitated machines."""

import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch

from lib.core.config import Model, TrainedModel
from lib.core.errors import ConfigError
from lib.model.loading import has_bfloat16, load_base, start_backend


@pytest.fixture()
def gpu(monkeypatch):
    """A machine with GPUs, on which this process is the fourth; returns the devices that were chosen."""
    chosen = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setenv("LOCAL_RANK", "3")
    return chosen


def unsloth_that(monkeypatch, tmp_path, source):
    """Puts a package `unsloth` with that source before the real one."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "unsloth"]:
        monkeypatch.delitem(sys.modules, name)
    (tmp_path / "unsloth.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)


def model(**settings):
    return TrainedModel(name="any/model", adapters={"lora": {"r": 4}}, **settings)


def test_a_process_takes_its_own_gpu_before_anything_is_loaded(gpu, monkeypatch):
    assert start_backend(model(backend="plain")) == "plain" and gpu == [3]
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)  # each process sees one
    assert start_backend(model(backend="plain")) == "plain" and gpu == [3, 0]


@pytest.mark.parametrize("fails", ["raise RuntimeError('no triton here')", "raise ImportError('no triton here')"])
def test_auto_takes_plain_transformers_if_unsloth_does_not_start(gpu, monkeypatch, tmp_path, caplog, fails):
    unsloth_that(monkeypatch, tmp_path, fails)
    monkeypatch.setenv("RANK", "0")
    assert start_backend(model(backend="auto")) == "plain"
    assert "no triton here" in caplog.text and "pip install -r requirements.txt to train faster" in caplog.text
    with pytest.raises(ConfigError, match=r"no triton here.*set model\.backend=plain"):
        start_backend(model(backend="unsloth"))


def test_a_chosen_attention_needs_plain_transformers(gpu, monkeypatch, tmp_path, caplog):
    unsloth_that(monkeypatch, tmp_path, "")
    assert start_backend(model(backend="auto", attn_implementation="eager")) == "plain"
    assert "model.attn_implementation" in caplog.text
    told = model(backend="unsloth", attn_implementation="eager")._conflicts()
    assert [keys for keys, _ in told] == [("attn_implementation", "backend")]


def test_unsloth_loads_the_model_that_was_named(monkeypatch):
    """Not its copy of it: adapters are refused on weights with another hash, on another back end."""
    asked = {}
    loader = SimpleNamespace(from_pretrained=lambda **settings: asked.update(settings) or (1 / 0))
    fake = ModuleType("unsloth")
    fake.FastLanguageModel = loader
    monkeypatch.setitem(sys.modules, "unsloth", fake)
    with pytest.raises(ZeroDivisionError):
        load_base(Model(name="Qwen/Qwen3-0.6B", revision="abc"), "unsloth")
    assert asked["use_exact_model_name"] and (asked["model_name"], asked["revision"]) == ("Qwen/Qwen3-0.6B", "abc")


@pytest.mark.parametrize("hidden", [None, "", "-1"])
def test_a_driver_that_torch_cannot_use_is_no_silent_run_on_the_cpu(monkeypatch, tmp_path, hidden):
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho 'NVIDIA L4, 535.54.03'\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    if hidden is None:
        with pytest.raises(ConfigError, match=r"NVIDIA L4, 535\.54\.03.*CUDA 13\.0.*580 or later"):
            start_backend(model(backend="auto"))
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
        assert start_backend(model(backend="auto")) == "plain"


@pytest.mark.parametrize("native", [True, False])
def test_bfloat16_that_is_only_emulated_does_not_count(gpu, monkeypatch, native):
    """torch says yes on a T4, unless it is asked without emulation."""
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: including_emulation or native)
    assert has_bfloat16() is native
