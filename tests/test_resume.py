"""A run that is killed, interrupted, starved of disk or spread over processes ends like one that was left alone.

Starts of train.py are forked from one process that has imported everything, so that a start costs no import.
"""

import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import forks
import pytest
import torch
import yaml
from safetensors.torch import load_file

from lib.checkpoint import MANIFEST, problems
from lib.clock import PHASES
from lib.config import FromScratch
from lib.runlog import read_jsonl
from lib.scratch import build

ROOT = Path(__file__).parents[1]
RUN = Path("runs/tiny")
STREAMS = ("metrics", "evaluations", "generations", "failures")
TIMES = {"time", "tokens_per_second", *(f"seconds_{name}" for name in PHASES)}
TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|im_end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
CONFIG = {
    "run_name": "tiny",
    "output_dir": "runs",
    "seed": 1,
    "model": {"name": "base", "backend": "plain", "max_seq_length": 64},
    "lora": {"r": 2, "alpha": 4},
    "dataset": {"name": "rows.jsonl", "test_split_size": 6},
    "prompts": {"user": "{question}", "self_correction": "again"},
    "reward": {"fn": "my_reward.odd_digits"},
    "generation": {
        "max_prompt_length_attempt1": 8, "max_prompt_length_attempt2": 32,
        "max_new_tokens_attempt1": 4, "max_new_tokens_attempt2": 4,
    },
    "optimizer": {"learning_rate": 0.02, "warmup_steps": 2, "schedule": "cosine"},
    "train": {
        "stage1_steps": 6, "stage2_steps": 6, "stage1_batch_size": 4, "stage2_batch_size": 4, "attempts_per_prompt": 2,
        "revisions_per_attempt": 2, "micro_batch_tokens": 150, "adaptive_beta2": {"target": 0.01},
        "checkpoint_every": 1,
    },
    "eval": {"max_examples": 6, "temperature": 1.0, "every_steps": 2},
}  # fmt: skip
REWARD = """
def odd_digits(predictions):
    return [{"odd": sum(c in "13579" for c in p) / 4, "brief": -len(p) / 40} for p in predictions]
"""


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> Path:
    """A folder with a random base model, rows, a reward and a config: all that a run needs."""
    folder = tmp_path_factory.mktemp("template")
    architecture = {
        "model_type": "qwen3", "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8,
    }  # fmt: skip
    tokens = ["<|user|>", "<|assistant|>"]
    scratch = FromScratch(architecture=architecture, characters="0123456789+agin", special_tokens=tokens)
    for part in build(scratch, TEMPLATE, seed=0):
        part.save_pretrained(folder / "base")
    rows = [{"question": f"{a}+{b}", "answer": str(a + b)} for a in range(6) for b in range(5)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "my_reward.py").write_text(REWARD)
    (folder / "task.yaml").write_text(yaml.safe_dump(CONFIG))
    return folder


@pytest.fixture
def folder(template, tmp_path) -> Path:
    return shutil.copytree(template, tmp_path / "work")


@pytest.fixture(scope="module")
def straight(template, tmp_path_factory) -> "Straight":
    """The uninterrupted run, and at which moment it did what."""
    folder = shutil.copytree(template, tmp_path_factory.mktemp("straight") / "work")
    assert start(folder, "--dry-run") == 0, said(folder)  # so that the imports are not timed
    started = time.monotonic()
    assert start(folder, journal="journal.json") == 0, said(folder)
    return Straight(folder, time.monotonic() - started)


class Straight:
    def __init__(self, folder: Path, seconds: float):
        self.folder, self.seconds = folder, seconds
        print(f"an uninterrupted run takes {seconds:.1f} s")
        self.result = result(folder)
        journal = json.loads((folder / "journal.json").read_text())
        self.saved: dict[str, int] = journal["saved"]  # checkpoint -> moment at which it was complete
        self.moments: list[str] = journal["moments"]  # what the run was doing at each moment


