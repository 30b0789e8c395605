"""benchmarks/gpu.py at tiny sizes on a CPU: every check that it makes of a policy runs, and reports."""

import json
import os
import subprocess
import sys
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from conftest import long

from benchmarks import gpu
from benchmarks.gpu import CHECKS, Report
from engine import Head
from lib.model import policy as policy_module

ROOT = Path(__file__).parents[2]


@long
def test_the_checks_of_a_gpu_run_on_a_cpu():
    command = [sys.executable, "benchmarks/gpu.py", "--cpu", "--jobs", "2"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
    assert (ended.returncode, {line["check"] for line in lines}) == (0, set(CHECKS)), ended.stdout + ended.stderr
    assert all((line["figures"] or "skipped" in line) and not line["differs"] for line in lines)


PRETENDED = """
import os
import torch
torch.cuda.is_available = lambda: os.environ.get("CUDA_VISIBLE_DEVICES") != ""
"""


@long
def test_the_tests_are_collected_on_a_machine_with_a_gpu(tmp_path):
    (tmp_path / "pretended_gpu.py").write_text(PRETENDED, encoding="utf-8")
    both = ["tests/lib/rl/test_reviews.py", "tests/lib/rl/test_swaps.py"]  # on any device, and on the CPU
    command = [sys.executable, "-m", "pytest", "-p", "pretended_gpu", "--collect-only", "-q", *both]
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "0", "PYTHONPATH": str(tmp_path)}
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_a_figure_out_of_its_bounds_is_reported(tmp_path):
    report = Report(tmp_path, tmp_path, tiny=True)
    report.expect("within", 1.0, most=1.0, least=1.0)
    assert report.differs == []
    for value in (2.0, float("nan")):
        report.expect("gap", value, most=1.0)
    assert report.differs == ["gap: 2, expected at most 1", "gap: nan, expected at most 1"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """The folder of the model that the checks share."""
    folder = tmp_path_factory.mktemp("gpu")
    gpu.prepare(folder, tiny=True)
    return folder


def wrong_scores(patch, off=0.07):
    """Scored log-probs are `off` nats wrong: less than what the start-up probe itself refuses."""
    real = policy_module.token_scores
    patch.setattr(policy_module, "token_scores", lambda *inputs: (real(*inputs)[0] + off, *real(*inputs)[1:]))


def wrong_scores_of_unsloth(patch):
    wrong_scores(patch)
    load = gpu.policy_of
    patch.setattr(gpu, "policy_of", lambda report, _backend, **settings: load(report, "plain", **settings))


def wrong_gradients(patch):
    real = Head.vjp
    patch.setattr(Head, "vjp", lambda self, by_logit: 1.1 * real(self, by_logit))


def growing_memory(patch):
    reserved = count(2**30, 2**31)
    patch.setattr(gpu, "policy_of", lambda _report: None)
    patch.setattr(gpu, "written", lambda *_: None)
    patch.setattr(torch.cuda, "is_available", lambda: True)
    patch.setattr(torch.cuda, "memory_reserved", lambda: next(reserved))


def no_collection(patch):
    patch.setattr(gpu.subprocess, "run", lambda *_, **__: SimpleNamespace(stdout="ERROR here", returncode=2))


def broken_script(patch):
    def ran(*_words, **_variables):
        raise RuntimeError("train.py ended with 1")

    patch.setattr(gpu, "ran", ran)


def scripts_that_wrote(*files):
    """Scripts that do nothing, and the rows of the files that they would have written."""

    def fault(patch):
        rows = iter(files)
        patch.setattr(gpu, "ran", lambda *_, **__: "1.0 GiB  in all")
        patch.setattr(gpu.runpy, "run_path", lambda *_, **__: None)
        patch.setattr(gpu.subprocess, "Popen", lambda *_, **__: SimpleNamespace(
            poll=lambda: 0, send_signal=lambda _signal: None, wait=lambda: 0))  # fmt: skip
        patch.setattr(gpu, "rows_of", lambda _file: next(rows))

    return fault


def rows_of(*losses, **fields):
    step = {"grad_norm": 1.0, "kl_attempt1": 0.0, "sampler_gap": 0.0, "seconds_generate": 1.0, "tokens": 9} | fields
    return [step | {"loss": loss} for loss in losses]


FAULTS = {
    "machine": (no_collection, "exit status: 2"),
    "probe": (wrong_scores, "scored - own forward"),
    "decode": (wrong_scores, "sampled - scored"),
    "gradients": (wrong_gradients, "relative difference"),
    "head": (wrong_gradients, "error of the gradient"),
    "memory": (growing_memory, "growth from the fifth"),
    "tiny": (scripts_that_wrote(rows_of(1, 2), rows_of(3, 2), rows_of(1, 2)), "resumed: difference of the first loss"),
    "step": (broken_script, "train.py ended with 1"),
    "unsloth": (wrong_scores_of_unsloth, "scored - own forward"),
    "plain": (scripts_that_wrote(rows_of(1, 2, grad_norm=0.0)), "gradient norm of the first step"),
    "peak": (scripts_that_wrote(rows_of(1)), "steps: 1, expected at least 2"),
    "sft": (scripts_that_wrote(rows_of(1, 2), rows_of(2, 1)), "loss of the last step less the first"),
    "four_bits": (lambda patch: wrong_scores(patch, off=0.2), "Training would follow wrong numbers"),
}


@pytest.mark.parametrize("name", CHECKS)
def test_a_check_reports_an_injected_fault(shared, name, monkeypatch, capsys):
    fault, told = FAULTS[name]
    monkeypatch.setattr(gpu, "trained", gpu.trained if name == "plain" else lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["gpu.py"])
    fault(monkeypatch)
    gpu.run_one(name, shared, tiny=True)
    line = json.loads(capsys.readouterr().out.splitlines()[-1])
    if "skipped" in line:
        pytest.skip(line["skipped"])
    assert any(told in text for text in line["differs"]), line
