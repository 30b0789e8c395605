"""SFT that is killed, stopped, damaged or starved of disk ends like a run that was left alone.

Starts are forked from one process that has imported everything, so that a start costs no import.
"""

import importlib
import json
import os
import random
import resource
import shutil
import signal
import sys
from pathlib import Path

import peft.peft_model
import pytest
import torch
import transformers.modeling_utils
import trl
from conftest import fewer, long, part
from helpers import file_events, forks, moments
from helpers.moments import flip
from safetensors.torch import load_file, save_file
from test_sft import CONFIG, chat

import sft_train
from data.builders import write_rows
from lib.core.config import FromScratch
from lib.core.errors import run_script
from lib.model.scratch import build
from lib.rl.watch import Watch
from lib.run.checkpoint import Checkpoints
from lib.run.manifest import MANIFEST, problems
from lib.run.outbox import OUTBOX, name_of, waiting

STEPS = 8
# dropout: every step draws, so that a generator that is off shows; epochs of 8 batches, in threes: 3 steps each
RESUMABLE = {
    **CONFIG,
    "output_dir": "outputs",
    "seed": 5,
    "model": {
        **CONFIG["model"],
        "from_scratch": {
            **CONFIG["model"]["from_scratch"],
            "architecture": {**CONFIG["model"]["from_scratch"]["architecture"], "attention_dropout": 0.2},
        },
    },
    "train": {
        "steps": STEPS, "batch_size": 2, "gradient_accumulation": 3, "max_length": 64, "checkpoint_every": 2,
        "eval_every": 3,
    },
}  # fmt: skip
ADAPTER = ("model.from_scratch=null", "model.name=base", "model.adapters.lora.r=2")


class Run(moments.Run):
    def __init__(self, template: Path, folder: Path, **config):
        super().__init__("sft_train", template, folder, {**RESUMABLE, **config})

    def launch(self, *options, output="said.txt", environment=None, **plan):
        environment = {**os.environ, **(environment or {})}
        return forks.call(
            play, options, plan, cwd=self.folder, output=self.folder / output, environment=environment
        )  # fmt: skip


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> Path:
    """A folder with chats and a base for adapters."""
    folder = tmp_path_factory.mktemp("template")
    write_rows(folder / "chats.jsonl", (chat(number) for number in range(20)))
    scratch = FromScratch(**CONFIG["model"]["from_scratch"])
    for saved in build(scratch, CONFIG["model"]["chat_template"], seed=0):
        saved.save_pretrained(folder / "base")
    return folder


@pytest.fixture
def mine(template, tmp_path) -> Run:
    return Run(template, tmp_path / "work")


@pytest.fixture(scope="module")
def straight(template, tmp_path_factory) -> Run:
    """The uninterrupted run, and what it was doing at each of its moments."""
    run = Run(template, tmp_path_factory.mktemp("straight") / "work")
    run.start(journal="journal.json", synced="synced.json")
    run.moments = json.loads((run.folder / "journal.json").read_text())
    return run


def play(options, plan) -> None:
    """What `python sft_train.py --config task.yaml <options>` does, but for the plan.

    kill_in    a moment by name and number, such as ["saving 4", 3]: then it gets the `signals`, SIGKILL unless told
    kill_at    another way to say this: the first moment that comes at this place in `order`, or behind it
    order      the names of all moments of a whole run
    full_from  like kill_in, for a disk that is full from then on
    kill_before  the change of a file before which it gets SIGKILL, as in tests/helpers/file_events.py
    journal    a file for the names of all moments
    synced     a file for the paths that were synced to the disk
    weights    a file for the weights at the end
    """
    torch.set_num_threads(1)
    sys.argv = ["sft_train.py", "--config", "task.yaml", *options]
    events = Moments(plan)
    file_events.watch(kill_before=plan.get("kill_before", ""))
    try:
        run_script(importlib.import_module("sft_train").main)
    finally:
        if "journal" in plan:
            Path(plan["journal"]).write_text(json.dumps(events.all))
        if "synced" in plan:
            Path(plan["synced"]).write_text(json.dumps(events.synced))
        if "weights" in plan and events.trainer:
            torch.save([parameter.detach() for parameter in events.trainer.model.parameters()], plan["weights"])