def result(folder: Path, run: Path = RUN) -> dict:
    """What must be equal to the last bit: all final state, and every row but for times."""
    newest = folder / run / "stage2" / f"step_{CONFIG['train']['stage2_steps']}"
    assert problems(newest) == []
    checksums = {name: facts["sha256"] for name, facts in json.loads((newest / MANIFEST).read_text())["files"].items()}
    adapter = (folder / run / "stage2" / "adapter_model.safetensors").read_bytes()
    return {"state": checksums, "adapter": adapter, **{name: rows_of(folder, name, run) for name in STREAMS}}


def rows_of(folder: Path, stream: str = "metrics", run: Path = RUN) -> list[dict]:
    rows, bad = read_jsonl(folder / run / f"{stream}.jsonl")
    assert bad == 0
    return [{key: value for key, value in row.items() if key not in TIMES} for row in rows]


def assert_same(folder: Path, straight: Straight, note: object = "") -> None:
    for name, value in result(folder).items():
        assert value == straight.result[name], (name, note)


# -- starting train.py: forked, with everything imported


def launch(folder: Path, *arguments: str, output: str = "said.txt", **plan) -> multiprocessing.Process:
    environment = {**os.environ, **plan.get("environment", {})}
    return forks.call(_child, arguments, plan, cwd=folder, output=output, environment=environment)


def start(folder: Path, *arguments: str, **plan) -> int:
    """The exit code of `python train.py --config task.yaml <arguments>`; negative: the signal that ended it."""
    process = launch(folder, *arguments, **plan)
    process.join()
    return process.exitcode


def said(folder: Path) -> str:
    return (folder / "said.txt").read_text()


def _child(arguments: tuple[str, ...], plan: dict) -> None:
    import train
    from lib.errors import run_script

    torch.set_num_threads(1)
    sys.argv = ["train.py", "--config", "task.yaml", *arguments]
    moments = Moments(plan)
    try:
        run_script(train.main)
    finally:
        if "journal" in plan:
            Path(plan["journal"]).write_text(json.dumps({"saved": moments.saved, "moments": moments.all}))
        if "weights" in plan and moments.run is not None:
            torch.save([parameter.detach() for parameter in moments.run._bare_policy().trainable], plan["weights"])


def _sample_all(run, stage):
    """Stands for Score.sample: every process samples the whole batch, with one seed, and keeps its share."""
    from lib.distributed import share
    from lib.rollout import two_attempts

    run.clock.start()
    train, dataset = run.config.train, run.config.dataset
    rows = [run.task.train[i] for i in run.sampler.take(stage.batch_size)]
    sampling = run.task.sampling(1.0, train.attempts_per_prompt, train.revisions_per_attempt)
    generator = torch.Generator().manual_seed(5)
    parts = run._bare_policy(), run.task.prompts, rows, dataset.target_field, run.task.judge, sampling, generator
    rollouts = two_attempts(*parts)
    return [
        rollouts[4 * prompt + leaf] for prompt in share(list(range(len(rows))), run.accelerator) for leaf in range(4)
    ]


