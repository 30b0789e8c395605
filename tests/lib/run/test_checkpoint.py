import copy
import functools
import json
import os
import random
import re
import resource
import shutil
import signal
import threading
import time
from collections import namedtuple
from pathlib import Path

import numpy as np
import peft
import pytest
import torch
import yaml
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from conftest import fewer, part
from helpers.children import exit_code, fork, in_child
from helpers.ports import free_port
from transformers import Qwen3Config, Qwen3ForCausalLM

from lib.core.config import Outputs
from lib.core.config.section import Section
from lib.core.errors import ConfigError, NumericError, StorageError
from lib.core.interrupts import Interrupts
from lib.run import checkpoint
from lib.run.adapter_files import load_adapter
from lib.run.checkpoint import Checkpoints
from lib.run.directory import adapter_in, check_config, checkpoint_in, checkpoints_in, is_weights_only
from lib.run.machine import PACKAGES
from lib.run.manifest import MANIFEST, _write_manifest, problems, read_manifest, seal
from lib.run.runlog import RunLog, read_jsonl

torch.set_num_threads(1)
WEIGHTS = {
    MANIFEST, "adapter_model.safetensors", "adapter_config.json", "extra_adapters.safetensors", "extra_adapters.json",
}  # fmt: skip


@functools.cache
def base_model(hidden: int = 16) -> Qwen3ForCausalLM:
    shape = {"hidden_size": hidden, "intermediate_size": 16, "num_attention_heads": 2, "num_key_value_heads": 1}
    torch.manual_seed(0)
    return Qwen3ForCausalLM(Qwen3Config(vocab_size=32, num_hidden_layers=2, head_dim=8, **shape))


def adapted(seed: int = 0, hidden: int = 16, gain: bool = False, **lora) -> peft.PeftModel:
    base = copy.deepcopy(base_model(hidden))
    torch.manual_seed(seed)
    settings = {"r": 2, "lora_alpha": 4, "lora_dropout": 0.1, "target_modules": ["q_proj", "v_proj"], **lora}
    model = peft.get_peft_model(base, peft.LoraConfig(**settings))
    model.base_model.model.model.norm.weight.requires_grad_(gain)
    return model


class Policy(torch.nn.Module):
    def __init__(self, model: torch.nn.Module):
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=ids, labels=ids).loss


class Counter:
    def __init__(self):
        self.step = 0

    def state_dict(self):
        return {"step": self.step}

    def load_state_dict(self, state):
        self.step = state["step"]


class Run:
    """A training run in which every step draws from every source of randomness."""

    def __init__(self, directory: Path, resume: bool = False, keep: int = 2, **options):
        self.accelerator = Accelerator(cpu=True)
        rank = self.accelerator.process_index
        self.policy = Policy(adapted(gain=True))
        trained = [parameter for parameter in self.policy.parameters() if parameter.requires_grad]
        self.optimizer = torch.optim.AdamW(trained, lr=0.01)
        schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: 1 / (1 + step))
        self.policy, self.optimizer, self.schedule = self.accelerator.prepare(self.policy, self.optimizer, schedule)
        random.seed(rank), np.random.seed(rank), torch.manual_seed(rank)
        self.noise = torch.Generator().manual_seed(rank)
        self.counter = Counter()
        self.log = RunLog(directory, resume=resume, is_main=self.accelerator.is_main_process)
        self.log.write_config("seed: 0\n", now=False)
        model = self.accelerator.unwrap_model(self.policy).model
        self.checkpoints = Checkpoints(
            directory, self.accelerator, model, self.optimizer, self.log, keep=keep, **options
        )
        self.checkpoints.register(noise=self.noise, counter=self.counter)
        self.resumed = self.checkpoints.resume() if resume else None

    def train(self, until: int, save_every: int = 0) -> "Run":
        while self.counter.step < until:
            self.counter.step += 1
            offset = random.randrange(8) + np.random.randint(8) + int(torch.randint(8, (), generator=self.noise))
            ids = (torch.randint(32, (2, 5)) + offset) % 32
            loss = self.policy(ids)
            self.accelerator.backward(loss)
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.schedule.step()
            self.log.write("metrics", {"step": self.counter.step, "loss": loss})
            self.log.sync()
            if save_every and self.counter.step % save_every == 0:
                self.save()
        return self

    def save(self, stage: int = 1) -> Path:
        return self.checkpoints.save(stage, self.counter.step)

    def state(self) -> dict:
        numpy_state = np.random.get_state()
        return {
            "weights": self.accelerator.unwrap_model(self.policy).state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "random": list(map(str, random.getstate())),
            "numpy": [numpy_state[1].tolist(), *map(str, numpy_state[2:])],
            "torch": torch.get_rng_state(),
            "noise": self.noise.get_state(),
            "step": self.counter.step,
        }

    def close(self) -> dict:
        self.log.close()
        return copy.deepcopy(self.state())


