"""The scripts through Unsloth and through plain transformers: two processes on one model that differ in the backend."""

import importlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from conftest import long
from helpers import forks
from helpers.weights import move

from data.builders import write_rows

pytestmark = [
    long,
    pytest.mark.skipif(
        importlib.util.find_spec("unsloth") is None,
        reason="Unsloth, which is optional, is not installed: pip install --no-deps $(grep ^unsloth requirements.txt)",
    ),
]
ROOT = Path(__file__).parents[2]
SCORE = {
    "dataset": {"name": "rows.jsonl", "test_split_size": 6},
    "prompts": {"user": "{question}", "self_correction": "R"},
    "reward": {"fn": "share_of_a.reward", "accept_cut": True},
    "generation": {
        "max_prompt_length_attempt1": 16, "max_prompt_length_attempt2": 64, "max_new_tokens_attempt1": 10,
        "max_new_tokens_attempt2": 10,
    },
    "optimizer": {"learning_rate": 3e-3},
    "train": {"stage1_steps": 5, "stage2_steps": 5, "stage1_batch_size": 4, "stage2_batch_size": 4},
    "eval": {"max_examples": 6},
}  # fmt: skip
SFT = {
    "dataset": {"name": "chats.jsonl", "test_split_size": 4},
    "optimizer": {"learning_rate": 0.01, "warmup_steps": 2, "schedule": "linear"},
    "train": {"steps": 6, "batch_size": 4, "max_length": 64},
}
FAMILIES = {  # what a tiny model of this type takes through Unsloth: the slab, and in it engine/llama.py
    "qwen3": (True, True), "llama": (True, True), "gemma": (True, False), "mistral": (False, False),
}  # fmt: skip


def write_task(folder):
    reward = "def reward(predictions):\n    return [text.count('a') / max(len(text), 1) for text in predictions]\n"
    rows = [{"question": f"{a}+{b}", "answer": str(a + b)} for a in range(6) for b in range(6)]
    turns = [[("user", f"{n}+1"), ("assistant", str(n + 1))] * (1 + n % 3) for n in range(20)]
    chats = [{"messages": [{"role": role, "content": text} for role, text in own]} for own in turns]
    (folder / "share_of_a.py").write_text(reward)
    for name, lines in (("rows", rows), ("chats", chats)):
        write_rows(folder / f"{name}.jsonl", lines)


def play(backend, commands):
    """In a process of its own: the scripts, where nothing may be sampled batch by batch, and what Unsloth samples."""
    from engine import sampling

    by_batches, sampling._by_batches = sampling._by_batches, None
    for sys.argv in commands:
        assert importlib.import_module(sys.argv[0][:-3]).main() == 0
    sampling._by_batches = by_batches
    if backend == "unsloth":
        Path("sampled.json").write_text(json.dumps({kind: sampled(kind) for kind in FAMILIES}))


def sampled(kind):
    """What a tiny model samples through Unsloth in its own way and batch by batch, and what scoring makes of it."""
    from conftest import SCRATCH, TEMPLATE, after

    from engine import Decoding, Turn
    from lib.core.config import FromScratch, Lora, Model
    from lib.generators.native import generate
    from lib.model.loading import attach_tuner, load_base
    from lib.model.policy import Policy
    from lib.model.scratch import build

    window = {"sliding_window": 6} if kind == "mistral" else {}
    architecture = {**SCRATCH["architecture"], "model_type": kind, **window}
    for part in build(FromScratch(**{**SCRATCH, "architecture": architecture}), TEMPLATE, seed=0):
        part.save_pretrained(kind)
    config = Model(name=kind, backend="unsloth", dtype="float32", max_seq_length=128)
    base, _ = load_base(config, "unsloth")
    policy = Policy(attach_tuner(base, Lora(r=4, alpha=8), config, "unsloth", 0), 0.7, "unsloth")
    move(policy.trainable, 0.3)
    seen = {
        "takes": [policy.supports_slab, policy.llama is not None],
        "shares": policy.should_share_trunk(20, [5, 5, 5]),
    }
    prompts = [[5, 6, 7, 8, 9, 10, 11, 12, 13], [14, 15, 16]]
    turns = {(i,): Turn(ids, 12, 3) for i, ids in enumerate(prompts)}
    decoding = Decoding(0.7, frozenset([1, 9]), pad_id=0, rows=4, columns=24, seed=3)
    answers = generate(policy, turns, decoding)
    policy.supports_slab = False
    others = generate(policy, turns, decoding)
    return seen | {
        "ids": [[found[path].ids for path in sorted(answers)] for found in (answers, others)],
        "logps": [[found[path].logps for path in sorted(answers)] for found in (answers, others)],
        "scored": [policy(after(prompts[path[0]], answers[path].ids))[0].tolist() for path in sorted(answers)],
    }


@pytest.fixture(scope="module")
def outputs(tiny_folder, tmp_path_factory):
    """The runs of both backends, and what was said meanwhile: ten steps of SCoRe, and SFT with and without packing."""
    folder, running = tmp_path_factory.mktemp("backends"), {}
    write_task(folder)
    for backend in ("plain", "unsloth"):
        model = {"name": str(tiny_folder), "backend": backend, "dtype": "float32", "max_seq_length": 128}
        (folder / f"{backend}.yaml").write_text(
            yaml.safe_dump(SCORE | {"run_name": backend, "model": model | {"adapters": {"lora": {"r": 4, "alpha": 8}}}})
        )
        (folder / f"{backend}-sft.yaml").write_text(
            yaml.safe_dump(SFT | {"run_name": f"{backend}-sft", "model": model | {"adapters": {"lora": {"r": 2}}}})
        )
        commands = [
            ["train.py", "--config", f"{backend}.yaml"],
            ["sft_train.py", "--config", f"{backend}-sft.yaml"],
            ["sft_train.py", "--config", f"{backend}-sft.yaml", f"run_name={backend}-packed", "train.packing=true"],
        ]
        if backend == "plain":  # what Unsloth changes in its process is not to be seen in this one
            running[backend] = forks.call(play, backend, commands, cwd=folder, output=folder / "plain.txt")
            continue
        code = f"from test_unsloth import play\nplay({backend!r}, {commands!r})"
        path = os.pathsep.join((str(ROOT), str(ROOT / "tests"), str(ROOT / "tests/scripts")))
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONPATH": path}
        running[backend] = subprocess.Popen(
            [sys.executable, "-c", code], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True,
        )  # fmt: skip
    said = {"unsloth": running["unsloth"].communicate()[0]}
    running["plain"].join()
    said["plain"] = (folder / "plain.txt").read_text()
    assert (running["unsloth"].returncode, running["plain"].exitcode) == (0, 0), said
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
    assert not any("batch by batch" in each for each in said.values())  # nor was it: see `play`


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


@pytest.mark.parametrize("kind", FAMILIES)
def test_sampling_takes_the_slab_where_the_family_allows_it(outputs, kind):
    """With the samples and log-probs of the other way, and of scoring, which stays Unsloth's own."""
    seen = json.loads((outputs[0].parent / "sampled.json").read_text())[kind]
    assert tuple(seen["takes"]) == FAMILIES[kind]
    assert not seen["shares"]
    ids, ids_by_batches = seen["ids"]
    assert ids == ids_by_batches
    assert len({len(each) for each in ids}) > 1
    assert len({tuple(each) for each in ids}) > 3
    for found in (*seen["logps"], seen["scored"]):
        assert [len(each) for each in found] == [len(each) for each in ids]
        for mine, expected in zip(found, seen["scored"], strict=True):
            assert mine == pytest.approx(expected, abs=1e-4)


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