class Moments:
    """Counts what a run does, from its first evaluation on: every write, forward and update is a moment.

    At the moment `kill_at` the process gets `signals`, SIGKILL by default; from `full_from` on no file may grow. A
    resumed run goes on counting at its checkpoint's moment.
    """

    def __init__(self, plan: dict):
        import peft.peft_model

        from lib.checkpoint import Checkpoints
        from lib.llama import Llama, Merged
        from lib.score import Score

        self.plan, self.run = plan, None
        self.all: list[str] = []
        self.saved: dict[str, int] = {}
        self.doing = ["train"]
        self.first = 0
        for owner, name in (
            (os, "fsync"), (os, "replace"), (os, "unlink"), (os, "write"), (torch, "save"),
            (peft.peft_model, "safe_save_file"), (Llama, "__call__"), (Merged, "__call__"), (torch.optim.AdamW, "step"),
        ):  # fmt: skip
            setattr(owner, name, self._counted(getattr(owner, name)))
        os.fsync = self._counted(lambda _: None)  # slow, and of no effect on what others see after a kill
        Score.evaluate = self._during("evaluation", Score.evaluate)
        Checkpoints.save = self._during("saving", Checkpoints.save)
        Checkpoints.resume = self._resumed(Checkpoints.resume)
        Score.open = self._watched(Score.open)
        if "same_rollouts" in plan:
            Score.sample = _sample_all

    def _watched(self, real):
        def call(run):
            self.run = run
            return real(run)

        return call

    def _counted(self, real):
        def call(*arguments, **options):
            if self.run is not None and self.doing[-1] != "resume":
                self.all.append(f"{self.doing[-1]} {min(self.run.progress.stage, 2)}")
                now = self.first + len(self.all) - 1
                if now >= self.plan.get("full_from", sys.maxsize):
                    resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
                if now >= self.plan.get("kill_at", sys.maxsize):
                    del self.plan["kill_at"]
                    Path("ended.txt").write_text(self.all[-1])
                    for number in self.plan.get("signals", [signal.SIGKILL]):
                        os.kill(os.getpid(), number)
            return real(*arguments, **options)

        return call

    def _during(self, what: str, real):
        def call(*arguments):
            self.doing.append(what)
            returned = real(*arguments)
            self.doing.pop()
            if what == "saving":
                self.saved[str(returned)] = self.first + len(self.all)
            return returned

        return call

    def _resumed(self, real):
        def call(checkpoints):
            self.doing.append("resume")
            path = real(checkpoints)
            self.doing.pop()
            self.all.clear()
            self.first = self.plan.get("saved", {}).get(str(path), 0)
            return path

        return call


# -- kill -9


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


def test_killed_at_twenty_moments(folder, straight):
    wanted = {"train 1": 4, "evaluation 1": 3, "saving 1": 4, "train 2": 3, "evaluation 2": 2, "saving 2": 4}
    dice = random.Random(7)
    places = {what: [i for i, doing in enumerate(straight.moments) if doing == what] for what in wanted}
    moments = sorted(i for what, count in wanted.items() for i in dice.sample(places[what], count))
    died, last = [], 0
    for moment in moments:
        sound = [path for path in folder.glob(f"{RUN}/stage?/step_*") if path.suffix != ".tmp" and not problems(path)]
        assert sound or last <= straight.saved[str(RUN / "stage1/step_0")]
        code = start(folder, "--resume", kill_at=moment, saved=straight.saved)
        assert code == -signal.SIGKILL, (moment, died, said(folder))
        died.append((folder / "ended.txt").read_text())
        assert ("nothing to resume" in said(folder)) == (not sound)
        last = moment
    assert start(folder, "--resume") == 0, said(folder)
    assert_same(folder, straight, list(zip(moments, died, strict=True)))
    assert len(died) == 20 and {*died} == {*wanted}, died
    assert sum(what.startswith("saving") for what in died) >= 6, died
    assert not [*folder.glob("runs/*/*/*.tmp"), *folder.glob("runs/*/*.torn")]


def test_killed_by_the_clock(folder, straight):
    """Wherever the process happens to be: while it loads, in the middle of a write, inside the library."""
    dice, span, history = random.Random(8), straight.seconds / 2, []
    while history.count(-signal.SIGKILL) < 5 and len(history) < 10:
        process = launch(folder, "--resume")
        process.join(dice.uniform(0, span))
        process.kill()
        process.join()
        history.append(process.exitcode)
        if process.exitcode == 0:  # it was faster: once more, and sooner
            assert_same(folder, straight, history)
            shutil.rmtree(folder / "runs")
            span /= 2
    assert history.count(-signal.SIGKILL) >= 3, history
    assert start(folder, "--resume") == 0, said(folder)
    assert_same(folder, straight, history)


