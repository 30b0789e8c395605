"""The scripts through Unsloth and through plain transformers: two processes on one model that differ in the backend."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
SCORE = {
    "dataset": {"name": "rows.jsonl", "test_split_size": 6},
    "prompts": {"user": "{question}", "self_correction": "R"},
    "reward": {"fn": "share_of_a.reward"},
    "generation": {
        "max_prompt_length_attempt1": 16, "max_prompt_length_attempt2": 64, "max_new_tokens_attempt1": 10,
        "max_new_tokens_attempt2": 10,
    },
    "lora": {"r": 4, "alpha": 8},
    "optimizer": {"learning_rate": 3e-3},
    "train": {"stage1_steps": 5, "stage2_steps": 5, "stage1_batch_size": 4, "stage2_batch_size": 4},
    "eval": {"max_examples": 6},
}  # fmt: skip
SFT = {
    "dataset": {"name": "chats.jsonl", "test_split_size": 4},
    "lora": {"r": 2},
    "optimizer": {"learning_rate": 0.01, "warmup_steps": 2, "schedule": "linear"},
    "train": {"steps": 6, "batch_size": 4, "max_length": 64},
}


def write_task(folder):
    reward = "def reward(predictions):\n    return [text.count('a') / max(len(text), 1) for text in predictions]\n"
    rows = [{"question": f"{a}+{b}", "answer": str(a + b)} for a in range(6) for b in range(6)]
    turns = [[("user", f"{n}+1"), ("assistant", str(n + 1))] * (1 + n % 3) for n in range(20)]
    chats = [{"messages": [{"role": role, "content": text} for role, text in own]} for own in turns]
    (folder / "share_of_a.py").write_text(reward)
    for name, lines in (("rows", rows), ("chats", chats)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture(scope="module")
def outputs(tiny_folder, tmp_path_factory):
    """The runs of both backends, and what was said meanwhile: ten steps of SCoRe, and SFT with and without packing."""
    assert importlib.util.find_spec("unsloth"), (
        "Unsloth is not installed: pip install --no-deps -r requirements-unsloth.txt"
    )
    folder, running = tmp_path_factory.mktemp("backends"), {}
    write_task(folder)
    for backend in ("plain", "unsloth"):
        model = {"name": str(tiny_folder), "backend": backend, "dtype": "float32", "max_seq_length": 128}
        (folder / f"{backend}.yaml").write_text(yaml.safe_dump(SCORE | {"run_name": backend, "model": model}))
        (folder / f"{backend}-sft.yaml").write_text(
            yaml.safe_dump(SFT | {"run_name": f"{backend}-sft", "model": model})
        )
        commands = [
            ["train.py", "--config", f"{backend}.yaml"],
            ["sft_train.py", "--config", f"{backend}-sft.yaml"],
            ["sft_train.py", "--config", f"{backend}-sft.yaml", f"run_name={backend}-packed", "train.packing=true"],
        ]
        code = f"import sys\nfor sys.argv in {commands!r}:\n    assert __import__(sys.argv[0][:-3]).main() == 0"
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT)}
        running[backend] = subprocess.Popen(
            [sys.executable, "-c", code], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True,
        )  # fmt: skip
    said = {backend: process.communicate()[0] for backend, process in running.items()}
    for backend, process in running.items():
        assert process.returncode == 0, said[backend]
    return folder / "outputs", said


def rows_of(outputs, suffix=""):
    """The rows of metrics.jsonl of both backends, step by step."""
    files = (outputs / f"{backend}{suffix}" / "metrics.jsonl" for backend in ("plain", "unsloth"))
    plain, unsloth = ([json.loads(line) for line in file.read_text().splitlines()] for file in files)
    return list(zip(plain, unsloth, strict=True))


def test_each_run_had_its_backend(outputs):
    said = outputs[1]
    assert "through unsloth" in said["unsloth"] and "through plain" in said["plain"]
    assert "Unsloth" in said["unsloth"] and "Unsloth" not in said["plain"]


def test_score_takes_the_same_steps(outputs):
    rows = rows_of(outputs[0])
    assert len(rows) == 10
    for plain, unsloth in rows:
        for name in ("loss", "kl_attempt1", "kl_attempt2", "grad_norm", "entropy", "reward_attempt2"):
            assert unsloth[name] == pytest.approx(plain[name], abs=1e-4), (plain["global_step"], name)
        assert max(plain["sampler_gap"], unsloth["sampler_gap"]) < 1e-4
    assert {row[f"kl_attempt{attempt}"] for row in rows[0] for attempt in (1, 2)} == {0}
    assert rows[-1][0]["kl_attempt2"] > 1e-4
    assert max(abs(plain["loss"]) for plain, _ in rows) > 1e-3  # so agreement to 1e-4 says something


def test_sft_trains_the_same_labels_and_packs(outputs):
    """Unsloth's trainer alone would let packed rows see each other."""
    for suffix in ("-sft", "-packed"):
        rows = rows_of(outputs[0], suffix)
        assert len(rows) == 6
        for plain, unsloth in rows:
            for name in ("loss", "grad_norm", "mean_token_accuracy"):
                assert unsloth[name] == pytest.approx(plain[name], abs=1e-4), (plain["step"], name)
    first, packed = (rows_of(outputs[0], suffix)[0][0]["loss"] for suffix in ("-sft", "-packed"))
    assert first != pytest.approx(packed, abs=1e-3)
