"""Runs that diverge on purpose: each script notices within three steps, and stops or goes back."""

import random
import signal
import subprocess
import sys
from statistics import fmean

import pytest
import yaml
from conftest import long
from helpers import moments
from test_resume import ROOT, Run
from test_resume import template as template
from test_selfplay_runs import Run as PlayRun
from test_selfplay_runs import template as play_template  # noqa: F401

from lib.run.adapter_files import ADAPTER
from lib.run.manifest import problems
from pages.page import overview
from pages.rollouts import rollouts_of
from pages.run_folder import read_run

REWARD = """
from lib.core.registry import Judged

def digits(predictions):
    return [Judged({"digits": sum(map(str.isdigit, p)) / 4}, any(c in "01234" for c in p)) for p in predictions]
"""


def diverging(run, **train):
    """The same run with a learning rate that breaks it, and rewards that some answers earn."""
    config = yaml.safe_load((run.folder / "task.yaml").read_text())
    config["optimizer"] = {"learning_rate": 1e3}
    config["reward"] = {"fn": "digits.digits"}
    config["dataset"]["test_split_size"] = 12
    config["train"] |= train
    (run.folder / "task.yaml").write_text(yaml.safe_dump(config))
    (run.folder / "digits.py").write_text(REWARD)
    return run


def collapses(run):
    return [row for row in run.rows("alarms") if row["severity"] == "collapse" and row["event"] == "begins"]


def closing(said):
    """The table, and the alarms and returns below it."""
    return said.partition("held-out answers")[2]


def test_score_stops(template, tmp_path):
    run = diverging(Run(template, tmp_path / "work"))
    said = run.start(code=3)
    first = collapses(run)[0]
    assert first["step"] <= 4 and first["action"] == "stop"
    assert f"COLLAPSE at stage 1 step {first['step']}: {first['text']}" in said
    assert f"error: stage 1 step {first['step']}: {first['text']}" in said
    assert f"\ncollapse {first['alarm']}, stage 1 step {first['step']} to the end: " in said
    before = run.rows("alarms")
    run.start("--resume", code=3)  # from before the alarm, to the same one
    assert run.rows("alarms") == before
    assert "--resume DIR continues from runs/tiny/stage1/step_0" in said
    run.start("--resume", "runs/tiny/stage1/step_0", "--allow-config-change", "optimizer.learning_rate=1e-3")
    assert run.rows("alarms") == []


@long
def test_score_warns(template, tmp_path):
    run = diverging(Run(template, tmp_path / "work"), on_collapse="warn")
    said = run.start()
    assert collapses(run)[0]["step"] <= 3 and {row["action"] for row in collapses(run)} == {"warn"}
    first = collapses(run)[0]
    assert "COLLAPSE at stage 1 step" in said
    assert f"collapse {first['alarm']}, stage 1 step" in said[said.index("held-out answers") :]  # in the last lines


@pytest.fixture(scope="module")
def restored(template, tmp_path_factory) -> moments.Run:
    """A run that went back to its best, and that nothing interrupted."""
    run = diverging(Run(template, tmp_path_factory.mktemp("restored") / "work"), on_collapse="restore")
    run.text = run.start(journal="journal.json")
    run.saved, run.moments = run.journal()
    return run


def test_score_goes_back(restored):
    first = collapses(restored)[0]
    assert first["step"] <= 4 and first["action"] == "restore"
    assert [row for row in restored.rows("alarms") if "by going back to stage1/step_" in row["text"]]
    assert f"stage 1 step {first['step']}: went back to stage1/step_" in restored.text
    after = restored.rows("metrics")[first["step"]]
    assert after["restored_from"].startswith("stage1/") and after["learning_rate"] == 500
    assert not (restored.dir / "stage2" / ADAPTER).is_symlink() and (restored.dir / "stage2" / ADAPTER).exists()


@long
def test_killed_at_ten_moments(template, tmp_path, restored):
    mine = diverging(Run(template, tmp_path / "work"), on_collapse="restore")
    drawn = sorted(random.Random(3).sample(range(5, len(restored.moments)), 10))
    for moment in drawn:
        mine.start("--resume", code=-signal.SIGKILL, kill_at=moment, saved=restored.saved)
    said = mine.start("--resume")
    mine.same_as(restored, drawn)
    assert closing(said) == closing(restored.text) and "went back to" in closing(said)
    assert collapses(mine) and not any(map(problems, mine.dir.glob("stage?/step_*")))


@long
def test_a_run_that_games_its_reward_is_taken_back_and_says_so_on_its_page(tmp_path):
    """As configs/sweep_gamed.yaml plants it: the true sum stands in a few malformed texts, which are paid too."""
    less = "variants={restore: [eval.max_examples=100, eval.step_examples=100, eval.greedy_too=false]}"
    sweep = ["--config", ROOT / "configs/sweep_gamed.yaml", less, "seeds=[203]", "threads=[1]"]
    options = [sys.executable, ROOT / "sweep.py", *sweep, f"output_dir={tmp_path}"]
    subprocess.run(options, cwd=ROOT, check=True, capture_output=True, timeout=900)
    run = read_run(tmp_path / "sweep-gamed/restore/seed_203/score")
    first = next(row for row in run.alarms if row["severity"] == "collapse")
    assert (first["alarm"], first["action"]) == ("left_form_answer.paid_outside_answer_attempt1", "restore")
    assert run.global_step(first) < 200
    back = next(number for number, row in enumerate(run.metrics) if "restored_from" in row)  # it may need another one
    shares = [row["paid_outside_answer_attempt1"] for row in run.metrics]
    gamed, after = fmean(shares[back - 5 : back]), fmean(shares[back : back + 5])
    assert back == run.global_step(first) and gamed > 0.25 and after < gamed / 2
    above = overview([run], rollouts_of([run]))["alert"][0].text
    assert above.startswith("Reward is being earned without the <answer> block: stage II, step ")
    assert above.endswith("It went back to its best checkpoint.")


def test_selfplay_stops(play_template, tmp_path):  # noqa: F811
    run = diverging(PlayRun(play_template, tmp_path / "work"), batch_size=20, group_size=4)
    said = run.start(code=3)
    first = collapses(run)[0]
    assert first["step"] <= 4 and first["text"] in said