def test_a_broken_newest_checkpoint_falls_back_loudly(folder, straight):
    killed = straight.saved[str(RUN / "stage2/step_3")] + 5
    assert start(folder, kill_at=killed) == -signal.SIGKILL
    flip(folder / RUN / "stage2/step_3/optimizer.bin")
    assert start(folder, "--resume") == 0
    assert "stage2/step_3 IS BROKEN" in said(folder) and "optimizer.bin is damaged" in said(folder)
    assert "resumed from runs/tiny/stage2/step_2" in said(folder)
    assert_same(folder, straight)


# -- signals


def test_signals_by_the_command_line(folder, straight):
    """The first time of a Python of its own."""
    command = [sys.executable, ROOT / "train.py", "--config", "task.yaml", "--resume"]
    for number, code, rows in ((signal.SIGTERM, 143, 2), (signal.SIGINT, 130, 6)):
        if number == signal.SIGTERM:
            with open(folder / "said.txt", "w") as output:
                process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)
            ended = process.poll
        else:
            process = forks.script(*command[1:], cwd=folder, output="said.txt")
            ended = lambda: process.exitcode  # noqa: B023
        while ended() is None and (
            not (folder / RUN / "metrics.jsonl").exists() or len(rows_of(folder)) < rows or "eval" not in said(folder)
        ):
            time.sleep(0.002)
        os.kill(process.pid, number)
        while ended() is None:
            time.sleep(0.002)
        assert ended() == code, said(folder)
        stage, step = map(int, said(folder).split("saved at stage ")[1].split(";")[0].split(" step "))
        assert problems(folder / RUN / f"stage{stage}/step_{step}") == []
    assert start(folder, "--resume") == 0, said(folder)
    assert_same(folder, straight)


def test_a_signal_never_costs_an_evaluation(folder, straight):
    """In the step before a due evaluation, in the last step of a stage, in an evaluation, while saving."""
    after = {name: moment + 3 for name, moment in straight.saved.items()}
    evaluation = straight.moments.index("evaluation 2", after[str(RUN / "stage2/step_1")])
    moments = [after[str(RUN / "stage1/step_1")], after[str(RUN / "stage1/step_5")], evaluation]
    moments += [straight.saved[str(RUN / "stage2/step_3")] - 2, after[str(RUN / "stage2/step_5")]]
    for moment in moments:
        code = start(folder, "--resume", kill_at=moment, signals=[signal.SIGTERM], saved=straight.saved)
        assert code == 143, (moment, said(folder))
        assert "press again to stop at once" in said(folder) and "saved at stage" in said(folder)
    assert start(folder, "--resume") == 0, said(folder)
    assert_same(folder, straight, moments)


def test_a_second_signal_ends_at_once(folder, straight):
    moment = straight.saved[str(RUN / "stage1/step_2")] + 3
    assert start(folder, kill_at=moment, signals=[signal.SIGTERM, signal.SIGINT]) == 130
    assert "saved at" not in said(folder)
    assert sorted(path.name for path in (folder / RUN / "stage1").iterdir()) == ["step_1", "step_2"]


# -- what is refused, and what is not


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != ".lock"}


def refused(folder: Path, *arguments: str, **plan) -> str:
    """The one sentence with which a start ends, exit code 2; the run is as it was."""
    before = contents(folder / RUN)
    assert start(folder, *arguments, **plan) == 2, said(folder)
    assert contents(folder / RUN) == before
    assert said(folder).count("error: ") == 1 and "Traceback" not in said(folder)
    return said(folder).partition("error: ")[2]


@pytest.fixture(scope="module")
def half(template, straight, tmp_path_factory) -> Path:
    """A run that was killed in stage II."""
    folder = shutil.copytree(template, tmp_path_factory.mktemp("half") / "work")
    moment = straight.saved[str(RUN / "stage2/step_4")] + 3
    assert start(folder, kill_at=moment) == -signal.SIGKILL
    return folder