def same(left, right) -> bool:
    """Equal to the last bit, at any depth."""
    if torch.is_tensor(left):
        return left.dtype == right.dtype and torch.equal(left, right)
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return left == right


def rows_of(directory: Path) -> list[dict]:
    rows, bad = read_jsonl(directory / "metrics.jsonl")
    assert bad == 0
    return [{key: value for key, value in row.items() if key != "time"} for row in rows]


@pytest.fixture(scope="module")
def straight(tmp_path_factory) -> tuple[dict, list[dict]]:
    """State and log of six uninterrupted steps."""
    directory = tmp_path_factory.mktemp("straight")
    return Run(directory).train(6).close(), rows_of(directory)


@pytest.fixture(scope="module")
def two_saved(tmp_path_factory) -> Path:
    """A run folder with checkpoints at steps 1 and 2."""
    directory = tmp_path_factory.mktemp("saved")
    Run(directory).train(2, save_every=1).close()
    return directory


@pytest.fixture
def run_dir(two_saved, tmp_path) -> Path:
    return shutil.copytree(two_saved, tmp_path / "run")


def test_a_file_that_a_kill_left_is_removed(run_dir):
    leftover = run_dir / "stage1" / "adapter_model.safetensors.tmp"
    leftover.write_bytes(b"half")
    Run(run_dir, resume=True).close()
    assert not leftover.exists()


def test_the_checkpoint_that_is_resumed_counts_as_saved_once_more(tmp_path):
    """A kill may have come between its rename and what is done with it, such as a push."""
    saved = []
    Run(tmp_path, saved=saved.append).train(2, save_every=1).close()
    resumed = Run(tmp_path, resume=True, saved=saved.append)
    resumed.close()
    assert saved == [tmp_path / "stage1/step_1", tmp_path / "stage1/step_2", resumed.resumed]


def test_resume_is_bit_exact(tmp_path, straight):
    Run(tmp_path).train(3, save_every=3).train(5).close()
    random.seed(99), np.random.seed(99), torch.manual_seed(99)
    resumed = Run(tmp_path, resume=True)
    assert resumed.resumed == tmp_path / "stage1" / "step_3"
    assert same(resumed.train(6).close(), straight[0])
    assert rows_of(tmp_path) == straight[1]


def test_saving_changes_nothing(tmp_path, straight):
    assert same(Run(tmp_path).train(6, save_every=1).close(), straight[0])


def test_every_item_of_the_state_matters(run_dir, straight):
    """Without one item the resumed run ends elsewhere: the comparison above can see each of them."""
    changes = {
        "random": lambda run: random.seed(5),
        "numpy": lambda run: np.random.seed(5),
        "torch": lambda run: torch.manual_seed(5),
        "noise": lambda run: run.noise.manual_seed(5),
        "schedule": lambda run: run.schedule.load_state_dict({**run.schedule.state_dict(), "last_epoch": 0}),
        "optimizer": lambda run: run.optimizer.state.clear(),
        "gain": lambda run: run.policy.model.base_model.model.model.norm.weight.data.add_(0.01),
    }
    for name, change in changes.items():
        run = Run(shutil.copytree(run_dir, run_dir.parent / name), resume=True)
        change(run)
        assert not same(run.train(6).close()["weights"], straight[0]["weights"]), name


def test_random_state_that_cannot_be_restored_is_an_error(run_dir, monkeypatch):
    """Accelerate alone would go on without it."""

    def refuse(state):
        raise TypeError("not a state")

    monkeypatch.setattr(np.random, "set_state", refuse)
    with pytest.raises(ConfigError, match=r"step_2: cannot be loaded \(not a state\)"):
        Run(run_dir, resume=True)


# -- a run folder of someone else


class Hostile:
    def __reduce__(self):
        return Path("pwned").touch, ()


def reseal(folder: Path, **changes) -> None:
    """Changes a manifest as its author would, with a checksum that fits."""
    manifest = {key: value for key, value in read_manifest(folder).items() if key != "files"}
    seal(folder, **manifest | changes)
    if "files" in changes:
        manifest["files"] = changes["files"]
        _write_manifest(folder, manifest)


@pytest.mark.parametrize(
    ("fact", "value"),
    [
        ("best", {"../precious": {"folder": "stage1/step_1", "score": 1.0}}),
        ("best", {"stage1": {"folder": "../precious", "score": 1.0}}),
        ("best", {"stage1": "stage1/step_1"}),
        ("files", {"../precious/best/text": {"size": 4, "sha256": ""}}),
        ("log_offsets", {"metrics": -1}),
        ("world_size", 0),
    ],
)
def test_a_manifest_cannot_lead_out_of_its_folder(run_dir, tmp_path, fact, value):
    """With such a key of `best`, a resume deleted ../precious/best."""
    precious = tmp_path / "precious/best/text"
    precious.parent.mkdir(parents=True)
    precious.write_text("mine")
    shutil.rmtree(run_dir / "stage1/step_1")
    reseal(run_dir / "stage1/step_2", **{fact: value})
    with pytest.raises(ConfigError, match="every checkpoint is broken"):
        Run(run_dir, resume=True)
    (problem,) = problems(run_dir / "stage1/step_2")
    assert re.fullmatch(rf"MANIFEST.json is damaged \({fact}\..*\)|MANIFEST.json is damaged \({fact}: .*\)", problem)
    assert precious.read_text() == "mine" and len(rows_of(run_dir)) == 2


