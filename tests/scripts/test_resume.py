"""A run that is killed, interrupted, starved of disk or spread over processes ends like one that was left alone.

Starts of train.py are forked from one process that has imported everything, so that a start costs no import.
"""

import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import TEMPLATE, fewer, long, part
from helpers import forks, moments, tiny
from helpers.hub import StandIn, environment, stand_in
from helpers.moments import flip
from peft import PeftModel
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from data.builders import write_rows
from lib.core.config import FromScratch
from lib.model.scratch import build
from lib.rl.recipes.choice import NAMES
from lib.run.directory import CARD
from lib.run.manifest import MANIFEST, problems, read_manifest
from lib.run.outbox import OUTBOX, name_of, revision_of, waiting

ROOT = Path(__file__).parents[2]
CONFIG = {
    "run_name": "tiny",
    "output_dir": "runs",
    "seed": 1,
    "model": tiny.model(2, name="base"),
    "dataset": {"name": "rows.jsonl", "test_split_size": 6},
    "prompts": {"user": "{question}", "self_correction": "again"},
    "reward": {"fn": "my_reward.odd_digits", "accept_cut": True},
    "generation": tiny.limits((8, 32), (4, 4), temperature_schedule={"end": 0.7, "steps": 5, "high_every": 3}),
    "curriculum": {
        "easy_pool": {"column": "kind", "values": ["easy"], "share": [[0, 0.5], [6, 0.25]]}, "weighting": {},
        "replay": {"share": 0.25, "warmup": 2, "capacity": 8, "value": "advantage"},
    },
    "optimizer": {"learning_rate": 0.02, "warmup_steps": 2, "schedule": "cosine"},
    "train": tiny.stages((6, 6), 4, attempts_per_prompt=2, revisions_per_attempt=2, micro_batch_tokens=150,
                         checkpoint_every=1, resample_rounds=1, kl_sample=0.5),
    "eval": {"max_examples": 6, "temperature": 1.0, "greedy_too": True, "every_steps": 2},
}  # fmt: skip
REWARD = """
def odd_digits(predictions):
    return [{"odd": any(c in "13579" for c in p) / 4, "brief": -(len(p) // 4) / 40} for p in predictions]


def right_if_odd(predictions):
    from lib.core.registry import Judged

    return [Judged(parts, match=parts["odd"] > 0) for parts in odd_digits(predictions)]
"""


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> Path:
    """A folder with a random base model, rows and a reward: all that a run needs beside its config."""
    folder = tmp_path_factory.mktemp("template")
    architecture = {
        "model_type": "qwen3", "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8,
    }  # fmt: skip
    tokens = ["<|user|>", "<|assistant|>"]
    scratch = FromScratch(architecture=architecture, characters="0123456789+agin", special_tokens=tokens)
    for saved in build(scratch, TEMPLATE, seed=0):
        saved.save_pretrained(folder / "base")
    rows = tiny.sums(range(6), range(5))
    write_rows(folder / "rows.jsonl", (row | {"kind": "easy" if row["question"] < "3" else "hard"} for row in rows))
    (folder / "my_reward.py").write_text(REWARD)
    return folder


class Run(moments.Run):
    def __init__(self, template: Path, folder: Path):
        super().__init__("train", template, folder, CONFIG)


@pytest.fixture
def mine(template, tmp_path) -> Run:
    return Run(template, tmp_path / "work")


@pytest.fixture(scope="module")
def straight(template, tmp_path_factory) -> Run:
    """The uninterrupted run, how long it took, and at which moment it did what."""
    run = Run(template, tmp_path_factory.mktemp("straight") / "work")
    run.start("--dry-run")  # so that the imports are not timed
    started = time.monotonic()
    run.start(journal="journal.json", synced="synced.json")
    run.seconds = time.monotonic() - started
    print(f"an uninterrupted run takes {run.seconds:.1f} s")
    run.saved, run.moments = run.journal()
    return run


# -- kill -9


def test_killed_at_twenty_moments(mine, straight):
    """At seven of them without WHOLE=1."""
    wanted = {"train 1": 4, "evaluation 1": 3, "saving 1": 4, "train 2": 3, "evaluation 2": 2, "saving 2": 4}
    wanted = {what: fewer(count, 1 + (what == "saving 2")) for what, count in wanted.items()}
    dice = random.Random(7)
    places = {what: [i for i, doing in enumerate(straight.moments) if doing == what] for what in wanted}
    drawn = sorted(i for what, count in wanted.items() for i in dice.sample(places[what], count))
    died, last = [], 0
    for moment in drawn:
        sound = [path for path in mine.dir.glob("stage?/step_*") if path.suffix != ".tmp" and not problems(path)]
        assert sound or last <= straight.saved["stage1/step_0"]
        said = mine.start("--resume", code=-signal.SIGKILL, kill_at=moment, saved=straight.saved)
        died.append(mine.died())
        assert ("nothing to resume" in said) == (not sound)
        last = moment
    mine.start("--resume")
    mine.same_as(straight, list(zip(drawn, died, strict=True)))
    assert {row["prompts"] > 4 for row in straight.rows()} == {True, False}  # others were drawn in some of the steps
    assert len(died) == fewer(20, 7) and {*died} == {*wanted}, died
    assert not [*mine.dir.glob("*/*.tmp"), *mine.dir.glob("*.torn")]


def test_killed_with_a_teacher_that_is_the_policy_before_it_moved(template, tmp_path):
    """It stays the initial policy, and reads the right answer behind the question."""
    config = {**CONFIG, "distill": {"shown": "{question}+{answer}"}}
    straight, mine = (moments.Run("train", template, tmp_path / name, config) for name in ("straight", "mine"))
    straight.start(journal="journal.json")
    saved, doing = straight.journal()
    for what in ("train 1", "train 2"):  # the last of a stage, so that the policy is no longer its teacher
        moment = max(i for i, each in enumerate(doing) if each == what)
        mine.start("--resume", code=-signal.SIGKILL, kill_at=moment, saved=saved)
    mine.start("--resume")
    mine.same_as(straight)
    assert all(row["distill_kl"] > 0 and row["distilled"] == 1 for row in straight.rows())


RECIPES = {
    "score": {},
    "multiturn": {"prompts": {"feedback": "verdict", "feedback_tokens": 16}, "train": {"attempts": 3}},
    "thinktwice": {"train": {"followed_attempts": 1}},
    "ufo": {"prompts": {"stop": "verdict"}, "train": {"attempts": 3, "discount": 0.5}},
    "pag": {"prompts": {"feedback": "self", "stop": "self",
                        "self": {"ask": "gain", "right": "+", "wrong": "1", "max_new_tokens": 4}}},
    "reflect": {"prompts": {"feedback": "self", "stop": "verdict",
                            "self": {"ask": "gain", "right": None, "max_new_tokens": 4}}, "train": {"attempts": 3}},
}  # fmt: skip


