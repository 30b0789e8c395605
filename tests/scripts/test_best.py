"""Runs that keep their best checkpoint and go back to it, whatever becomes of them.

They go back behind the steps of RESTORES, whatever they do there, and SCORES stand for what they are worth.
"""

import random
import shutil
import signal
import sys
from pathlib import Path

import pytest
from conftest import long
from helpers import forks, moments
from helpers.moments import flip
from test_resume import CONFIG, ROOT, refused
from test_resume import template as template

from lib.core.config import parse, training_parser
from lib.rl.session import score_of
from lib.run.directory import checkpoints_in, is_weights_only
from lib.run.manifest import problems

REWARD = """
from lib.core.registry import Judged

def threes(predictions):
    return [Judged({"odd": sum(c in "13579" for c in p) / 4, "brief": -len(p) / 40}, "3" in p) for p in predictions]
"""
BEST = CONFIG | {
    "reward": {"fn": "threes.threes", "accept_cut": True},
    "optimizer": {"learning_rate": 0.05, "warmup_steps": 2, "schedule": "cosine"},
    "dataset": {**CONFIG["dataset"], "test_split_size": 12},  # a quarter to choose by
    "eval": {**CONFIG["eval"], "greedy_too": False, "samples_per_prompt": 4},
}
RESTORES = [[1, 4], [2, 3]]  # before the evaluation of a step; between two evaluations
SCORES = {"stage1/step_0": 1, "stage1/step_2": 3, "stage1/step_4": 3, "stage1/step_6": 2,
          "stage2/step_2": 1, "stage2/step_4": 4, "stage2/step_6": 3}  # fmt: skip
PLAN = {"restores": RESTORES, "scores": SCORES}


class Run(moments.Run):
    def __init__(self, template: Path, folder: Path):
        super().__init__("train", template, folder, BEST)
        (self.folder / "threes.py").write_text(REWARD)

    def link(self, name: str) -> str:
        """Where a link leads."""
        return (self.dir / name).resolve().relative_to(self.dir.resolve()).as_posix()

    def evaluations(self) -> dict[str, dict]:
        """The row of each moment that was evaluated."""
        return {f"stage{row['stage']}/step_{row['step']}": row for row in self.rows("evaluations")}


@pytest.fixture(scope="module")
def straight(template, tmp_path_factory) -> Run:
    """A run that went back twice, and that nothing interrupted."""
    run = Run(template, tmp_path_factory.mktemp("straight") / "work")
    run.text = run.start(journal="journal.json", **PLAN)
    run.saved, run.moments = run.journal()
    return run


@pytest.fixture
def mine(template, tmp_path) -> Run:
    return Run(template, tmp_path / "work")


def test_the_best_is_kept(straight):
    assert [*straight.evaluations()] == [*SCORES]
    found = checkpoints_in(straight.dir)
    assert len(found) == 13 and not any(map(problems, found))
    found = {path.relative_to(straight.dir).as_posix() for path in found if not is_weights_only(path)}
    assert found == {f"stage{stage}/step_{step}" for stage, steps in ((1, (2, 5, 6)), (2, (4, 5, 6))) for step in steps}
    links = {"stage1/best": "stage1/step_2", "stage2/best": "stage2/step_4", "best": "stage2/step_4"}
    assert {name: straight.link(name) for name in links} == links
    assert not any(problems(straight.dir / name) for name in links)


def test_chosen_by_questions_that_are_not_reported():
    chosen = {"acc_attempt1": 0.1, "acc_attempt2": 0.2}
    assert score_of({"acc_attempt1": 0.8, "acc_attempt2": 0.9, "selection": chosen}) == 0.2
    assert score_of({"acc": 0.9, "selection": {"acc": 0.3}}) == 0.3
    assert score_of({"acc": 0.9, "selection": None}) == 0.9  # there are too few held-out rows to leave some out