def test_other_starts_in_the_folder_are_refused(half, tmp_path):
    folder = shutil.copytree(half, tmp_path / "work")
    assert "already holds a run: continue it with --resume" in refused(folder)
    message = refused(folder, "--resume", "optimizer.learning_rate=0.1", "train.alpha=3", "tracking.project=mine")
    assert "another config: optimizer.learning_rate: 0.02 -> 0.1; train.alpha: 10.0 -> 3.0; undo" in message
    rows = (folder / "rows.jsonl").read_text()
    (folder / "rows.jsonl").write_text(rows + '{"question": "9+9", "answer": "18"}\n')
    assert "the training data has changed" in refused(folder, "--resume")
    assert start(folder, "--resume", "--allow-config-change", "train.alpha=3") == 0
    assert "train.alpha: 10.0 -> 3.0" in said(folder) and "resumed from runs/tiny/stage2/step_4" in said(folder)


def test_refusals_need_no_torch(half):
    script = (
        "import sys, train\nfrom lib.errors import ConfigError\n"
        "try: train.main()\nexcept ConfigError as error: print(error, 'torch' in sys.modules)"
    )
    for arguments in ([], ["--resume", "seed=2"]):
        command = [sys.executable, "-c", script, "--config", "task.yaml", *arguments]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, cwd=half, env=environment, capture_output=True, text=True)
        assert done.stdout.endswith("False\n"), done.stderr


def test_two_runs_in_one_folder(folder, straight):
    stopped = launch(folder, kill_at=straight.saved[str(RUN / "stage1/step_1")], signals=[signal.SIGSTOP])
    while not (folder / "ended.txt").exists():
        time.sleep(0.01)
    try:
        for arguments in ((), ("--resume",)):
            assert f"in use by process {stopped.pid}" in refused(folder, *arguments, output="said.txt")
    finally:
        stopped.kill()
        stopped.join()
    assert start(folder, "--resume") == 0
    assert_same(folder, straight)


def test_a_finished_run_says_so(straight, tmp_path):
    folder = shutil.copytree(straight.folder, tmp_path / "work")
    before = contents(folder / RUN)
    assert start(folder, "--resume") == 0
    assert "this run is finished" in said(folder) and "after stage II" in said(folder)
    after = contents(folder / RUN)
    assert after == before


# -- warm start


def test_stage_two_from_an_adapter(straight, template, tmp_path):
    folder = shutil.copytree(template, tmp_path / "work")
    adapter = str(straight.folder / RUN / "stage1")
    assert start(folder, "--start-stage", "2", "--resume-adapter", adapter) == 0, said(folder)
    assert [(row["stage"], row["step"]) for row in rows_of(folder)] == [(2, step) for step in range(1, 7)]
    first, theirs = rows_of(folder, "evaluations")[0], rows_of(straight.folder, "evaluations")
    theirs = next(row for row in theirs if row["when"] == "after_stage1")
    place = ("when", "stage", "step")
    assert [first[key] for key in place] == ["after_stage1", 2, 0]
    assert {**first, **{key: theirs[key] for key in place}} == theirs
    saved = load_file(folder / RUN / "stage2/adapter_model.safetensors")
    given = load_file(f"{adapter}/adapter_model.safetensors")
    assert any(not torch.equal(saved[name], given[name]) for name in given)
    assert not (folder / RUN / "stage1/adapter_model.safetensors").exists()


def test_warm_starts_that_cannot_work(folder):
    assert start(folder, "--start-stage", "2") == 2
    assert "add --resume-adapter DIR" in said(folder)
    for adapter in ("base", "nowhere"):
        assert start(folder, "--start-stage", "2", "--resume-adapter", adapter) == 2
        assert f"error: {adapter}: no adapter here" in said(folder)
    assert not (folder / "runs").exists()


# -- disk full