@pytest.mark.parametrize("recipe", part(["pag", "reflect", "ufo", "score", "multiturn", "thinktwice"], 6))
def test_every_recipe_is_resumed(recipe, template, tmp_path):
    """Killed while it saves a step, and while it takes the next; only one of them without WHOLE=1."""
    assert RECIPES.keys() == NAMES.keys()
    own = RECIPES[recipe]
    train = CONFIG["train"] | {"recipe": recipe, "stage1_steps": 2 * (recipe == "score"), "stage2_steps": 3}
    config = CONFIG | {
        "model": CONFIG["model"] | {"max_seq_length": 128},
        "prompts": CONFIG["prompts"] | {"verdict": {"right": "gain", "wrong": "again"}} | own.get("prompts", {}),
        "generation": CONFIG["generation"] | {"max_prompt_length_attempt2": 60},
        "train": train | own.get("train", {}), "reward": {"fn": "my_reward.right_if_odd", "accept_cut": True},
        "eval": {"max_examples": 4},
    }  # fmt: skip
    straight, mine = (moments.Run("train", template, tmp_path / name, config) for name in ("straight", "mine"))
    straight.start(journal="journal.json")
    saved, doing = straight.journal()
    assert "saving 2" in doing
    for what in ("saving 2", "train 2"):
        places = [i for i, each in enumerate(doing) if each == what]
        mine.start("--resume", code=-signal.SIGKILL, kill_at=places[2 * len(places) // 3], saved=saved)
    mine.start("--resume")
    mine.same_as(straight)
    assert any(row["loss"] for row in straight.rows())


def test_what_the_killed_run_drew_and_at_which_temperature(straight):
    rows = straight.rows()
    expected = [1.0, 0.94, 0.88, 0.82, 0.76, 1.0, 0.7, 0.7, 1.0, 0.7, 0.7, 1.0]
    assert [row["temperature"] for row in rows] == pytest.approx(expected)
    assert [row["sampling_temperature"] for row in rows] == pytest.approx(expected)
    assert all(row["sampler_gap"] < 1e-4 for row in rows)  # so they are those of sampling and of scoring
    sources = ("data", "easy", "replay")
    assert all(sum(row[f"curriculum/{name}"] for name in sources) == pytest.approx(1) for row in rows)
    assert all(any(row[f"curriculum/{name}"] > 0 for row in rows) for name in sources)
    assert rows[-1]["replay/draws"] > 0 and rows[-1]["replay/entries"] <= 8


def test_texts_name_what_drew_their_prompts_and_steps_their_longest_answers(straight):
    texts = [row for row in straight.rows("generations") if row["when"] == "train"]
    assert {row["drawn_from"] for row in texts} == {"data", "easy", "replay"}
    assert all("drawn_from" not in row for row in straight.rows("generations") if row["when"] != "train")
    for row in straight.rows():
        of_step = [text for text in texts if (text["stage"], text["step"]) == (row["stage"], row["step"])]
        lengths = [text["length2"] for text in of_step]
        assert row["length_max_attempt2"] == max(lengths)
        assert row["length_p95_attempt2"] == pytest.approx(np.percentile(lengths, 95))


@long
def test_killed_by_the_clock(mine, straight):
    """Wherever the process happens to be: while it loads, in the middle of a write, inside the library."""
    dice, span, history = random.Random(8), straight.seconds / 2, []
    while history.count(-signal.SIGKILL) < 5 and len(history) < 10:
        process = mine.launch("--resume")
        process.join(dice.uniform(0, span))
        process.kill()
        process.join()
        history.append(process.exitcode)
        if process.exitcode == 0:  # it was faster: once more, and sooner
            mine.same_as(straight, history)
            shutil.rmtree(mine.dir)
            span /= 2
    assert history.count(-signal.SIGKILL) >= 3, history
    mine.start("--resume")
    mine.same_as(straight, history)


def test_a_broken_newest_checkpoint_falls_back_loudly(mine, straight):
    mine.start(code=-signal.SIGKILL, kill_at=straight.saved["stage2/step_3"] + 5)
    flip(mine.dir / "stage2/step_3/optimizer.bin")
    said = mine.start("--resume")
    assert "stage2/step_3 IS BROKEN" in said and "optimizer.bin is damaged" in said
    assert "resumed from runs/tiny/stage2/step_2" in said
    mine.same_as(straight)


EVERY_ADAPTER = {
    "lora": {"r": 2, "alpha": 4}, "ia3": {}, "head_gates": {"targets": ["q", "k", "v", "o"]},
    "channel_gates": {"group_size": 4}, "residual_gates": {"post_ffn": True}, "projection_gates": {}, "input_gates": {},
    "attention_temperature": {"per": "head"}, "rope_frequency": {}, "bottleneck": {"width": 2}, "norm_gains": {},
    "soft_prompt": {"tokens": 2, "freeze_steps": 2}, "warmup_steps": 4,
}  # fmt: skip


@long
def test_every_adapter_at_once_is_resumed(template, tmp_path):
    config = CONFIG | {
        "model": CONFIG["model"] | {"adapters": EVERY_ADAPTER},
        "train": CONFIG["train"] | {"stage1_steps": 3, "stage2_steps": 2},
    }
    whole = moments.Run("train", template, tmp_path / "whole", config)
    whole.start(journal="journal.json", synced="synced.json")
    saved, _ = whole.journal()
    killed = moments.Run("train", template, tmp_path / "killed", config)
    killed.start(code=-signal.SIGKILL, kill_at=saved["stage1/step_2"] + 5)
    assert "resumed from runs/tiny/stage1/step_2" in killed.start("--resume")
    killed.same_as(whole)
    first, *_, last = whole.rows()
    moved = {name.partition("/")[2] for name in last if name.startswith("drift/") and last[name] > 0}
    assert moved == EVERY_ADAPTER.keys() - {"lora", "warmup_steps"} and first["drift/soft_prompt"] == 0
    cards = [(run.dir / "stage2/README.md").read_text().partition("## Config")[0] for run in (whole, killed)]
    assert cards[0] == cards[1] and "PEFT alone cannot load it: it does not know ia3, head_gates, " in cards[0]
    assert (
        "It cannot be merged into its base (" in cards[0]
        and "soft_prompt: no weights" in cards[0]
        and "--to merged" not in cards[0]
    )
    assert all(f"\n| {name} | " in cards[0] for name in EVERY_ADAPTER.keys() - {"warmup_steps"})


def test_a_mixture_of_tasks_is_resumed(template, tmp_path):
    """Each with its own reward, and a buffer in which prompts of both are."""
    config = CONFIG | {
        "dataset": {
            "mixture": {"sums": {"name": "rows.jsonl", "weight": 2}, "digits": {"name": "digits.jsonl"}},
            "test_split_size": 6,
        },
        "reward": {"by_task": {"sums": {"fn": "my_reward.odd_digits"}, "digits": {"fn": "exact_match"}}},
        "train": CONFIG["train"] | {"stage1_steps": 3, "stage2_steps": 2},
    }
    whole, killed = (moments.Run("train", template, tmp_path / name, config) for name in ("whole", "killed"))
    for run in (whole, killed):
        rows = [{"question": f"{a}{b}", "answer": str(b), "kind": "hard"} for a in range(6) for b in range(5)]
        write_rows(run.folder / "digits.jsonl", rows)
    whole.start(journal="journal.json", synced="synced.json")
    saved, _ = whole.journal()
    killed.start(code=-signal.SIGKILL, kill_at=saved["stage1/step_2"] + 5)
    assert "resumed from runs/tiny/stage1/step_2" in killed.start("--resume")
    killed.same_as(whole)
    assert {task for row in whole.rows("evaluations") for task in row["by_task"]} == {"sums", "digits"}


# -- signals


@long
def test_signals_by_the_command_line(mine, straight):
    """The first time of a Python of its own."""
    command = [sys.executable, ROOT / "train.py", "--config", "task.yaml", "--resume"]
    for number, code, rows in ((signal.SIGTERM, 143, 2), (signal.SIGINT, 130, 6)):
        if number == signal.SIGTERM:
            with open(mine.folder / "said.txt", "w") as output:
                alike = os.environ | {"OMP_NUM_THREADS": "1"}  # sums of several threads are rounded otherwise
                process = subprocess.Popen(command, cwd=mine.folder, stdout=output, stderr=output, env=alike)
            ended = process.poll
        else:
            process = forks.script(*command[1:], cwd=mine.folder, output="said.txt")
            ended = lambda: process.exitcode  # noqa: B023
        while ended() is None and (
            not (mine.dir / "metrics.jsonl").exists() or len(mine.rows()) < rows or "eval" not in mine.said()
        ):
            time.sleep(0.002)
        os.kill(process.pid, number)
        while ended() is None:
            time.sleep(0.002)
        assert ended() == code, mine.said()
        stage, step = re.search(r"saved at stage (\d+) step (\d+)", mine.said()).groups()
        assert problems(mine.dir / f"stage{stage}/step_{step}") == []
    mine.start("--resume")
    mine.same_as(straight)


@long
def test_a_signal_never_costs_an_evaluation(mine, straight):
    """In the step before a due evaluation, in the last step of a stage, while saving."""
    after = {name: moment + 3 for name, moment in straight.saved.items()}
    chosen = [after["stage1/step_1"], after["stage1/step_5"], straight.saved["stage2/step_3"] - 2]
    chosen.append(after["stage2/step_5"])
    for moment in chosen:
        plan = {"kill_at": moment, "signals": [signal.SIGTERM], "saved": straight.saved}
        said = mine.start("--resume", code=143, **plan)
        assert "a second signal stops at once" in said and "saved at stage" in said, moment
    mine.start("--resume")
    mine.same_as(straight, chosen)


NOISY = """
import random

def odd_digits(predictions):
    return [{"odd": sum(c in "13579" for c in p) / 4, "noise": random.random()} for p in predictions]
"""


def test_a_signal_in_an_evaluation_leaves_it(template, tmp_path):
    """What has been written and drawn by then is as if it had not been, and the next start does it again.

    Where a checkpoint comes next, where a step does, and at the end of a stage, in the greedy one beside the sampled.
    """
    short = ("train.stage1_steps=2", "train.stage2_steps=1", "eval.every_steps=1")
    whole, left = (Run(template, tmp_path / name) for name in ("whole", "left"))
    for run in (whole, left):
        (run.folder / "my_reward.py").write_text(NOISY)
    whole.start(*short, journal="journal.json")
    _, doing = whole.journal()
    lengths = [len(list(group)) for what, group in groupby(doing) if what == "evaluation 1"]
    rows = []
    for again, length in zip([0, *lengths], lengths, strict=False):  # a start begins with what the last one has left
        at, signals = (length // 2, [signal.SIGTERM]) if again else (length - 8, [signal.SIGHUP, signal.SIGHUP])
        plan = {"kill_in": ["evaluation 1", again + at], "signals": signals}
        assert "before this evaluation; continue with --resume" in left.start(*short, "--resume", code=143, **plan)
        rows.append(len(left.rows("evaluations")))
    assert rows == [0, 2, 3]
    left.start(*short, "--resume")
    left.same_as(whole)


def test_a_second_signal_ends_at_once(mine, straight):
    moment = straight.saved["stage1/step_2"] + 3
    assert "saved at" not in mine.start(code=130, kill_at=moment, signals=[signal.SIGTERM, signal.SIGINT])
    assert {path.name for path in (mine.dir / "stage1").iterdir()} >= {"step_1", "step_2"}
    assert not [*mine.dir.glob("stage*/*.tmp")]


# -- what is refused, and what is not


def refused(run: Run, *options: str, **plan) -> str:
    """The one sentence with which a start ends, exit code 2; the run is as it was."""
    before = run.contents()
    said = run.start(*options, code=2, **plan)
    assert run.contents() == before
    assert said.count("error: ") == 1
    return said.partition("error: ")[2]


@pytest.fixture(scope="module")
def half(template, straight, tmp_path_factory) -> Run:
    """A run that was killed in stage II."""
    run = Run(template, tmp_path_factory.mktemp("half") / "work")
    run.start(code=-signal.SIGKILL, kill_at=straight.saved["stage2/step_4"] + 3)
    return run


def test_other_starts_in_the_folder_are_refused(half, tmp_path):
    mine = Run(half.folder, tmp_path / "work")
    assert "already holds a run: continue it with --resume" in refused(mine)
    message = refused(mine, "--resume", "optimizer.learning_rate=0.1", "train.alpha=3", "tracking.project=mine")
    assert "another config: optimizer.learning_rate: 0.02 -> 0.1; train.alpha: 1.0 -> 3.0; undo" in message
    with open(mine.folder / "rows.jsonl", "a") as file:
        file.write('{"question": "9+9", "answer": "18"}\n')
    assert "the training data has changed" in refused(mine, "--resume")
    said = mine.start("--resume", "--allow-config-change", "train.alpha=3")
    assert "train.alpha: 1.0 -> 3.0" in said and "resumed from runs/tiny/stage2/step_4" in said


def other_weights(base: Path) -> None:
    tensors = load_file(base / "model.safetensors")
    tensors["model.norm.weight"][-1] += 0.25
    save_file(tensors, base / "model.safetensors", {"format": "pt"})


def longer(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


INPUTS = {
    "the base weights": lambda folder: other_weights(folder / "base"),
    "the chat template": lambda folder: longer(folder / "base/chat_template.jinja", "{# a remark #}"),
    "the reward's code": lambda folder: longer(folder / "my_reward.py", "\nWORTH = 1\n"),
    "the tokenizer": lambda folder: longer(folder / "base/tokenizer.json", " "),
}


@long
def test_what_a_run_is_made_of_must_not_change_under_its_name(half, tmp_path):
    for name, change in INPUTS.items():
        mine = Run(half.folder, tmp_path / name)
        change(mine.folder)
        message = refused(mine, "--resume")
        assert f"stage2/step_4: since it was saved, {name} changed under the same name: restore what was th" in message
    for name, change in INPUTS.items():
        if name != "the tokenizer":
            change(mine.folder)
    assert f"since it was saved, {' and '.join(INPUTS)} changed under" in refused(mine, "--resume")
    said = mine.start("--resume", "--allow-config-change")
    assert (
        f"since it was saved, {' and '.join(INPUTS)} changed" in said and "resumed from runs/tiny/stage2/step_4" in said
    )


def test_refusals_need_no_torch(half):
    script = (
        "import sys, train\nfrom lib.core.errors import ConfigError\n"
        "try: train.main()\nexcept ConfigError as error: print(error, 'torch' in sys.modules)"
    )
    for arguments in ([], ["--resume", "seed=2"]):
        command = [sys.executable, "-c", script, "--config", "task.yaml", *arguments]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, cwd=half.folder, env=environment, capture_output=True, text=True)
        assert done.stdout.endswith("False\n"), done.stderr


@pytest.mark.parametrize(
    ("numbers", "code"),
    [([signal.SIGTERM], 143), ([signal.SIGINT], 130), ([signal.SIGTERM] * 2, 143), ([signal.SIGKILL], -9)],
)
def test_the_command_after_a_checkpoint_ends_with_the_run(mine, numbers, code):
    command = "sh -c 'sleep 300 & echo $$ $! > {checkpoint}/../pids; wait'"
    run = mine.launch(f"train.after_checkpoint={command}")
    written = mine.dir / "stage1/pids"
    forks.wait_for(lambda: written.exists() and written.read_text().endswith("\n"), run, mine.folder / "said.txt")
    for number in numbers:
        os.kill(run.pid, number)
    run.join(60)
    assert run.exitcode == code
    if len(numbers) == 1:  # between two, it may have been told or not
        told = "train.after_checkpoint: stopped after" in (mine.folder / "said.txt").read_text()
        assert told == (number != signal.SIGKILL)
    processes = [Path("/proc", pid) for pid in written.read_text().split()]
    end = time.monotonic() + 10
    while any(map(is_running, processes)):
        assert time.monotonic() < end
        time.sleep(0.01)


def is_running(process: Path) -> bool:
    try:
        return "\nState:\tZ" not in (process / "status").read_text()
    except FileNotFoundError:
        return False


@long
def test_two_runs_in_one_folder(mine, straight):
    stopped = mine.launch(kill_at=straight.saved["stage1/step_1"], signals=[signal.SIGSTOP])
    forks.wait_for((mine.folder / "ended.txt").exists, stopped, mine.folder / "said.txt")
    try:
        for options in ((), ("--resume",)):
            assert f"in use by process {stopped.pid}" in refused(mine, *options)
    finally:
        stopped.kill()
        stopped.join()
    mine.start("--resume")
    mine.same_as(straight)


def test_a_finished_run_says_so(straight, tmp_path):
    mine = Run(straight.folder, tmp_path / "work")
    before = mine.contents()
    said = mine.start("--resume")
    assert "this run is finished" in said and "after stage II" in said
    assert mine.contents() == before


@pytest.mark.parametrize("deleted", ["stage?/step_*", "stage2/step_*"])
def test_a_stage_that_has_ended_is_not_trained_over_without_its_checkpoints(straight, tmp_path, deleted):
    mine = Run(straight.folder, tmp_path / "work")
    for folder in mine.dir.glob(deleted):
        shutil.rmtree(folder)
    before = mine.contents()
    for options in (["--resume"], ["--resume", "train.stage2_steps=7", "--allow-config-change"]):
        assert refused(mine, *options).startswith("runs/tiny/stage2: this stage has ended, and none of its checkpoints")
        assert mine.contents() == before
    if deleted == "stage2/step_*":
        mine.start("--resume", "runs/tiny/stage1/step_6")
        mine.same_as(straight)


@pytest.mark.parametrize("moment", [0, 2])
def test_a_run_killed_after_its_last_checkpoint_has_ended(straight, mine, moment):
    mine.start(code=-signal.SIGKILL, kill_at=straight.saved["stage2/step_6"] + moment)
    mine.start("--resume")
    mine.same_as(straight)
    assert "this run is finished: nothing is left to do" in mine.start("--resume")


def test_rows_without_a_checkpoint_are_kept(straight, tmp_path):
    mine = Run(straight.folder, tmp_path / "work")
    for folder in mine.dir.glob("stage?"):
        shutil.rmtree(folder)
    assert "holds the rows of a run, but no checkpoint to resume from" in refused(mine, "--resume")


def test_a_run_that_lost_its_config_and_its_checkpoints_keeps_its_rows(straight, tmp_path):
    mine = Run(straight.folder, tmp_path / "work")
    for folder in mine.dir.glob("stage?/step_*"):
        shutil.rmtree(folder)
    (mine.dir / "config.yaml").unlink()
    assert "already holds a run: continue it with --resume" in refused(mine)
    shutil.rmtree(mine.dir / "stage2")
    assert "stage1: this stage has ended, and none of its checkpoints" in refused(mine, "--resume")


def test_a_stage_that_runs_again_has_not_ended(straight, tmp_path):
    mine = Run(straight.folder, tmp_path / "work")
    plan = {"kill_in": ["train 1", 3]}
    mine.start("--resume", str(mine.dir.relative_to(mine.folder) / "stage1/step_5"), code=-signal.SIGKILL, **plan)
    assert "resumed from runs/tiny/stage1/step_5" in mine.start("--resume")
    mine.same_as(straight)


ADAPTER = "adapter_model.safetensors"
DAMAGE = [
    (2, lambda folder: flip(folder / ADAPTER), f"{ADAPTER} is damaged"),
    (1, lambda folder: (folder / ADAPTER).unlink(), f"{ADAPTER} is missing"),
    (2, lambda folder: os.truncate(folder / "adapter_config.json", 9), "adapter_config.json has 9 bytes"),
    (2, lambda folder: (folder / MANIFEST).unlink(), "MANIFEST.json is missing"),
]


@long
def test_damaged_adapters_of_a_finished_run_come_back(straight, tmp_path):
    mine = Run(straight.folder, tmp_path / "work")
    for stage, damage, reason in DAMAGE:
        damage(mine.dir / f"stage{stage}")
        said = mine.start("--resume")
        assert f"stage{stage} IS BROKEN: {reason}" in said
        assert f"runs/tiny/stage{stage} was rewritten from runs/tiny/stage{stage}/step_6" in said
        mine.same_as(straight, reason)
    before = mine.contents()
    assert "IS BROKEN" not in mine.start("--resume") and mine.contents() == before
    flip(mine.dir / "stage1/step_6/optimizer.bin")
    flip(mine.dir / "stage1/tokenizer.json")
    assert "stage1 cannot be rewritten: runs/tiny/stage1/step_6 is broken too" in mine.start("--resume")


def test_stage_two_begins_again_after_the_rows_of_a_restored_adapter(straight, tmp_path):
    mine = Run(straight.folder, tmp_path / "work")
    flip(mine.dir / "stage1" / ADAPTER)
    assert "stage1 was rewritten" in mine.start("--resume")
    assert read_manifest(mine.dir / "stage1") == read_manifest(straight.dir / "stage1")
    shutil.rmtree(mine.dir / "stage2")
    mine.start("--start-stage", "2", "--resume-adapter", "runs/tiny/stage1")
    assert [(row["stage"], row["step"]) for row in mine.rows()] == [(s, n) for s in (1, 2) for n in range(1, 7)]


def test_adapters_are_on_the_disk_when_a_stage_ends(straight):
    """A file of theirs that is not synced may be empty behind a power cut."""
    synced = json.loads((straight.folder / "synced.json").read_text())
    for stage in (straight.dir / "stage1", straight.dir / "stage2"):
        files = [str(path) for path in stage.iterdir() if path.is_file() and path.name != MANIFEST]
        end = synced.index(f"{stage / MANIFEST}.tmp")
        assert len(files) >= 5 and {*files} <= {*synced[:end]} and synced[end + 1] == str(stage)


# -- rewards that raise

BROKEN = """
import json
import sys
from pathlib import Path

def odd_digits(predictions):
    rows = Path("runs/tiny/{stream}.jsonl")
    if rows.exists() and len(rows.read_text().splitlines()) == {rows} and not Path("fixed").exists():
        for p in predictions:
            {fault}
    return [{{"odd": any(c in "13579" for c in p) / 4, "brief": -(len(p) // 4) / 40}} for p in predictions]
"""


@pytest.mark.parametrize(
    ("stream", "rows", "fault", "where", "what"),
    part(
        [
            ("metrics", 1, "p[9]", "stage 1 step 2: ", "IndexError: string index out of range"),
            ("evaluations", 1, "sys.exit(0)", "stage 1 step 0, evaluation: ", "SystemExit: 0"),
        ],
        every=2,
    ),
)
def test_a_reward_that_raises_is_told_and_fixed(mine, straight, stream, rows, fault, where, what):
    (mine.folder / "my_reward.py").write_text(BROKEN.format(stream=stream, rows=rows, fault=fault))
    said = mine.start(code=7)
    line = next(line for line in said.splitlines() if line.startswith("error: "))
    what_and_where = f"{where}reward 'my_reward.odd_digits' raised {what} (my_reward.py:10) for sample "
    assert line.startswith(f"error: {what_and_where}")
    assert line.endswith(
        "; the traceback is in runs/tiny/traceback.log; fix it, then --resume from the last checkpoint"
    )
    kept = (mine.dir / "traceback.log").read_text()
    assert f"    {fault}" in kept and what.partition(":")[0] in kept
    (mine.folder / "fixed").touch()
    mine.start("--resume")
    (mine.dir / "traceback.log").unlink()
    mine.same_as(straight)


def test_a_reward_that_raises_loses_no_step_before(template, tmp_path):
    """Between two checkpoints, after prompts and a replay were drawn, and some of the answers judged and logged."""
    config = CONFIG | {"train": CONFIG["train"] | {"checkpoint_every": 0, "keep_best": False}}
    straight, mine = (moments.Run("train", template, tmp_path / name, config) for name in ("straight", "mine"))
    straight.start()
    rewards = BROKEN.format(stream="metrics", rows=9, fault='Path("once").exists() and p[9] or Path("once").touch()')
    (mine.folder / "my_reward.py").write_text(rewards)
    said = mine.start(code=7)
    assert "saved at stage 2 step 3, before the next step; continue with --resume, from runs/tiny/stage2/step_3" in said
    assert [path.name for path in mine.dir.glob("stage2/step_*")] == ["step_3"]
    (mine.folder / "fixed").touch()
    assert "resumed from runs/tiny/stage2/step_3" in mine.start("--resume")
    for stream in ("metrics", "evaluations", "generations", "failures"):
        assert mine.rows(stream) == straight.rows(stream)


def test_an_error_of_a_reward_counts_more_than_a_full_disk(template, tmp_path):
    """It is reported, and may be corrected, although the steps before cannot be saved."""
    config = CONFIG | {"train": CONFIG["train"] | {"checkpoint_every": 0, "keep_best": False}}
    mine = moments.Run("train", template, tmp_path / "mine", config)
    fault = 'setattr(__import__("shutil"), "disk_usage", lambda path: __import__("argparse").Namespace(free=1)) or p[9]'
    (mine.folder / "my_reward.py").write_text(BROKEN.format(stream="metrics", rows=2, fault=fault))
    said = mine.start(code=7)
    assert "cannot be saved with" in said and "stage 1 step 2, evaluation: reward 'my_reward.odd" in said
    assert (mine.dir / "traceback.log").exists()
    (mine.folder / "my_reward.py").write_text(REWARD)
    assert "resumed from runs/tiny/stage1/step_0" in mine.start("--resume")


def test_a_reward_that_returns_no_number_is_told_and_fixed(mine):
    fault = "return [float('nan')] * len(predictions)"
    (mine.folder / "my_reward.py").write_text(BROKEN.format(stream="metrics", rows=1, fault=fault))
    said = " ".join(mine.start(code=7).split())
    assert "stage 1 step 2: reward 'my_reward.odd_digits' returned nan for sample 0" in said
    assert "--resume from the last checkpoint" in said
    (mine.folder / "fixed").touch()
    (mine.folder / "my_reward.py").write_text(BROKEN.format(stream="metrics", rows=1, fault="pass"))
    mine.start("--resume")


@long
def test_a_reward_that_raised_may_be_rewritten(mine, straight):
    """And once it judges, no more."""
    (mine.folder / "my_reward.py").write_text(BROKEN.format(stream="metrics", rows=2, fault="p[9]"))
    mine.start(code=7)
    (mine.folder / "my_reward.py").write_text(REWARD)
    said = mine.start("--resume")
    assert (
        "the reward raised an error after it was saved, and the reward's code changed: continues with the change"
        in said
    )
    (mine.folder / "my_reward.py").write_text(REWARD.replace("40", "41"))
    assert "since it was saved, the reward's code changed under the same name" in refused(mine, "--resume")
    (mine.dir / "traceback.log").unlink()
    mine.same_as(straight)


@pytest.mark.parametrize(
    ("stream", "rows", "number", "code", "told"),
    part(
        [
            ("metrics", 1, signal.SIGTERM, 143, "step 2 is left; continue with --resume, from runs/tiny/stage1/step_1"),
            ("evaluations", 1, signal.SIGINT, 130, "saved at stage 1 step 0, before this evaluation; continue with"),
        ],
        every=2,
    ),
)
def test_a_signal_ends_a_reward_that_hangs(mine, straight, stream, rows, number, code, told):
    fault = 'Path("hangs").touch() or __import__("time").sleep(3600)'
    (mine.folder / "my_reward.py").write_text(BROKEN.format(stream=stream, rows=rows, fault=fault))
    process = mine.launch()
    forks.wait_for((mine.folder / "hangs").exists, process, mine.folder / "said.txt")
    os.kill(process.pid, number)
    assert told in mine.ended(process, code)
    (mine.folder / "fixed").touch()
    mine.start("--resume")
    mine.same_as(straight)


# -- warm start


def test_stage_two_from_an_adapter(straight, mine):
    adapter = str(straight.dir / "stage1")
    mine.start("--start-stage", "2", "--resume-adapter", adapter)
    assert [(row["stage"], row["step"]) for row in mine.rows()] == [(2, step) for step in range(1, 7)]
    first, theirs = mine.rows("evaluations")[0], straight.rows("evaluations")
    theirs = next(row for row in theirs if row["when"] == "after_stage1")
    place = ("when", "stage", "step")
    assert [first[key] for key in place] == ["after_stage1", 2, 0]
    assert {**first, **{key: theirs[key] for key in place}} == theirs
    saved = load_file(mine.dir / "stage2/adapter_model.safetensors")
    given = load_file(f"{adapter}/adapter_model.safetensors")
    assert any(not torch.equal(saved[name], given[name]) for name in given)
    assert not (mine.dir / "stage1/adapter_model.safetensors").exists()


@pytest.fixture(scope="module")
def first_stage(template, straight, tmp_path_factory) -> Run:
    """A run killed in stage II after a step that no checkpoint holds."""
    run = Run(template, tmp_path_factory.mktemp("first") / "work")
    run.start(code=-signal.SIGKILL, kill_at=straight.moments.index("saving 2", straight.saved["stage1/step_6"]) + 1)
    assert [(row["stage"], row["step"]) for row in run.rows()][-2:] == [(1, 6), (2, 1)]
    return run


@pytest.mark.parametrize("adapter", part(["step_3", "best", "."], every=3))
def test_stage_two_begins_in_the_run_of_its_adapter(first_stage, tmp_path, adapter):
    given = f"runs/tiny/stage1/{adapter}"
    begin = ("--start-stage", "2", "--resume-adapter", given)
    whole, mine = (Run(first_stage.folder, tmp_path / name) for name in ("whole", "mine"))
    before = {stream: whole.rows(stream) for stream in ("metrics", "evaluations")}
    assert "train.alpha: 1.0 -> 3.0" in refused(mine, *begin, "train.alpha=3")
    whole.start(*begin)
    assert [(row["stage"], row["step"]) for row in whole.rows()] == [(s, n) for s in (1, 2) for n in range(1, 7)]
    assert whole.rows()[:6] == before["metrics"][:6] and whole.rows()[6]["global_step"] == 7
    kept, added = before["evaluations"], whole.rows("evaluations")[len(before["evaluations"]) :]
    assert whole.rows("evaluations")[: len(kept)] == kept
    assert [(row["when"], row["stage"], row["step"]) for row in added if row["temperature"]] == [
        ("adapter", 2, 0), ("step", 2, 2), ("step", 2, 4), ("after_stage2", 2, 6)
    ]  # fmt: skip
    links = {name: os.readlink(whole.dir / name) for name in ("best", "stage1/best")}
    assert links == {"best": "stage2/best", "stage1/best": os.readlink(first_stage.dir / "stage1/best")}
    if adapter == ".":
        end = next(row for row in kept if row["when"] == "after_stage1")
        assert added[0] == end | {"when": "adapter", "stage": 2, "step": 0}
    process = forks.script(ROOT / "report.py", whole.dir, cwd=whole.folder, output=whole.folder / "said.txt")
    whole.ended(process)
    page = (whole.dir / "report.html").read_text()
    assert re.search(r"after stage I\b", page) and re.search(r"after stage II\b", page)
    (whole.dir / "report.html").unlink()

    for moment in (["saving 2", 1], ["evaluation 2", 2], ["train 2", 5]):
        mine.start(*begin, code=-signal.SIGKILL, kill_in=moment)
        begin = ("--resume",) if (mine.dir / "stage2/step_0").exists() else begin
    second = refused(mine, "--start-stage", "2", "--resume-adapter", given)
    assert second.startswith(
        "runs/tiny/stage2 already holds stage II of this run: continue it with --resume, or start "
    )
    assert second.endswith("by run_name=tiny-stage2\n")
    mine.start("--resume")
    mine.same_as(whole)


def test_a_finished_stage_two_is_not_begun_again_without_its_checkpoints(straight, tmp_path):
    mine = Run(straight.folder, tmp_path / "work")
    for folder in mine.dir.glob("stage?/step_*"):
        shutil.rmtree(folder)
    begin = ("--start-stage", "2", "--resume-adapter", "runs/tiny/stage1")
    assert refused(mine, *begin).startswith("runs/tiny/stage2 already holds stage II of this run")
    (mine.dir / "stage2" / MANIFEST).unlink()
    assert refused(mine, *begin).startswith("runs/tiny/stage2 already holds stage II of this run")


def test_a_resume_takes_no_other_weights(half):
    for options in (["--start-stage", "2"], ["--start-stage", "1"], ["--resume-adapter", "runs/tiny/stage1"]):
        assert refused(half, "--resume", *options).startswith("--resume: continues a run where it was, with its own")


def test_warm_starts_that_cannot_work(mine):
    assert "add --resume-adapter DIR" in mine.start("--start-stage", "2", code=2)
    for adapter in ("base", "nowhere"):
        said = mine.start("--start-stage", "2", "--resume-adapter", adapter, code=2)
        assert f"error: --resume-adapter: {adapter}: no adapter here" in said
    assert not mine.dir.parent.exists()


# -- disk full


@pytest.mark.parametrize("place", part(["checkpoint", "adapter"], every=2))
def test_a_full_disk_keeps_the_old_checkpoint(mine, straight, place):
    newest = "stage2/step_2" if place == "checkpoint" else "stage1/step_5"
    if place == "checkpoint":
        moment = straight.moments.index("saving 2", straight.saved[newest]) + 2
    else:
        moment = straight.moments.index("evaluation 1", straight.saved[newest])
    assert "cannot be saved with" in mine.start(code=74, full_from=moment)
    assert problems(mine.dir / newest) == []
    assert f"resumed from runs/tiny/{newest}" in mine.start("--resume")
    mine.same_as(straight)


# -- kill -9 of what pushes, merges, prunes and goes on into stage II

HUB = {"repo_id": "me/run"}
STAGE1 = ("--resume", "train.stage2_steps=0")
STAGE2 = ("--start-stage", "2", "--resume-adapter", "runs/tiny/stage1", "--allow-config-change")
MERGE = ("runs/tiny", "--to", "merged", "--out", "merged")
SAVE, PUT, PRUNE = ".*/stage{0}/step_{1}(.tmp.*)?", ".*/to_hub/stage{0}-step_{1}~.*", ".*/stage{0}/step_{2}/.*"
CONFIG_FILE = ".* runs/tiny/config.yaml(.tmp)?"
BEGIN = {1: [SAVE, CONFIG_FILE], 2: [CONFIG_FILE, SAVE]}  # stage I has a config once there is something to resume
KILLS = [  # before which changes, by step; {2} is the checkpoint that is reduced to its weights
    (1, [SAVE, PUT]), (2, [SAVE, PUT]), (3, [SAVE, PRUNE]), (4, [SAVE, PRUNE]),
    (5, [SAVE, PUT, r".*/stage{0}/\w+.json", ".*/to_hub/main~.*"]),
]  # fmt: skip
PUSHES = ("os.rename .*~.pushed", "os.remove .*~.pushed/.*", "os.rename .*~.pushed", "os.rmdir .*~.pushed")
PUSH = """
import runpy, sys
sys.path[:0] = {paths!r}
from helpers.file_events import watch
watch(kill_before={kill!r})
sys.argv = ["push.py", "runs/tiny"]
runpy.run_path(sys.path[0] + "/push.py", run_name="__main__")
"""


class PushedRun(moments.Run):
    """A run of five steps in each stage, which pushes to a hub.

    `at_hub` says for each commit to come whether the process that pushes is killed "before" or "after" it, or not ("").
    """

    def __init__(self, template: Path, folder: Path, hub: StandIn):
        train = CONFIG["train"] | {"stage1_steps": 5, "stage2_steps": 5, "keep_checkpoints": 2}
        reward = {"fn": "my_reward.right_if_odd"}
        super().__init__("train", template, folder, CONFIG | {"train": train, "reward": reward, "hub": HUB})
        self.outbox = self.dir / OUTBOX
        self.hub, self.environment = hub, environment(hub, folder / "hf")
        self.hub.refuses, self.hub.committed = self.asked, self.committed
        self.at_hub: list[str] = []
        self.when, self.killed_at_hub = "", 0
        self.commits: list[tuple[str, dict[str, bytes]]] = []

    def go(self, script: str, *options: str, **plan) -> int:
        """Runs a script until it has ended well or was killed; returns its exit code."""
        self.script = script
        process = self.launch(*options, environment=self.environment, **plan)
        process.join(120)
        assert process.exitcode in (0, -signal.SIGKILL), self.said()
        return process.exitcode

    def train(self, stage: int, **plan) -> int:
        """Starts or continues a stage."""
        if stage == 1:
            return self.go("train", *STAGE1, **plan)
        return self.go("train", *(["--resume"] if (self.dir / "stage2/step_0").exists() else STAGE2), **plan)

    def push(self, kill: str = "") -> int:
        """Runs push.py; returns its exit code."""
        code = PUSH.format(paths=[str(ROOT), str(ROOT / "tests")], kill=kill)
        where = {"cwd": self.folder, "env": {**os.environ, **self.environment}}
        return subprocess.run([sys.executable, "-c", code], capture_output=True, **where).returncode

    def kill_pushing(self) -> None:
        """Kills the processes that push this run."""
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it has ended, or is not ours
                is_mine = os.readlink(process / "cwd") == str(self.folder)
                if is_mine and b"push.py" in (process / "cmdline").read_bytes():
                    os.kill(int(process.name), signal.SIGKILL)

    def asked(self, method: str, path: str) -> int:
        if "/commit/" not in path:
            return 0
        self.when = self.at_hub.pop(0) if self.at_hub else ""
        return self.kill_at_hub("before")

    def committed(self, branch: str, files: dict[str, bytes]) -> None:
        self.commits.append((branch, files))
        self.kill_at_hub("after")

    def kill_at_hub(self, when: str) -> int:
        if self.when != when:
            return 0
        self.kill_pushing()
        self.killed_at_hub += 1
        return 500

    def contents(self) -> dict[Path, bytes]:
        return {path: data for path, data in super().contents().items() if self.outbox not in path.parents}

    def newest_weights(self) -> dict[str, bytes]:
        """The weights that each revision should have."""
        folders = [*self.dir.glob("stage?/step_[1-9]"), self.dir / "stage2"]
        return {revision_of(folder): (folder / ADAPTER).read_bytes() for folder in folders}

    def on_hub(self, file: str) -> dict[str, bytes]:
        """A file of every revision."""
        return {branch: files[file] for branch, files in self.hub.repos[HUB["repo_id"]].branches.items()}

    def merged(self) -> dict[str, bytes]:
        return {f"{path.parent.name}/{path.name}": path.read_bytes() for path in self.folder.glob("merged*/*")}


def test_stage_two_pushes_what_the_end_of_stage_one_could_not(mine):
    nowhere = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_TOKEN": "hf_of_nobody"}
    killed = {"code": -signal.SIGKILL, "environment": nowhere}
    options = ("hub.repo_id=me/run", "train.stage1_steps=1")
    mine.start(*options, "train.stage2_steps=0", kill_before=".*/to_hub/stage1-step_1~.*", **killed)
    assert "stage1-step_1" not in map(name_of, waiting(mine.dir / OUTBOX))
    adapter = ("--start-stage", "2", "--resume-adapter", "runs/tiny/stage1/step_1", "--allow-config-change")
    mine.start(*options, *adapter, kill_before=".*/stage2/step_0.*", **killed)
    assert "stage1-step_1" in map(name_of, waiting(mine.dir / OUTBOX))


@long
def test_forty_kills_of_a_run_that_pushes_merges_prunes_and_goes_on(template, tmp_path):
    """14 in each stage, 4 each in a merge and in push.py, and 4 of the process that pushes, at the Hub.

    What a commit holds is still in the outbox if the kill comes between the two; it is offered again, but the Hub's
    client leaves out of a commit what has not changed, and commits nothing if nothing is left.
    """
    dice, kills = random.Random(43), Counter()

    def killed(where: str, act: Callable, *arguments, pattern: str) -> None:
        change = dice.choice([change for change in changes if re.fullmatch(pattern, change)])
        assert act(*arguments, kill_before=re.escape(change)) == -signal.SIGKILL, (change, mine.said())
        if dice.random() < 0.25:  # as if the machine had stopped
            mine.kill_pushing()
        kills[where] += 1

    with stand_in("hf_of_nobody") as one, stand_in("hf_of_nobody") as another:
        straight, mine = PushedRun(template, tmp_path / "a", one), PushedRun(template, tmp_path / "b", another)
        assert [straight.train(stage, events="events.txt") for stage in (1, 2)] == [0, 0]
        assert straight.go("export", *MERGE, events="events.txt") == 0
        changes = list(dict.fromkeys((straight.folder / "events.txt").read_text().splitlines()))

        mine.at_hub = ["", "before", "", "after"] * 2
        for stage in (1, 2):  # stage II begins where the end of stage I was killed
            for step, patterns in [(0, BEGIN[stage]), *KILLS]:
                if (stage, step) == (2, 4):  # until the end of the run the Hub is out of order
                    mine.hub.refuses = lambda method, path: 503 if method == "POST" else 0
                for pattern in patterns:
                    killed(f"stage {stage}", mine.train, stage, pattern=pattern.format(stage, step, step - 2))
        assert mine.train(2) == 0
        mine.hub.refuses, mine.at_hub, later = mine.asked, [], mine.at_hub
        for change in PUSHES:
            assert mine.push(change) == -signal.SIGKILL
            kills["push.py"] += 1
        mine.at_hub = later
        while waiting(mine.outbox):
            mine.push()
        for _ in range(4):
            killed("merge", mine.go, "export", *MERGE, pattern=".* merged.*")
        assert mine.go("export", *MERGE) == 0

    print(f"{dict(kills)}, at the Hub {mine.killed_at_hub}; {len(later)} commits were left to do after training")
    assert kills == {"stage 1": 14, "stage 2": 14, "push.py": 4, "merge": 4} and mine.killed_at_hub == 4
    mine.same_as(straight)
    assert mine.merged() == straight.merged() and "merged/model.safetensors" in mine.merged()
    for run in (straight, mine):
        assert run.on_hub(ADAPTER) == run.newest_weights()
        pushed = [(branch, files[ADAPTER]) for branch, files in run.commits if ADAPTER in files]
        assert len({*pushed}) == len(pushed) and all(files for _, files in run.commits)
        assert sorted(path.name for path in run.outbox.iterdir()) == [".lock", "push.log"]
    assert mine.on_hub(CARD) == straight.on_hub(CARD)


# -- several processes

SHORT = ("train.stage1_steps=2", "train.stage2_steps=2", "eval.selection_examples=0", "--resume")


def test_two_processes_train_stop_and_resume_together(template, tmp_path):
    two, again = (Run(template, tmp_path / name) for name in ("two", "again"))
    weights = two.start_two(*SHORT, plans=({}, {"journal": "journal.json"}))
    assert len(weights[0]) == 28 and all(map(torch.equal, *weights))
    assert [row["global_step"] for row in two.rows()] == [1, 2, 3, 4]
    assert [row["n"] for row in two.rows("evaluations")] == [6] * 6  # sampled and greedy, three times

    _, doing = two.journal()
    # the second process gets a Ctrl-C, and the launcher passes it on: both save and leave
    signalled = {"kill_at": doing.index("train 2") + 2, "signals": [signal.SIGINT, signal.SIGTERM]}
    again.start_two(*SHORT, code=130, plans=({}, signalled))
    assert "saved at stage 2 step 1" in again.said()
    one = Run(again.folder, tmp_path / "one")
    assert all(map(torch.equal, weights[0], again.start_two(*SHORT)[1]))
    again.same_as(two)
    assert "saved by 2 processes, this run has 1: prompts, samples" in one.start(*SHORT, weights="weights0.pt")
    assert one.rows() == [moments.near(row) for row in two.rows()]
    for mine, theirs in zip(one.weights(), weights[0], strict=True):
        assert torch.allclose(mine, theirs, rtol=0, atol=1e-5)


@pytest.mark.parametrize("killed", [0, pytest.param(1, marks=long)])
def test_a_killed_process_ends_the_others_and_all_resume(template, tmp_path, killed):
    two, again = (Run(template, tmp_path / name) for name in ("two", "again"))
    two.start_two(*SHORT)
    plans = [{}, {}]
    plans[killed] = {"kill_in": ["train 2", 5]}
    processes = again.launch_several(*SHORT, plans=plans)
    processes[killed].join(60)
    assert processes[killed].exitcode == -signal.SIGKILL
    begin = time.monotonic()
    said = again.ended(processes[1 - killed], 8, moments.said_by(1 - killed))
    assert time.monotonic() - begin < 60 and "error: another process of this run has ended" in said
    again.start_two(*SHORT)
    again.same_as(two)


@long
@pytest.mark.parametrize(
    "more",
    [("train.baseline=leave_one_out",), ("train.baseline=batch",),
     ("prompts.stop=verdict", "train.revisions_per_attempt=1", "train.base_first_attempts=0.3",
      "curriculum.replay=null", "optimizer.learning_rate=0.001")],
)  # fmt: skip
def test_the_number_of_processes_does_not_change_an_update(template, tmp_path, more):
    """Five prompts, shared as two and three, or as one, one, one and two: the same texts, evaluations and updates."""
    # a large alpha keeps every gradient far from AdamW's epsilon, where the last bit of a sum moves a weight
    options = (*SHORT, "train.length_norm=token", "train.micro_batch_tokens=130", "train.alpha=10",
               "optimizer.learning_rate=0.005", *more)  # fmt: skip
    options += tuple(f"train.stage{stage}_{each}" for stage in (1, 2) for each in ("batch_size=5", "steps=1"))
    moments.alike(Run, template, tmp_path, options)


@long
def test_a_sharded_base_does_not_change_an_update(template, tmp_path):
    """Nor what is sampled; two processes stop and resume bit by bit, and PEFT loads the adapter on a whole base."""
    options = (*SHORT, "train.alpha=10", "optimizer.learning_rate=0.005")
    sharded = ("model.sharded=true",)
    one, two, _ = moments.alike(Run, template, tmp_path, options, sharded)
    again = Run(template, tmp_path / "again")
    signalled = {"kill_in": ["train 2", 1], "signals": [signal.SIGTERM]}
    again.start_two(*options, *sharded, code=143, plans=({}, signalled))
    again.start_two(*options, *sharded)
    again.same_as(two)
    ids, logits = torch.arange(12)[None], []
    for run in (one, two):
        base = AutoModelForCausalLM.from_pretrained(template / "base")
        logits.append(PeftModel.from_pretrained(base, run.dir / "stage2")(ids).logits)
    assert torch.allclose(*logits, rtol=0, atol=1e-5)
    assert "expected several: launch by torchrun" in Run(template, tmp_path / "alone").start(*sharded, code=2)