COMPUTE_LOSS = trl.SFTTrainer.compute_loss


class Moments:
    """Names each moment after what is being done and the step: "train 3", "saving 4", "result 8"."""

    def __init__(self, plan: dict):
        self.plan, self.trainer, self.doing, self.step = plan, None, None, 0
        self.all, self.synced = [], []
        self.places = {}
        for place, name in enumerate(plan.get("order", ())):
            self.places.setdefault(name, []).append(place)
        os.fsync = lambda descriptor: self.synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        for owner, name in (
            (os, "replace"), (os, "unlink"), (os, "mkdir"), (os, "write"), (os, "fsync"), (torch, "save"),
            (peft.peft_model, "safe_save_file"), (transformers.modeling_utils, "safe_save_file"),
            (trl.SFTTrainer, "compute_loss"), (torch.optim.AdamW, "step"),
        ):  # fmt: skip
            setattr(owner, name, self._counted(getattr(owner, name)))
        trl.SFTTrainer.train = self._during("train", trl.SFTTrainer.train)
        Checkpoints.save = self._during("saving", Checkpoints.save)
        Checkpoints.resume = self._during(None, Checkpoints.resume)  # a straight run has none
        sft_train.save = self._during("result", sft_train.save)
        Watch.step = self._during("logging", self._counted(Watch.step))

    def _during(self, what, real):
        def call(first, *arguments, **options):
            self.trainer = first if isinstance(first, trl.SFTTrainer) else self.trainer
            before, self.doing = self.doing, what
            try:
                return real(first, *arguments, **options)
            finally:
                self.doing = before

        return call

    def _counted(self, real):
        def call(*arguments, **options):
            if self.doing:
                self._count(begins=real is COMPUTE_LOSS and arguments[0].model.training)
            return real(*arguments, **options)

        return call

    def _count(self, begins: bool) -> None:
        """A step begins with a loss; its rows, and the evaluation behind it, belong to it."""
        if begins:
            self.step = self.trainer.state.global_step + 1
        self.all.append(f"{self.doing} {STEPS if self.doing == 'result' else self.step}")
        here = [self.all[-1], self.all.count(self.all[-1])]
        places = self.places.get(here[0], [-1])
        if places[min(here[1], len(places)) - 1] >= self.plan.get("kill_at", sys.maxsize):
            self.plan["kill_in"] = here
        if self.plan.get("full_from") == here:
            resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
        if self.plan.get("kill_in") == here:
            Path("ended.txt").write_text(self.all[-1])
            for number in self.plan.get("signals", [signal.SIGKILL]):
                os.kill(os.getpid(), number)


# -- kill -9


def test_killed_at_twenty_moments(mine, straight):
    """At eight of them without WHOLE=1; three are behind the last checkpoint, while the result is written."""
    wanted = {"train": fewer(10, 3), "saving": fewer(7, 2), "result": 3}
    dice, places = random.Random(3), {}
    for place, name in enumerate(straight.moments):
        places.setdefault(name.partition(" ")[0] if name != "train 0" else "beginning", []).append(place)
    drawn = sorted(place for what, count in wanted.items() for place in dice.sample(places[what], count))
    died = []
    for place in drawn:
        said = mine.start("--resume", code=-signal.SIGKILL, kill_at=place, order=straight.moments)
        died.append(mine.died())
        assert "nothing to resume" in said or "resumed from" in said
    mine.start("--resume")
    mine.same_as(straight, died)
    assert len(died) == fewer(20, 8) and {name.partition(" ")[0] for name in died} == {*wanted}, died
    assert sum(name.startswith("result") for name in died) >= 3
    assert not [*mine.dir.glob("*.tmp"), *mine.dir.glob("*/*.tmp"), *mine.dir.glob("*.torn")]