@pytest.mark.parametrize("place", ["checkpoint", "adapter"])
def test_a_full_disk_keeps_the_old_checkpoint(folder, straight, place):
    if place == "checkpoint":
        moment = straight.moments.index("saving 2", straight.saved[str(RUN / "stage2/step_2")]) + 2
    else:
        moment = straight.moments.index("evaluation 1", straight.saved[str(RUN / "stage1/step_5")])
    assert start(folder, full_from=moment) == 74, said(folder)
    assert "cannot be saved with" in said(folder) and "Traceback" not in said(folder)
    newest = RUN / ("stage2/step_2" if place == "checkpoint" else "stage1/step_5")
    assert problems(folder / newest) == []
    assert start(folder, "--resume") == 0
    assert f"resumed from {newest}" in said(folder)
    assert_same(folder, straight)


# -- several processes

SHORT = ("train.stage1_steps=2", "train.stage2_steps=2", "run_name=two", "--resume")


def start_two(folder: Path, *arguments: str, plans: tuple[dict, dict] = ({}, {}), **plan) -> list[int]:
    """Exit codes of two processes, started like a launcher would."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    processes = []
    for rank in (0, 1):
        environment = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
        environment |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        own = {"environment": environment, "weights": f"weights{rank}.pt", **plan, **plans[rank]}
        processes.append(launch(folder, *arguments, output=f"said{rank}.txt", **own))
    for process in processes:
        process.join()
    return [process.exitcode for process in processes]


def test_two_processes_train_stop_and_resume_together(template, tmp_path):
    two, again = (shutil.copytree(template, tmp_path / name) for name in ("two", "again"))
    assert start_two(two, *SHORT, plans=({}, {"journal": "journal.json"})) == [0, 0], (two / "said1.txt").read_text()
    weights = [torch.load(two / f"weights{rank}.pt") for rank in (0, 1)]
    assert len(weights[0]) == 28 and all(map(torch.equal, *weights))
    run = Path("runs/two")
    assert [row["global_step"] for row in rows_of(two, run=run)] == [1, 2, 3, 4]
    assert [row["n"] for row in rows_of(two, "evaluations", run)] == [6, 6, 6]

    moments = json.loads((two / "journal.json").read_text())["moments"]
    # the second process gets a Ctrl-C, and the launcher passes it on: both save and leave
    signalled = {"kill_at": moments.index("train 2") + 2, "signals": [signal.SIGINT, signal.SIGTERM]}
    assert start_two(again, *SHORT, plans=({}, signalled)) == [130, 130]
    assert "saved at stage 2 step 1" in (again / "said0.txt").read_text()
    assert start(again, *SHORT) == 2 and "launch with --num_processes 2" in said(again)
    assert start_two(again, *SHORT) == [0, 0]
    assert all(map(torch.equal, weights[0], torch.load(again / "weights1.pt")))
    for stream in STREAMS:
        assert rows_of(again, stream, run) == rows_of(two, stream, run)


@pytest.mark.parametrize("baseline", ["leave_one_out", "batch"])
def test_the_number_of_processes_does_not_change_an_update(template, tmp_path, baseline):
    """Five prompts, shared as two and three; the same rollouts either way."""
    one, two = (shutil.copytree(template, tmp_path / name) for name in ("one", "two"))
    options = (*SHORT, f"train.baseline={baseline}", "train.length_norm=token", "train.micro_batch_tokens=130")
    options += (
        "train.stage1_batch_size=5",
        "train.stage2_batch_size=5",
        "train.stage1_steps=1",
        "train.stage2_steps=1",
    )
    assert start(one, *options, same_rollouts=True, weights="weights0.pt") == 0, said(one)
    assert start_two(two, *options, same_rollouts=True) == [0, 0]
    for mine, theirs in zip(torch.load(one / "weights0.pt"), torch.load(two / "weights0.pt"), strict=True):
        assert torch.allclose(mine, theirs, rtol=0, atol=1e-5)
    for mine, theirs in zip(rows_of(one, run=Path("runs/two")), rows_of(two, run=Path("runs/two")), strict=True):
        assert mine == {key: pytest.approx(value, rel=1e-4, abs=1e-7) for key, value in theirs.items()}