def test_a_manifest_that_is_nested_too_deep_is_damaged(run_dir):
    (run_dir / "stage1/step_2" / MANIFEST).write_text('{"a":' * 100_000)
    assert problems(run_dir / "stage1/step_2") == [f"{MANIFEST} is damaged (it is nested too deep)"]


@pytest.mark.parametrize("name", ["optimizer.bin", "objects_0.bin", "random_states_0.pkl", "scheduler.bin"])
@pytest.mark.parametrize("content", [Hostile(), ["nothing", "that", "fits"]], ids=["code", "a list"])
def test_a_hostile_pickle_is_one_sentence(run_dir, tmp_path, monkeypatch, name, content):
    monkeypatch.chdir(tmp_path)
    path = run_dir / "stage1/step_2"
    torch.save(content, path / name)
    reseal(path)
    with pytest.raises(ConfigError, match=r"step_2: cannot be loaded \(.*this script did not save them") as caught:
        Run(run_dir, resume=True)
    assert "\n" not in str(caught.value) and not Path("pwned").exists()


def test_a_stage_that_is_a_link_is_refused(run_dir, tmp_path):
    shutil.move(run_dir / "stage1", tmp_path / "elsewhere")
    (run_dir / "stage1").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="stage1: is a link, expected a folder of this run"):
        Run(run_dir, resume=True)


def test_the_adapter_is_standard_and_small(run_dir):
    run = Run(run_dir, resume=True)
    folder = run.resumed
    assert sorted(path.name for path in folder.iterdir() if path.suffix != ".md") == [
        MANIFEST, "adapter_config.json", "adapter_model.safetensors", "extra_adapters.json",
        "extra_adapters.safetensors",
        "objects_0.bin", "optimizer.bin", "random_states_0.pkl", "scheduler.bin",
    ]  # fmt: skip
    loaded = peft.PeftModel.from_pretrained(copy.deepcopy(base_model()), folder)
    here = peft.get_peft_model_state_dict(run.policy.model)
    assert same(dict(peft.get_peft_model_state_dict(loaded)), dict(here)) and len(here) == 8
    manifest = json.loads((folder / MANIFEST).read_text())
    assert manifest["environment"].keys() == {"python", *PACKAGES, "device", "threads"}
    assert manifest["log_offsets"]["metrics"] == (run_dir / "metrics.jsonl").stat().st_size


def test_a_second_adapter_is_not_part_of_the_state(run_dir):
    run = Run(run_dir, resume=True)
    run.policy.model.add_adapter("opponent", peft.LoraConfig(r=4, target_modules=["q_proj"]))
    folder = run.train(3).save()
    assert not (folder / "opponent").exists()
    load_adapter(adapted(gain=True), folder)


def test_stages_order_and_pruning(tmp_path):
    run = Run(tmp_path, keep=2).train(4, save_every=2)
    run.save(stage=2)
    run.train(5).save(stage=2)
    run.train(6).save(stage=2)
    left = {f"{path.parent.name}/{path.name}": is_weights_only(path) for path in checkpoints_in(tmp_path)}
    kept = ["stage2/step_6", "stage2/step_5", "stage1/step_4", "stage1/step_2"]
    assert left == dict.fromkeys(kept, False) | {"stage2/step_4": True}
    assert run.checkpoints.newest() == tmp_path / "stage2" / "step_6"


def test_of_an_older_checkpoint_the_weights_stay(run_dir):
    (Run(run_dir, resume=True).train(4, save_every=1)).close()
    older = run_dir / "stage1/step_1"
    assert {path.name for path in older.iterdir() if path.suffix != ".md"} == WEIGHTS and problems(older) == []
    load_adapter(adapted(gain=True), older)
    assert adapter_in(older) == older
    run = Run(run_dir, resume=True)
    assert run.resumed.name == "step_4"
    message = r"step_1: of this checkpoint only the weights were kept: give one .*step_4 or .*step_3\), or start a new"
    with pytest.raises(ConfigError, match=message):
        run.checkpoints.resume(older)
    manifest = read_manifest(run_dir / "stage1/step_4")
    _write_manifest(run_dir / "stage1/step_4", manifest | {"weights_only": True})  # as if killed while it was reduced
    assert run.checkpoints.newest().name == "step_3"
    with pytest.raises(ConfigError, match=r"step_4: of this checkpoint only the weights were kept"):
        run.checkpoints.resume(run_dir / "stage1/step_4")
    for missing, error in ((checkpoint_in, r"--resume .*step_9: .*\([^ ]*step_3\)"), (adapter_in, "step_1$")):
        arguments = (run_dir, run_dir / "stage1/step_9")[missing is adapter_in :]
        with pytest.raises(ConfigError, match=error):
            missing(*arguments)