def test_a_finished_run_is_not_touched(straight, template, tmp_path):
    """Twice; with checkpoints and without; and nothing was trained behind the last step."""
    mine, bare = Run(straight.folder, tmp_path / "work"), Run(template, tmp_path / "bare")
    options = ("train.checkpoint_every=0", "train.steps=3")
    bare.start(*options)
    assert not (bare.dir / "stage1").exists()
    for run, own in ((mine, ()), (bare, options)):
        before = run.contents()
        for _ in range(2):
            assert "this run is finished: nothing is left to do" in run.start("--resume", *own)
            assert run.contents() == before
    assert [row["step"] for row in mine.rows()] == list(range(1, STEPS + 1))


def test_a_result_that_a_kill_kept_from_the_hub_waits_for_it_after_a_resume(template, tmp_path):
    run = Run(template, tmp_path / "work", hub={"repo_id": "me/run"})
    to, nowhere = run.dir / OUTBOX, {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_TOKEN": "hf_of_nobody"}
    options = {"environment": nowhere, "kill_before": ".*/to_hub/main~.*"}
    run.ended(run.launch("train.steps=2", **options), -signal.SIGKILL)
    assert (run.dir / "final").is_dir() and "main" not in map(name_of, waiting(to))
    assert "this run is finished" in run.ended(run.launch("--resume", "train.steps=2", environment=nowhere))
    assert "main" in map(name_of, waiting(to))


def test_the_result_is_on_the_disk_before_it_has_its_name(straight):
    """A file of it that is not synced may be empty behind a power cut."""
    synced = json.loads((straight.folder / "synced.json").read_text())
    final = straight.dir / "final"
    wanted = {f"{final}.tmp{path.name and '/'}{path.name}" for path in (*final.iterdir(), Path())}
    wanted = {f"{path}.tmp" if path.endswith(MANIFEST) else path for path in wanted}  # which gets its name at once
    assert len(wanted) > 6 and wanted <= {*synced} and synced[-1] == str(straight.dir)


WAYS = {
    "packed adapter": (
        *ADAPTER, "train.packing=true", "train.gradient_accumulation=1", "train.max_length=42", "train.steps=7"
    ),
    "epochs": ("train.steps=null", "train.epochs=2.4", "train.checkpoint_every=0"),
    "in order": (
        "train.shuffle=false", "train.batch_size=5", "train.gradient_accumulation=2", "optimizer.schedule=cosine"
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", part(list(WAYS), every=3))
def test_a_signal_in_any_step_changes_nothing(template, tmp_path, way):
    """In every third step without WHOLE=1."""
    options = WAYS[way]
    whole, stopped = (Run(template, tmp_path / name) for name in ("whole", "stopped"))
    whole.start(*options, journal="journal.json")
    steps = len(whole.rows())
    for step in range(1, steps, fewer(1, 3)):
        plan = {"kill_in": [f"train {step}", 1], "signals": [signal.SIGTERM]}
        assert f"saved at step {step}; continue with --resume" in stopped.start(*options, "--resume", code=143, **plan)
        assert problems(stopped.dir / f"stage1/step_{step}") == []
    stopped.start(*options, "--resume")
    assert stopped.rows() == whole.rows() and stopped.rows("evaluations") == whole.rows("evaluations")
    mine, theirs = ({p.name: p.read_bytes() for p in run.dir.glob("final/*.safetensors")} for run in (stopped, whole))
    assert mine == theirs and len(mine) == 1


@long
def test_going_back_to_a_checkpoint(straight, tmp_path):
    mine = Run(straight.folder, tmp_path / "work")
    said = mine.start("--resume", str(mine.dir.relative_to(mine.folder) / "stage1/step_6"))
    assert "resumed from outputs/tiny/stage1/step_6" in said and "step_8.aside" in said
    assert (mine.dir / "final.aside").is_dir()
    shutil.rmtree(mine.dir / "final.aside")
    mine.same_as(straight)
    said = mine.start("--resume", str(straight.dir / "stage1/step_6"), code=2)
    assert "expected a checkpoint of this run" in said


def test_more_steps_than_before(straight, template, tmp_path):
    mine, bare = Run(straight.folder, tmp_path / "work"), Run(template, tmp_path / "bare")
    assert "train.steps: 8 -> 10" in mine.start("--resume", "train.steps=10", code=2)
    said = mine.start("--resume", "--allow-config-change", "train.steps=10")
    assert "resumed from outputs/tiny/stage1/step_8" in said and len(mine.rows()) == 10
    bare.start("train.checkpoint_every=0", "train.steps=2")
    before = bare.contents()
    said = bare.start("--resume", "--allow-config-change", "train.checkpoint_every=0", "train.steps=4", code=2)
    assert "final: taken after 2 of 4 steps, and no checkpoint was kept" in said
    assert bare.contents() == before


# -- damage


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 3)


NEWEST = {
    "a flipped bit in the weights": (lambda f: flip(f / "model.safetensors"), "model.safetensors is damaged"),
    "no optimizer": (lambda f: (f / "optimizer.bin").unlink(), "optimizer.bin is missing"),
    "a torn optimizer": (lambda f: cut(f / "optimizer.bin"), "optimizer.bin has "),
    "a flipped bit in the generators": (lambda f: flip(f / "random_states_0.pkl"), "random_states_0.pkl is damaged"),
    "a torn trainer state": (lambda f: cut(f / "trainer_state.json"), "trainer_state.json has "),
    "no schedule": (lambda f: (f / "objects_0.bin").unlink(), "objects_0.bin is missing"),
    "a torn manifest": (lambda f: cut(f / MANIFEST), "MANIFEST.json is damaged"),
    "an empty folder": (lambda f: [path.unlink() for path in f.iterdir()], "the folder is empty"),
}
RESULT = {
    "a flipped bit in the weights": (lambda f: flip(f / "model.safetensors"), "model.safetensors is damaged"),
    "no tokenizer": (lambda f: (f / "tokenizer.json").unlink(), "tokenizer.json is missing"),
    "no manifest": (lambda f: (f / MANIFEST).unlink(), "MANIFEST.json is missing"),
}


@pytest.mark.parametrize("kind", part(list(NEWEST), every=4))
def test_damage_is_named_and_the_checkpoint_before_is_used(straight, tmp_path, kind):
    damage, reason = NEWEST[kind]
    mine = Run(straight.folder, tmp_path / "work")
    shutil.rmtree(mine.dir / "final")  # as if the end had not been reached
    damage(mine.dir / "stage1/step_8")
    said = mine.start("--resume")
    assert "step_8 IS BROKEN" in said and reason in said and "resumed from outputs/tiny/stage1/step_6" in said
    mine.same_as(straight)


@pytest.mark.parametrize("kind", part(list(RESULT), every=2))
def test_a_damaged_result_is_rewritten(straight, tmp_path, kind):
    damage, reason = RESULT[kind]
    mine = Run(straight.folder, tmp_path / "work")
    damage(mine.dir / "final")
    said = mine.start("--resume")
    assert "final IS BROKEN" in said and reason in said and "resumed from outputs/tiny/stage1/step_8" in said
    shutil.rmtree(mine.dir / "final.aside")
    mine.same_as(straight)


@long
def test_another_base_under_the_same_name_is_refused(template, tmp_path):
    mine, options = Run(template, tmp_path / "work"), (*ADAPTER, "train.steps=2")
    mine.start(*options)
    base = mine.folder / "base/model.safetensors"
    save_file({name: value * 1.5 for name, value in load_file(base).items()}, base, {"format": "pt"})
    before = mine.contents()
    for place in ("final", "stage1/step_2"):
        said = mine.start(*options, "--resume", code=2)
        assert f"{place}: since it was saved, the base weights changed under the same name" in said
        assert mine.contents() == before
        shutil.rmtree(mine.dir / "final", ignore_errors=True)
        before = mine.contents()
    said = mine.start(*options, "--resume", "--allow-config-change")
    assert "since it was saved, the base weights changed" in said and (mine.dir / "final").is_dir()


def test_when_all_are_broken_nothing_is_trained_over_them(straight, tmp_path):
    mine = Run(straight.folder, tmp_path / "work")
    shutil.rmtree(mine.dir / "final")
    for folder in (mine.dir / "stage1").iterdir():
        flip(folder / "model.safetensors")
    before = mine.contents()
    assert "every checkpoint is broken" in mine.start("--resume", code=2)
    assert mine.contents() == before


def test_a_result_without_config_and_checkpoints_is_not_trained_over(straight, tmp_path):
    mine = Run(straight.folder, tmp_path / "work")
    shutil.rmtree(mine.dir / "stage1")
    (mine.dir / "config.yaml").unlink()
    before = mine.contents()
    assert "already holds a run: continue it with --resume" in mine.start(code=2)
    assert mine.contents() == before


@long
def test_a_damaged_result_without_a_checkpoint_is_not_trained_over(template, tmp_path):
    mine, options = Run(template, tmp_path / "work"), ("train.checkpoint_every=0", "train.steps=2")
    mine.start(*options)
    flip(mine.dir / "final/model.safetensors")
    before = mine.contents()
    said = mine.start("--resume", *options, code=2)
    assert "final IS BROKEN" in said and "holds the rows of a run, but no checkpoint to resume from" in said
    assert mine.contents() == before


@pytest.mark.parametrize("place", part([["saving 6", 2], ["result 8", 1]], every=2))
def test_a_full_disk_ends_with_74(mine, straight, place):
    said = mine.start(code=74, full_from=place)
    assert "cannot be saved with" in said and "(ulimit -f), then --resume" in said
    newest = "step_4" if "saving" in place[0] else "step_8"
    assert problems(mine.dir / "stage1" / newest) == [] and not (mine.dir / "final").exists()
    assert f"resumed from outputs/tiny/stage1/{newest}" in mine.start("--resume")
    mine.same_as(straight)


# -- several processes


@long
@pytest.mark.parametrize("options", [(*ADAPTER, "train.packing=true"), ()])
def test_two_processes_train_stop_and_resume_together(template, tmp_path, options):
    options = (*options, "train.gradient_accumulation=1", "train.steps=4", "--resume")
    two, again = (Run(template, tmp_path / name) for name in ("two", "again"))
    weights = two.start_two(*options)
    assert all(map(torch.equal, *weights)) and len(two.rows()) == 4
    assert {path.name for path in (two.dir / "stage1").iterdir()} == {"step_2", "step_4"}
    assert (two.dir / "stage1/step_4/random_states_1.pkl").exists()
    # the second process gets a SIGTERM, and both leave
    for moment, step in (("train 1", 1), ("logging 3", 3)):
        signalled = {"kill_in": [moment, 1], "signals": [signal.SIGTERM]}
        again.start_two(*options, code=143, plans=({}, signalled))
        assert f"saved at step {step}" in again.said()
    assert "launch with --num_processes 2" in again.start(*options, code=2)
    assert all(map(torch.equal, weights[0], again.start_two(*options)[1]))
    files = [{p.name: p.read_bytes() for p in run.dir.glob("final/*.safetensors")} for run in (two, again)]
    assert again.rows() == two.rows() and files[0] == files[1]


@long
def test_a_killed_process_ends_the_other_one(template, tmp_path):
    options = (*ADAPTER, "train.gradient_accumulation=1", "train.steps=4", "--resume")
    mine = Run(template, tmp_path / "work")
    processes = mine.launch_several(*options, plans=({}, {"kill_in": ["train 3", 1]}))
    assert "error: another process of this run has ended" in mine.ended(processes[0], 8)
    assert "resumed from" in mine.ended(mine.launch_several(*options, plans=({}, {}))[0])