def test_where_attempt_1_fell_is_not_the_best(mine):
    """Of a stage that ended so, the next one has the best."""
    mine.start(scores=SCORES, fallen=["stage1/step_2", "stage1/step_6", "stage2/step_4", "stage2/step_6"])
    assert {name: mine.link(name) for name in ("stage1/best", "stage2/best")} == {
        "stage1/best": "stage1/step_4", "stage2/best": "stage1/step_4"
    }  # fmt: skip
    assert not problems(mine.dir / "stage2/best") and not is_weights_only(mine.dir / "stage2/best")


def test_the_table_shows_the_best_beside_the_last(straight):
    lines = straight.text.partition("held-out answers")[2].splitlines()
    after = next(i for i, line in enumerate(lines) if "after stage I " in line)
    reported = straight.evaluations()["stage1/step_2"]
    expected = ["best:", "step", "2", *(f"{100 * reported[f'acc_attempt{attempt}']:.1f}" for attempt in (1, 2))]
    assert lines[after + 2].replace("%", "").split()[:5] == expected
    for (stage, step), factor in zip(RESTORES, ("0.5", "0.25"), strict=True):
        where = "step_2" if stage == 1 else "step_6"  # the end of stage I, at which stage II starts
        line = f"stage {stage} step {step}: went back to stage1/{where}, and on at {factor} of the learning rate"
        assert line in lines


def test_going_back_restores_weights_and_halves_the_rate(straight):
    evaluations = straight.evaluations()
    there, back = evaluations["stage1/step_2"], evaluations["stage1/step_4"]
    assert back["restored_from"] == "stage1/step_2"
    changed = {"step", "restored_from"}
    assert {key: back[key] for key in back.keys() - changed} == {key: there[key] for key in there.keys() - changed}
    assert [place for place, row in evaluations.items() if "restored_from" in row] == ["stage1/step_4", "stage2/step_4"]
    rows = straight.rows()
    assert [(row["stage"], row["step"]) for row in rows] == [(stage, step) for stage in (1, 2) for step in range(1, 7)]
    assert [(row["stage"], row["step"]) for row in rows if "restored_from" in row] == [(1, 5), (2, 4)]
    rates = [row["learning_rate"] for row in rows]
    assert rates[9] / rates[3] == pytest.approx(1 / 4) and rates[4] / rates[10] == pytest.approx(2)


@long
def test_killed_at_ten_moments(mine, straight):
    wanted = {"train 1": 2, "train 2": 1, "evaluation": 1, "saving 1": 3, "saving 2": 3}
    dice = random.Random(5)
    drawn = []
    for what, count in wanted.items():
        drawn += dice.sample([i for i, doing in enumerate(straight.moments) if doing.startswith(what)], count)
    for moment in sorted(drawn):
        mine.start("--resume", code=-signal.SIGKILL, kill_at=moment, saved=straight.saved, **PLAN)
    mine.start("--resume", **PLAN)
    mine.same_as(straight, sorted(drawn))
    assert not [*mine.dir.rglob("*.tmp"), *mine.dir.rglob(".best")]


@long
def test_a_best_that_is_damaged_is_replaced_by_the_one_before(mine, straight):
    """The run resumes from an older checkpoint, whose own best is still there."""
    best = straight.link("stage1/best")
    mine.start(code=-signal.SIGKILL, kill_at=straight.saved[best] + 3, **PLAN)
    assert mine.link("best") == best
    flip(mine.dir / best / "optimizer.bin")
    mine.start(
        "--resume", code=-signal.SIGKILL, kill_at=straight.saved["stage1/step_1"] + 3, saved=straight.saved, **PLAN
    )
    assert mine.link("best") == mine.link("stage1/best") == "stage1/step_0"
    assert not problems(mine.dir / "stage1/step_0") and (mine.dir / f"{best}.aside").is_dir()
    mine.start("--resume", **PLAN)
    mine.same_as(straight)