def test_the_manifest_says_what_can_be_resumed(run_dir):
    run = Run(run_dir, resume=True)
    (run_dir / "stage1/step_2/optimizer.bin").unlink()
    with pytest.raises(ConfigError, match=r"step_2 is broken: optimizer.bin is missing; resume from another"):
        run.checkpoints.resume(run_dir / "stage1/step_2")
    _write_manifest(run_dir / "stage1/step_1", read_manifest(run_dir / "stage1/step_1") | {"weights_only": True})
    with pytest.raises(ConfigError, match=r"step_1: of this checkpoint only the weights .* \([^ ]*step_2\)"):
        checkpoint_in(run_dir, run_dir / "stage1/step_1")  # as if killed while it was reduced


def test_where_all_weights_are_trained_older_checkpoints_are_deleted(tmp_path):
    model = copy.deepcopy(base_model())
    accelerator, optimizer = Accelerator(cpu=True), torch.optim.SGD(model.parameters())
    model, optimizer = accelerator.prepare(model, optimizer)
    with RunLog(tmp_path, resume=False) as log:
        checkpoints = Checkpoints(tmp_path, accelerator, model, optimizer, log)
        for step in range(3):
            checkpoints.save(1, step)
    assert [path.name for path in checkpoints_in(tmp_path)] == ["step_2", "step_1"]


def test_what_one_that_stays_calls_the_best_stays(tmp_path):
    """Steps 1 to 5 score 3, 4, 1, 5, 2."""
    run = Run(tmp_path, keep=2)
    left = []
    for step, score in enumerate((3, 4, 1, 5, 2), start=1):
        run.checkpoints.consider(1, f"stage1/step_{step}", score)
        run.train(step).save()
        found = "".join(path.name[-1] for path in checkpoints_in(tmp_path) if not is_weights_only(path))
        left.append((found, os.readlink(tmp_path / "stage1" / "best")))
        assert (tmp_path / "best").resolve() == (tmp_path / "stage1" / "best").resolve()
    # step 3 still calls step 2 the best when step 4 is
    assert left == [("1", "step_1"), ("21", "step_2"), ("32", "step_2"), ("432", "step_4"), ("54", "step_4")]


def test_a_resume_finds_its_own_best(run_dir):
    run = Run(run_dir, resume=True)
    run.checkpoints.consider(1, "stage1/step_2", 1.0)
    run.save()
    run.train(3)
    run.checkpoints.consider(1, "stage1/step_3", 2.0)
    run.checkpoints.consider(2, "stage1/step_3", 2.0)
    newest = run.save()
    run.close()
    assert [os.readlink(run_dir / f"stage{stage}" / "best") for stage in (1, 2)] == ["step_3", "../stage1/step_3"]
    flip(newest / "optimizer.bin")
    run = Run(run_dir, resume=True)
    assert run.checkpoints.best == {"stage1": {"folder": "stage1/step_2", "score": 1.0}}
    assert os.readlink(run_dir / "stage1" / "best") == "step_2" and not (run_dir / "stage2" / "best").is_symlink()


def test_links_that_a_copy_made_folders_are_links_again(run_dir, tmp_path):
    run = Run(run_dir, resume=True)
    run.checkpoints.consider(1, "stage1/step_2", 1.0)
    run.save()
    copy = shutil.copytree(run_dir, tmp_path / "copy")  # follows links
    assert not (copy / "best").is_symlink()
    assert Run(copy, resume=True).resumed and os.readlink(copy / "best") == "stage1/best"


def test_weights_and_optimizer_alone_come_back(run_dir):
    run = Run(run_dir, resume=True)
    then = copy.deepcopy(run.state())
    now = copy.deepcopy(run.train(4).state())
    run.checkpoints.load_weights(run_dir / "stage1" / "step_2")
    assert same(run.state(), now | {name: then[name] for name in ("weights", "optimizer")})
    flip(run_dir / "stage1" / "step_1" / "optimizer.bin")
    with pytest.raises(ConfigError, match=r"step_1 is broken: optimizer.bin is damaged"):
        run.checkpoints.load_weights(run_dir / "stage1" / "step_1")


def test_saving_the_same_step_again_replaces_it(run_dir):
    run = Run(run_dir, resume=True)
    run.log.write("metrics", {"late": True})
    assert run.save() == run.resumed and problems(run.resumed) == []
    run.log.close()
    assert Run(run_dir, resume=True).resumed == run.resumed and len(rows_of(run_dir)) == 3


def test_before_the_first_checkpoint_resume_starts_over(tmp_path, straight):
    Run(tmp_path).train(2).close()
    run = Run(tmp_path, resume=True)
    assert run.resumed is None
    assert same(run.train(6).close(), straight[0]) and rows_of(tmp_path) == straight[1]


def test_rows_of_a_run_without_checkpoints_are_never_dropped(run_dir):
    shutil.rmtree(run_dir / "stage1")
    with pytest.raises(ConfigError, match=r"holds the rows of a run, but no checkpoint to resume from: restore"):
        Run(run_dir, resume=True)
    assert [row["step"] for row in rows_of(run_dir)] == [1, 2]


def test_going_back_sets_newer_checkpoints_aside(run_dir):
    run = Run(run_dir, resume=True)
    run.checkpoints.resume(run_dir / "stage1" / "step_1")
    assert (run_dir / "stage1" / "step_2.aside" / MANIFEST).exists()
    run.train(2).save()
    assert run.checkpoints.newest() == run_dir / "stage1" / "step_2"


# -- damage


def flip(path: Path, position: float = 0.5) -> None:
    data = bytearray(path.read_bytes())
    data[int(position * (len(data) - 1))] ^= 4
    path.write_bytes(data)


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def only_weights(folder: Path) -> None:
    for path in folder.iterdir():
        if not path.name.startswith("adapter_"):
            path.unlink()


def empty(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


DAMAGE = {
    "empty folder": (empty, "the folder is empty"),
    "truncated weights": (lambda f: truncate(f / "adapter_model.safetensors"), "adapter_model.safetensors has "),
    "truncated optimizer": (lambda f: truncate(f / "optimizer.bin"), "optimizer.bin has "),
    "missing optimizer": (lambda f: (f / "optimizer.bin").unlink(), "optimizer.bin is missing"),
    "missing rng": (lambda f: (f / "random_states_0.pkl").unlink(), "random_states_0.pkl is missing"),
    "missing scheduler": (lambda f: (f / "scheduler.bin").unlink(), "scheduler.bin is missing"),
    "missing objects": (lambda f: (f / "objects_0.bin").unlink(), "objects_0.bin is missing"),
    "only weights": (only_weights, "MANIFEST.json is missing"),
    "flipped bit in weights": (lambda f: flip(f / "adapter_model.safetensors"), "adapter_model.safetensors is damaged"),
    "flipped bit in optimizer": (lambda f: flip(f / "optimizer.bin"), "optimizer.bin is damaged"),
    "missing manifest": (lambda f: (f / MANIFEST).unlink(), "MANIFEST.json is missing"),
    "truncated manifest": (lambda f: truncate(f / MANIFEST), "MANIFEST.json is damaged"),
    "unreadable weights": (
        lambda f: [(f / "adapter_model.safetensors").unlink(), (f / "adapter_model.safetensors").mkdir()],
        "adapter_model.safetensors ",
    ),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_named_and_the_previous_checkpoint_is_used(run_dir, straight, caplog, kind):
    damage, reason = DAMAGE[kind]
    damage(run_dir / "stage1" / "step_2")
    run = Run(run_dir, resume=True)
    assert run.resumed == run_dir / "stage1" / "step_1"
    assert "step_2 IS BROKEN" in caplog.text and reason in caplog.text
    assert same(run.train(6, save_every=2).close(), straight[0])
    assert rows_of(run_dir) == straight[1]


def test_every_flipped_bit_is_seen(two_saved, tmp_path):
    folder = two_saved / "stage1" / "step_2"
    for path in folder.iterdir():
        for position in (0, 0.01, 0.3, 0.77, 1):
            shutil.copytree(folder, tmp_path / "copy")
            flip(tmp_path / "copy" / path.name, position)
            assert path.name in problems(tmp_path / "copy")[0], (path.name, position)
            shutil.rmtree(tmp_path / "copy")
    assert problems(folder) == []


def test_all_broken_is_an_error_not_a_fresh_start(run_dir):
    for folder in (run_dir / "stage1").iterdir():
        flip(folder / "optimizer.bin")
    with pytest.raises(ConfigError, match="every checkpoint is broken"):
        Run(run_dir, resume=True)
    assert len(rows_of(run_dir)) == 2


def test_broken_ones_do_not_count_when_pruning(run_dir):
    run = Run(run_dir, resume=True)
    flip(run_dir / "stage1" / "step_2" / "optimizer.bin")
    run.train(3).save()
    assert [path.name for path in checkpoints_in(run_dir)] == ["step_3", "step_2", "step_1"]


# -- kill -9


EVENTS = [(os, name) for name in ("fsync", "replace", "unlink", "rmdir", "mkdir", "write")] + [(torch, "save")]


def kill_at(patch: pytest.MonkeyPatch, number: int) -> list[int]:
    """Count calls that change the disk; the `number`-th one never happens, for the process is killed."""
    calls = [0]

    def wrap(real):
        def call(*arguments, **options):
            calls[0] += 1
            if calls[0] == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **options)

        return call

    patch.setattr(os, "fsync", lambda _: None)  # slow, and of no effect on what another process sees after a kill
    for module, name in EVENTS:
        patch.setattr(module, name, wrap(getattr(module, name)))
    return calls


def count_events(directory: Path, until: int, save_every: int) -> int:
    with pytest.MonkeyPatch.context() as patch:
        calls = kill_at(patch, 0)
        Run(directory, resume=True).train(until, save_every).close()
    return calls[0]


def killed_run(directory: Path, number: int, until: int, save_every: int) -> None:
    def child():
        with pytest.MonkeyPatch.context() as patch:
            kill_at(patch, number)
            Run(directory, resume=True).train(until, save_every)

    assert in_child(child) == -signal.SIGKILL


def test_kill_in_every_phase_of_saving_leaves_whole_checkpoints(two_saved, tmp_path):
    events = count_events(shutil.copytree(two_saved, tmp_path / "count"), 3, 1)
    assert events > 20
    newest, reduced = set(), set()
    for number in part(range(1, events + 1), every=3):
        directory = shutil.copytree(two_saved, tmp_path / str(number))
        killed_run(directory, number, 3, 1)
        found = list(checkpoints_in(directory))
        assert len(found) >= 2 and [problems(folder) for folder in found] == [[]] * len(found), number
        newest.add(found[0].name)
        oldest = directory / "stage1/step_1"
        reduced.add(is_weights_only(oldest))
        load_adapter(adapted(gain=True), oldest)
        if found[0].name == "step_3":  # what the kill has left to do is done by the next start
            Run(directory, resume=True).close()
            assert {path.name for path in oldest.iterdir() if path.suffix != ".md"} == WEIGHTS, number
        shutil.rmtree(directory)
    assert newest == {"step_2", "step_3"} and reduced == {True, False}


def test_kill_anywhere_and_the_same_command_ends_with_the_same_bits(tmp_path, straight):
    events = count_events(tmp_path / "count", 6, 2)
    points = random.Random(1).sample(range(1, events + 1), fewer(20, 6))
    for number in points:
        directory = tmp_path / str(number)
        killed_run(directory, number, 6, 2)
        assert same(Run(directory, resume=True).train(6, save_every=2).close(), straight[0]), number
        assert rows_of(directory) == straight[1], number
        assert not list(directory.glob("stage*/*.tmp"))


# -- disk full


@pytest.mark.parametrize("largest", [0, 500, 2_500, 9_000])
def test_disk_full_keeps_the_old_checkpoint(run_dir, largest):
    def child():
        run = Run(run_dir, resume=True).train(3)
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, hard))
        with pytest.raises(StorageError, match=r"MB free .*ulimit -f.*, then --resume") as caught:
            run.save()
        assert caught.value.exit_code == 74
        told = str(caught.value)
        assert re.search(r"\((File too large|No space left on device|a file could not be written completely)\)", told)
        assert not re.search(r"enforce|inline_container|\.cc:|Errno|\n", told)
        assert not list(run_dir.glob("stage1/*.tmp"))
        assert run.checkpoints.newest() == run_dir / "stage1" / "step_2"
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        assert problems(run.save()) == []

    sizes = sorted(path.stat().st_size for path in (run_dir / "stage1" / "step_2").iterdir())
    assert largest < sizes[-1]
    assert in_child(child) == 0