def test_resume_from_a_given_checkpoint(straight, tmp_path):
    mine = Run(straight.folder, tmp_path / "work")
    said = mine.start("--resume", "runs/tiny/stage1/best", **PLAN)
    assert "resumed from runs/tiny/stage1/step_2" in said
    assert "runs/tiny/stage2/step_6 is newer than runs/tiny/stage1/step_2: it is set aside as step_6.aside" in said
    mine.same_as(straight)
    shutil.copytree(mine.dir, mine.dir.with_name("other"), symlinks=True)
    for folder in ("runs/other/stage1/best", "runs/tiny/stage1", "runs/tiny/stage1/step_5.aside", "nowhere"):
        assert f"--resume {folder}: expected a checkpoint of this run to resume from (runs/tiny/" in refused(
            mine, "--resume", folder
        )
    said = refused(mine, "--resume", "runs/tiny/stage1/step_3")
    assert said.startswith("--resume runs/tiny/stage1/step_3: of this checkpoint only the weights were kept: give one")
    adapter = "--adapter", "runs/tiny/stage1/step_9"
    process = forks.script(
        ROOT / "evaluate.py", "--config", "task.yaml", *adapter, cwd=mine.folder, output=mine.folder / "said.txt"
    )
    assert "no adapter here, nor any folder; give that of a saved adapter, such as runs/tiny/" in mine.ended(process, 2)
    assert "runs/tiny/stage1/step_3" in mine.said()


def test_an_override_behind_resume_is_no_folder(monkeypatch):
    for words, resume, overrides in (
        (["--resume", "a.b=1", "c=2"], True, ["a.b=1", "c=2"]),
        (["c=2", "--resume", "runs/x=1/stage1/step_2", "a.b=1"], Path("runs/x=1/stage1/step_2"), ["c=2", "a.b=1"]),
        (["a.b=1"], False, ["a.b=1"]),
    ):
        monkeypatch.setattr(sys, "argv", ["train.py", "--config", "task.yaml", *words])
        args = parse(training_parser("doc"))
        assert (args.resume, args.overrides) == (resume, overrides)


def test_the_best_is_an_adapter_like_any_other(mine, straight):
    """For evaluate.py, and to start from."""
    best = straight.link("best")
    options = ["--adapter", straight.dir / "best", "--temperature", "1", "--output", "o.jsonl"]
    arguments = ["--config", "task.yaml", *options]
    process = forks.script(ROOT / "evaluate.py", *arguments, cwd=mine.folder, output=mine.folder / "said.txt")
    mine.ended(process)
    assert f"{best} of base" in mine.said()
    row = moments.read_jsonl(mine.folder / "o.jsonl")[0][0]
    assert row["acc_attempt2"] == straight.evaluations()[best]["acc_attempt2"]
    assert (f"stage{row['stage']}", f"step_{row['step']}") == tuple(best.split("/"))
    adapter = str(straight.dir / "stage1/best")
    mine.start("--start-stage", "2", "--resume-adapter", adapter, "train.stage2_steps=1")
    first, there = mine.evaluations()["stage2/step_0"], straight.evaluations()["stage1/step_2"]
    assert first | {key: there[key] for key in ("when", "stage", "step")} == there


def test_a_run_that_always_breaks_is_stopped(mine):
    said = mine.start(code=3, restores=[[1, step] for step in range(1, 5)], scores=SCORES)
    assert "stage 1 step 4: 3 times in this stage the run went back to its best checkpoint" in said
    assert "broke again at 0.125 of its learning rate" in said and "the best is runs/tiny/stage1/step_" in said


def test_without_a_best_there_is_nothing_to_go_back_to(mine):
    said = mine.start("train.keep_best=false", "train.stage2_steps=1", **PLAN)
    assert "went back" not in said and "best:" not in said
    assert not [path for path in mine.dir.rglob("*") if path.is_symlink()]


@long
def test_two_processes_go_back_together(template, tmp_path):
    two = Run(template, tmp_path / "two")
    weights = two.start_two("train.stage1_steps=3", "train.stage2_steps=1", restores=[[1, 2]])
    assert len(weights[0]) == 28 and all(map(lambda a, b: bool((a == b).all()), *weights))
    assert [row["step"] for row in two.rows() if "restored_from" in row] == [3]
    scores = {place: row["selection"]["acc_attempt2"] for place, row in two.evaluations().items()}
    assert two.link("stage1/best") == max([*scores][:3], key=scores.get)  # of equals the first