def test_a_folder_that_was_moved_away_is_said(run_dir, tmp_path):
    run = Run(run_dir, resume=True).train(3)
    run_dir.rename(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="the folder was deleted or moved, or the working directory was changed"):
        run.save()


def test_too_little_space_is_refused_before_writing(run_dir, monkeypatch):
    run = Run(run_dir, resume=True).train(3)
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(1_000))
    monkeypatch.setattr(run.accelerator, "save_state", None)
    with pytest.raises(StorageError, match="twice that must be free"):
        run.save()


def test_a_disk_that_lies_is_noticed(run_dir, monkeypatch):
    run = Run(run_dir, resume=True).train(3)
    real = os.replace

    def replace(source, target):
        if Path(source).is_dir():
            flip(Path(source) / "optimizer.bin")
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(StorageError, match="the files differ when read back"):
        run.save()
    assert (run_dir / "stage1" / "step_1").exists()


def test_other_errors_are_not_called_storage_errors(run_dir):
    run = Run(run_dir, resume=True).train(3)
    run.checkpoints.register(bad=type("Bad", (), {"state_dict": lambda self: {"x": Counter()}})())
    with pytest.raises(Exception, match=r"Weights only load failed|Can't pickle"):
        run.save()


# -- numbers


@pytest.mark.parametrize("where", ["weights", "optimizer"])
def test_non_finite_numbers_never_reach_the_disk(run_dir, where):
    run = Run(run_dir, resume=True).train(3)
    parameter = next(value for value in run.policy.parameters() if value.requires_grad)
    with torch.no_grad():
        (parameter if where == "weights" else run.optimizer.state[parameter]["exp_avg"])[0, 0] = float("nan")
    with pytest.raises(NumericError, match=r"lora_A.*non-finite"):
        run.save()
    assert run.checkpoints.newest().name == "step_2"


# -- other runs


def test_other_data_ranks_and_objects_are_refused(run_dir, monkeypatch):
    run = Run(run_dir, resume=True)
    run.checkpoints.dataset = "other"
    with pytest.raises(ConfigError, match=r"training data has changed .*--allow-config-change"):
        run.checkpoints.resume(run.resumed)
    run.checkpoints.allow_change = True
    run.checkpoints.resume(run.resumed)
    run.checkpoints.register(extra=Counter())
    run.checkpoints.resume(run.resumed)  # what is not in it starts afresh
    run.checkpoints.allow_change, run.checkpoints.dataset = False, ""
    with pytest.raises(
        ConfigError, match=r"\['counter', 'noise'\], the script registers \['counter', 'extra', 'noise'\]"
    ):
        run.checkpoints.resume(run.resumed)
    monkeypatch.setattr(Accelerator, "num_processes", 2)
    with pytest.raises(ConfigError, match="saved by 1 processes, this run has 2"):
        run.checkpoints.resume(run.resumed)


def test_other_versions_are_only_warned_about(run_dir, monkeypatch, caplog):
    monkeypatch.setattr(checkpoint, "packages", lambda: dict.fromkeys(PACKAGES, "0.1"))
    assert Run(run_dir, resume=True).resumed
    assert "torch" in caplog.text and "now 0.1" in caplog.text


def test_another_number_of_threads_is_warned_about(run_dir, caplog):
    """Sums are rounded otherwise, so that "bit for bit" would not be true."""
    torch.set_num_threads(2)
    try:
        assert Run(run_dir, resume=True).resumed
    finally:
        torch.set_num_threads(1)
    assert "saved with threads 1, now 2: later steps may differ slightly" in caplog.text


def test_other_inputs_are_refused_by_name(run_dir, caplog):
    run = Run(run_dir, resume=True, inputs={"the base weights": "1", "the tokenizer": "1"})
    assert run.resumed  # there were none in earlier versions
    folder, checkpoints = run.train(3).save(), run.checkpoints
    checkpoints.inputs = {"the base weights": "1"}
    checkpoints.resume(folder)  # what is not known now cannot differ
    checkpoints.inputs = {"the base weights": "1", "the tokenizer": "2"}
    with pytest.raises(ConfigError, match="since it was saved, the tokenizer changed under the same name"):
        checkpoints.resume(folder)
    checkpoints.inputs, checkpoints.allow_change = {"the base weights": "3", "the tokenizer": "2"}, True
    checkpoints.resume(folder)
    assert "the base weights and the tokenizer changed" in caplog.text


class ItsOptimizer(Section):
    lr: float
    new: int = 3


class ItsConfig(Outputs):
    optimizer: ItsOptimizer
    seeds: dict[str, int]
    later: tuple[int, ...] = ()


def test_changed_config_is_refused_by_key(tmp_path):
    own = f"run_name: run\noutput_dir: {tmp_path}\nseeds: {{n: 3}}\n"
    (tmp_path / "run").mkdir()
    (tmp_path / "run/config.yaml").write_text(f"{own}optimizer: {{lr: 1.0e-05}}\n")
    same = ItsConfig.model_validate(yaml.safe_load(own) | {"optimizer": {"lr": 1e-5}})
    check_config(same)  # what was not known then has its default
    now = same.model_copy(update={"optimizer": ItsOptimizer(lr=2e-5), "seeds": {"n": 4}, "later": (1,)})
    with pytest.raises(ConfigError) as caught:
        check_config(now, may_differ=["seeds"])
    message = str(caught.value)
    assert "optimizer.lr: 1e-05 -> 2e-05; later: [] -> [1]; undo" in message and "seeds" not in message
    check_config(now, allow_change=True)
    check_config(now, may_differ=["seeds.n", "optimizer.lr", "later"])
    (tmp_path / "run/config.yaml").write_text(
        f"{own}optimizer: {{lr: 1.0e-05}}\nendpoint: {{headers: {{key: sk-1}}}}\n"
    )
    with pytest.raises(ConfigError, match=r"config: endpoint.*: changed \(not shown, it may hold a secret\)") as caught:
        check_config(same)
    assert "sk-1" not in str(caught.value)
    with pytest.raises(ConfigError, match=r"seeds\.n"):
        check_config(now, may_differ=["seeds.number", "optimizer", "later"])
    (tmp_path / "run/config.yaml").write_text(f"{own}optimizer: {{lr: 1.0e-05}}\nold: 1\n")  # unknown by now
    with pytest.raises(ConfigError, match=r"another config: old: 1 -> 'absent'; undo"):
        check_config(same)
    (tmp_path / "run/config.yaml").write_text(f"{own}optimizer: {{lr: 1.0e-05, old: 7}}\n")
    with pytest.raises(ConfigError, match=r"another config: optimizer\.old: 7 -> 'absent'; undo"):
        check_config(same)
    (tmp_path / "run/config.yaml").write_text(f"{own}optimizer: {{lr: high}}\n")  # invalid by now
    with pytest.raises(ConfigError, match=r"another config: optimizer\.lr: 'high' -> 1e-05; .*undo"):
        check_config(same)


# -- warm start


def test_load_adapter_loads_weights_and_nothing_else(run_dir):
    run = Run(run_dir, resume=True)
    fresh = adapted(seed=7, gain=True)
    before = torch.get_rng_state()
    load_adapter(fresh, run.resumed)
    assert same(dict(fresh.state_dict()), dict(run.policy.model.state_dict()))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    "model, reason",
    [
        ({"r": 4}, r"r is 2 there and 4 here; 8 tensors have other shapes, such as .*: \[2, 16\] there and \[4, 16\]"),
        ({"lora_alpha": 8}, "lora_alpha is 4 there and 8 here"),
        ({"hidden": 32}, "4 tensors have other shapes"),
        ({"target_modules": ["q_proj"]}, "4 tensors are only there, such as .*v_proj"),
        ({"target_modules": ["q_proj", "k_proj", "v_proj"]}, "4 tensors are only here, such as .*k_proj"),
        ({"gain": False}, "1 tensors are only there, such as .*norm.weight"),
    ],
)
def test_an_adapter_that_does_not_fit_changes_nothing(run_dir, model, reason):
    target = adapted(**{"gain": True, **model})
    before = copy.deepcopy(target.state_dict())
    folder = run_dir / "stage1" / "step_2"
    with pytest.raises(ConfigError, match=reason) as caught:
        load_adapter(target, folder)
    assert str(folder) in str(caught.value)
    assert same(dict(target.state_dict()), dict(before))


def test_a_folder_without_adapter_is_named(run_dir):
    with pytest.raises(ConfigError, match=r"adapter_config.json and adapter_model.safetensors missing"):
        load_adapter(adapted(), run_dir / "stage1")
    truncate(run_dir / "stage1" / "step_2" / "adapter_model.safetensors")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_adapter(adapted(), run_dir / "stage1" / "step_2")


# -- signals


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_first_signal_finishes_the_step_second_leaves_at_once(number, code, capfd):
    def once():
        before = signal.getsignal(signal.SIGINT)  # ignored where the tests run in the background
        with Interrupts() as interrupts:
            assert (interrupts.received, interrupts.exit_code) == (None, 0)
            os.kill(os.getpid(), number)
            assert interrupts.received == number
        assert signal.getsignal(signal.SIGINT) == before
        return interrupts.exit_code

    def twice():
        with Interrupts():
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), number)
            time.sleep(5)

    assert in_child(once) == code
    assert capfd.readouterr().err == "\nfinishing what has begun, then saving; a second signal stops at once\n"
    assert in_child(twice) == code


def test_outside_the_main_thread_signals_are_left_alone():
    seen = []

    def enter():
        with Interrupts() as interrupts:
            seen.append((signal.getsignal(signal.SIGTERM), interrupts.exit_code))

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [(before, 0)]


# -- two ranks


def test_two_ranks_resume_with_their_own_state(tmp_path):
    def rank_of(rank: int, port: int) -> None:
        AcceleratorState._reset_state(reset_partial_state=True)
        os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        run = Run(tmp_path).train(2, save_every=1).train(4)
        expected = run.close()
        run.accelerator.wait_for_everyone()
        again = Run(tmp_path, resume=True)
        assert again.accelerator.num_processes == 2 and again.resumed.name == "step_2"
        assert same(again.train(4).state(), expected)
        again.checkpoints.register(full=Full(rank))
        with pytest.raises(StorageError, match="No space left"):
            again.save()
        assert not list(tmp_path.glob("stage1/*.tmp"))
        again.close()
        os._exit(0)  # a process group may wait for ever, as it is taken down, for a process that is gone

    port = free_port()
    pids = [fork(functools.partial(rank_of, rank, port)) for rank in (0, 1)]
    assert [exit_code(pid) for pid in pids] == [0, 0]
    names = {path.name for path in (tmp_path / "stage1" / "step_2").iterdir()}
    assert {"random_states_0.pkl", "random_states_1.pkl", "objects_0.bin", "objects_1.bin"} <= names


class Full:
    """Stands for a rank whose disk is full."""

    def __init__(self, rank: int):
        self.rank = rank

    def state_dict(self):
        if self.rank == 1:
            raise OSError(28, "No space left on device")
        return {}
