"""Sweeps of a script of the standard library that writes what a run writes, checkpoints, and takes its time."""

import json
import os
import shutil
import signal
import time
from pathlib import Path

import pytest
import yaml
from conftest import long
from helpers import forks

import sweep
from data.builders import write_rows
from lib.core.conditions import Figure, read_condition
from lib.core.config import SweepConfig, load
from lib.core.console import Screen
from lib.core.errors import ConfigError
from lib.run.runlog import RunLog
from pages.sweep_tables import level_cell, paired_cells, summaries, value_of, with_level
from sweep import distinct, plan, read_run

ROOT = Path(__file__).parents[2]
RUN = """
import argparse, json, os, pathlib, signal, subprocess, sys, time

options = argparse.ArgumentParser()
options.add_argument("out", type=pathlib.Path)
options.add_argument("--seed", type=int, default=0)
options.add_argument("--config", help="is not read")
options.add_argument("--gain", type=float, default=0.5)
options.add_argument("--steps", type=int, default=0, help="tenths of a second")
options.add_argument("--fails", type=int, default=-1, help="this seed")
options.add_argument("--server", action="store_true", help="starts a program that it does not end")
args = options.parse_args()
args.out.mkdir(parents=True, exist_ok=True)
signal.signal(signal.SIGTERM, lambda *_: (print("saved"), sys.exit(143)))
programs = [os.getpid()]
if args.server:
    programs.append(subprocess.Popen(["sleep", "600"]).pid)
with open("programs", "a") as file:
    file.writelines(f"{program}\\n" for program in programs)
checkpoint = args.out / "checkpoint"
begin = int(checkpoint.read_text()) if checkpoint.exists() else 0
for step in range(begin, args.steps):
    print("step", step)
    time.sleep(0.1)
    aside = args.out / "aside"
    aside.write_text(str(step + 1))
    aside.rename(checkpoint)
if args.seed == args.fails:
    sys.exit("there was an iceberg")
first = (0.4 + args.seed / 100, 0.3)
last = (0.4 + args.seed / 100, 0.3 + args.gain + args.seed / 50)
rows = []
for when, stage, step, (one, two) in (("pretrain", 1, 0, first), ("step", 1, 5, first), ("after_stage2", 2, 10, last)):
    row = {"when": when, "stage": stage, "step": step, "acc_attempt1": one, "delta": two - one}
    rows.append({**row, "temperature": 1.0, "acc_attempt2": two, "delta_ci95": [two - one - 0.1, two - one + 0.1]})
    rows.append({**row, "temperature": 0.0, "acc_attempt2": 0.9})
(args.out / "evaluations.jsonl").write_text("".join(json.dumps(row) + "\\n" for row in rows))
step = {"stage": 2, "step": 1, "global_step": 11, "parameters": 1000 + int(100 * args.gain), "seconds_other": 0.25}
times = [{**step, "seconds_generate": seconds} for seconds in (0.25, 0.5, 60)]
(args.out / "metrics.jsonl").write_text("".join(json.dumps(row) + "\\n" for row in times))
alarm = {"stage": 2, "step": 3, "text": "answers <grow> short"}
alarms = [{**alarm, "event": "begins"}, {**alarm, "event": "ends"}] if args.seed == 1 else []
(args.out / "alarms.jsonl").write_text("".join(json.dumps(row) + "\\n" for row in alarms))
print(f"threads {os.environ['OMP_NUM_THREADS']}, right {two:.3f}")
"""
CONFIG = {
    "run_name": "tiny",
    "stages": {"data": "run.py {dir} --seed {seed}", "last": "run.py {dir} --seed {seed}"},
    "variants": {"much": [], "little": ["--gain", "0.2"]},
    "seeds": 3,
    "threads": [1, 2],
    "parallel": 2,
    "require": ["after_stage2.acc_attempt2 - pretrain.acc_attempt2 >= 0.45", "alarms <= 0"],
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    return made(tmp_path, monkeypatch)


def made(path, monkeypatch):
    path.mkdir(exist_ok=True)
    (path / "run.py").write_text(RUN)
    monkeypatch.chdir(path)
    return path


def config_of(**changes):
    Path("sweep.yaml").write_text(yaml.safe_dump({**CONFIG, **changes}, sort_keys=False))
    return load(SweepConfig, Path("sweep.yaml"))


def start(*words, **changes):
    """The script as a process."""
    Path("sweep.yaml").write_text(yaml.safe_dump({**CONFIG, **changes}, sort_keys=False))
    return forks.script(ROOT / "sweep.py", "--config", "sweep.yaml", *words, output=Path("output.txt").resolve())


def run(*words, **changes):
    """Its exit code and what it printed."""
    process = start(*words, **changes)
    return ended(process), Path("output.txt").read_text()


def ended(process):
    """Its exit code."""
    process.join(120)
    return process.exitcode


def rows(name):
    return [json.loads(line) for line in Path(f"outputs/tiny/{name}.jsonl").read_text().splitlines()]


def results():
    """What must not depend on kills, by variant and seed."""
    moves = ("time", "seconds", "stage_seconds", "was_restarted")
    return {(row["variant"], row["seed"]): {key: value for key, value in row.items() if key not in moves}
            for row in rows("results")}  # fmt: skip


def starts():
    return [row["job"] for row in rows("jobs") if row["event"] == "begun"]


def wait_for(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def living():
    """Programs of the sweep that are there, zombies aside."""
    found = []
    for pid in Path("programs").read_text().split():
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if state != "Z":
            found.append(pid)
    return found


# -- what is planned


def test_what_no_variant_changes_is_run_once_per_seed(folder):
    config = config_of(variants={"a": [], "b": ["--gain", "{seed}"], "c": {"data": ["--gain", "0"]}}, seeds=[7, 8])
    runs = plan(config)
    names = [[job.name for job in jobs] for jobs in runs.values()]
    assert names[:3] == [
        ["shared/seed_7/data", "a/seed_7/last"], ["shared/seed_7/data", "b/seed_7/last"],
        ["c/seed_7/data", "c/seed_7/last"],
    ]  # fmt: skip
    assert len(distinct(runs)) == 2 * 5
    assert runs["b", 7][1].command == ("run.py", "outputs/tiny/b/seed_7/last", "--seed", "7", "--gain", "7")
    assert [runs["a", seed][0].threads for seed in (7, 8)] == [2, 1]


def test_earlier_stages_and_run_directories_have_placeholders(folder):
    stages = {"base": "run.py {dir}", "last": 'make "two words" {run} model.name={base}/final rope={{a}}'}
    jobs = plan(config_of(stages=stages, variants={"v": []}))["v", 0]
    assert jobs[1].command == (
        "make", "two words", "output_dir=outputs/tiny/v/seed_0", "run_name=last",
        "model.name=outputs/tiny/shared/seed_0/base/final", "rope={a}",
    )  # fmt: skip


def test_all_mistakes_are_told_at_once(folder):
    with pytest.raises(ConfigError) as caught:
        config_of(
            stages={"data": "run.py {sed}", "last": "run.py {data} {last} '"},
            variants={"x": {"dataa": []}, "shared": []}, seeds=[1, 1],
            require=["delta > 0", "a.b = 1", "a.b > 0 > 1", "__import__('os').x > 0", "a.b ** 2 > 1"],
            figures={"x": "("}, thread=[1],
        )  # fmt: skip
    text = str(caught.value)
    for part in ("last: No closing quotation", "folder 'shared' is for",
                 "'{sed}' is no placeholder; did you mean 'seed'?", "'{last}' is no placeholder", "stage 'dataa'; did",
                 "a seed stands there twice", "'delta' has no moment", "'a.b = 1' is not a condition", "a.b > 0 > 1",
                 "__import__", "a.b ** 2", "'(' is no regular expression", "thread: unknown key; did"):  # fmt: skip
        assert part in text, part


def test_commands_with_braces_are_quoted(folder):
    config_of()
    with pytest.raises(ConfigError, match=r"stages: should be .* --resume \{run\}\}': put text with braces in quotes$"):
        load(SweepConfig, Path("sweep.yaml"), ["stages={last: run.py --resume {run}}"])


def test_what_a_script_would_refuse_is_told_before_anything_runs(folder):
    command = f"train.py --config {ROOT}/configs/tiny_arithmetic.yaml {{run}} seed={{seed}}"
    wrong = {"good": ["train.alpha=5"], "bad": ["train.alpa=5"]}
    code, output = run(stages={"data": "ran.py", "last": command}, variants=wrong)
    assert code == 2
    assert "stages: data: there is no 'ran.py'" in output
    assert "stages: last: override 'train.alpa=5': train.alpa: unknown key; did you mean 'alpha'?" in output
    assert not Path("outputs").exists()


TRAIN = f"train.py --config {ROOT}/configs/tiny_sums.yaml --resume {{run}}"


def refusal(**changes):
    """The message of `check_stages`; "" if it accepts the sweep."""
    try:
        sweep.check_stages(config_of(**changes))
    except ConfigError as error:
        return str(error)
    return ""


def test_runs_that_would_be_copies_are_refused(folder):
    """Two seeds of scripts here need different commands, by a stage or by the variant's words; folders do not count."""
    data = "data/build_tiny_sums.py --out {dir}"
    stages = {"data": data, "last": f"{TRAIN} dataset.name={{data}}"}
    changes = {"stages": stages, "variants": {"a": [], "b": ["train.alpha=5"]}, "seeds": 12, "threads": [1]}
    copies = (
        "the commands of seeds 0 and 1 differ only in their folders, so the runs would be copies: add seed={seed} to a "
        "stage, or set seeds=1"
    )
    for words in ([], ["--dry-run"]):
        code, output = run(*words, **changes)
        assert code == 2 and not Path("outputs").exists()
        assert all(f"stages: variant {variant}: {copies}" in output for variant in "ab")
    assert "seeds 0 and 2 differ" in refusal(**changes | {"threads": [1, 2]})
    by_variant = refusal(**changes | {"variants": {"a": [], "b": {"data": ["--seed", "{seed}"]}}})
    assert "variant a" in by_variant and "variant b" not in by_variant
    for change in (
        {"seeds": [7]},
        {"variants": {"a": ["seed={seed}"]}},
        {"stages": stages | {"data": f"{data} --seed {{seed:02}}"}},
        {"threads": [1, 2], "seeds": 2},
    ):
        assert refusal(**changes | change) == ""


@pytest.mark.parametrize("command", ["echo {threads}", "run.py {dir}", "sh -c 'echo $RANDOM'"])
def test_programs_of_others_may_choose_their_seeds(folder, command):
    assert refusal(stages={"last": command}, variants={"a": []}, threads=[1, 2, 3, 4], seeds=8) == ""
    assert refusal(stages={"data": command, "last": f"{TRAIN} dataset.name={{data}}"}, variants={"a": []}) == ""


SCRIPTS = [("train", "sums"), ("sft_train", "sums_base"), ("rl_train_gspo_selfplay", "code")]


@pytest.mark.parametrize(("script", "config"), SCRIPTS)
def test_training_without_a_folder_per_run_is_refused(folder, script, config):
    command = f"{script}.py --config {ROOT}/configs/tiny_{config}.yaml seed={{seed}} --resume"
    hint = "add {run} to the command, as in --resume {run}"
    for words in (command, command.replace("--config ", "--config=")):
        last = refusal(stages={"last": f"{words} run_name=r{{seed}}"}, variants={"a": []})
        assert last == f"stages: last: writes into outputs/r0, expected the sweep's own folder for each run: {hint}"
    for stages in (
        {"first": f"{command} {{run}}", "last": "run.py {dir}"},
        {"first": f"{command} output_dir={{dir}} run_name=base", "last": "run.py {first}/base/final"},
        {"first": f"{command} run_name=base-{{seed}}", "last": "run.py {dir}"},
        {"last": f"{command} {{run}}"},
    ):
        assert refusal(stages=stages, variants={"a": []}) == ""


@pytest.mark.parametrize("path", sorted((ROOT / "configs").glob("sweep_*.yaml")), ids=lambda path: path.stem)
def test_a_shipped_sweep_is_sound_and_opens_with_its_command(path, monkeypatch):
    monkeypatch.chdir(ROOT)
    config = load(SweepConfig, path)
    sweep.check_stages(config)
    assert f"python sweep.py --config configs/{path.name}" in path.read_text().splitlines()[0]


# -- conditions


@pytest.mark.parametrize(("text", "holds", "value", "margin"), [
    ("after.acc - before.acc >= 0.25", True, 0.5, 0.25),
    ("abs(after.acc - before.acc) <= 0.25", False, 0.5, -0.25),
    ("after.acc_ci95[0] > 0.5 * before.acc", True, 0.625, 0.5),
    ("max(after@0.acc, before.acc) < 1", False, 1.0, 0.0),
    ("-before.acc / 2 > -1", True, -0.125, 0.875),
    ("after@0.7.acc == 1", None, None, None),
    ("seconds <= 180", True, 100.0, 80.0),
    ("parameters < 100", False, 1000, -900),
])  # fmt: skip
def test_a_condition_by_hand(text, holds, value, margin):
    values = {
        Figure("acc", "before"): 0.25, Figure("acc", "after"): 0.75, Figure("acc_ci95", "after", end=0): 0.625,
        Figure("acc", "after", 0.0): 1.0, Figure("seconds"): 100.0,
        Figure("parameters"): 1000,
    }  # fmt: skip
    if holds is None:
        with pytest.raises(ValueError, match="not a condition"):
            read_condition(text)
    else:
        assert read_condition(text).measure(values.get) == (holds, value, margin)
        assert read_condition(text).measure({}.get) is None


def test_figures_are_looked_up_by_moment_and_temperature():
    evaluations = [
        {
            "when": "after_stage2",
            "stage": 2,
            "step": 10,
            "global_step": 20,
            "temperature": at,
            "acc": acc,
            "acc_ci95": ends,
        }
        for at, acc, ends in ((1.0, 0.5, [0.4, 0.6]), (0.0, 0.9, None))
    ]
    step = {"when": "step", "stage": 2, "step": 5, "global_step": 15, "temperature": 1.0, "acc": 0.3}
    result = {"evaluations": [step, *evaluations], "alarms": [{"event": "begins"}, {"event": "ends"}], "seconds": 7}
    assert value_of(result, Figure("acc", "after_stage2")) == 0.5
    assert value_of(result, Figure("acc", "after_stage2", 0.0)) == 0.9
    assert value_of(result, Figure("acc", "stage2_step_5")) == 0.3
    result["evaluations"].append({"when": "after_stage2", "step": 10, "rules": 7})  # a row of figures
    assert value_of(result, Figure("rules", "after_stage2")) == 7
    assert value_of(result, Figure("acc", "after_stage2")) == 0.5
    assert value_of(result, Figure("acc", "last")) == 0.5
    assert value_of(result, Figure("acc_ci95", "last", end=1)) == 0.6
    assert value_of(result, Figure("acc", "pretrain")) is None
    assert value_of(result, Figure("alarms")) == 1
    assert value_of(result, Figure("gained")) is None and value_of(result, Figure("parameters")) is None


def test_tokens_are_counted_until_a_level_is_reached():
    rows = [{"when": "step", "step": 5 * n, "temperature": at, "acc": acc, "tokens": 100 * n}
            for n, at, acc in ((0, 1.0, 0.2), (1, 0.0, 0.9), (1, 1.0, 0.4), (2, 1.0, 0.7), (3, 1.0, 0.6))]  # fmt: skip
    result = {"seed": 0, "evaluations": rows, "alarms": []}
    for level, tokens in ((0.1, 0), (0.5, 200), (0.7, 200), (0.8, None), (None, None)):
        assert value_of(with_level(result, level), Figure("tokens_to_level")) == tokens  # greedy answers do not count
    assert value_of(result, Figure("tokens")) == 300
    assert level_cell([with_level(result, 0.5), with_level(result | {"seed": 1}, 0.9)]) == "200, 1 of 2"


def test_variants_are_compared_in_pairs_greedy_and_without_feedback_too():
    """Each of the variant's two runs is the baseline's of the same seed, plus what stands in `more`.

    Attempt 1 is right in .4 of the variant's answers, in .45 of the baseline's, greedily in .4 and .3.
    """

    def results(more=None):
        for seed, attempt2 in ((3, 0.5), (4, 0.7)):
            rows = [(1.0, None, attempt2), (0.0, None, 0.9)]
            if more:
                rows = [(1.0, "tests", attempt2 + more[seed]), (0.0, "tests", 0.95), (1.0, "none", attempt2 - 0.1)]
            yield {
                "seed": seed, "alarms": [],
                "evaluations": [
                    {"when": "pretrain", "global_step": 0, "temperature": 0.0, "acc_attempt2": 0.6 + seed / 100}
                ] + [
                    {"when": "after_stage2", "global_step": 9, "temperature": at, "i_to_c": 0.2, "acc_attempt2": value,
                     "acc_attempt1": 0.4 if more else 0.45 if at else 0.3,
                     "acc_if_stopped": value if more else value + 0.04}
                    | ({"feedback": feedback} if feedback else {})
                    for at, feedback, value in rows
                ],
            }  # fmt: skip

    ours, baseline = list(results({3: 0.1, 4: 0.3})), list(results())
    figures = [value_of(ours[0], Figure(key)) for key in ("accuracy", "accuracy_greedy", "accuracy_without_feedback")]
    assert figures == pytest.approx([0.6, 0.95, 0.4])
    assert value_of(baseline[0], Figure("accuracy_without_feedback")) is None
    assert value_of(baseline[0], Figure("accuracy_greedy_before")) == 0.63
    # t of one degree of freedom is 12.706, of differences .1 and .3 the standard error .1
    assert paired_cells(ours, baseline) == [
        "+0.350 [-2.191 +2.891]", "+0.550 [+0.550 +0.550]",  # .6 and 1.0 less .45; .95 less .4
        "+0.200 [-1.071 +1.471]", "+0.050 [+0.050 +0.050]", "-0.100 [-0.100 -0.100]", "+0.160 [-1.111 +1.431]",
        "+0.010 [+0.010 +0.010]", "-0.050 [-0.050 -0.050]", "+0.000 [+0.000 +0.000]", "–",
    ]  # the baseline, had it been asked with the same stop, gains .04 # fmt: skip
    assert paired_cells(baseline, ours)[4] == "+0.100 [+0.100 +0.100]"
    assert paired_cells(baseline, baseline)[4] == "–" and set(paired_cells([], baseline)) == {"–"}


# -- what is run


def test_a_sweep_from_beginning_to_end(folder):
    code, output = run()
    assert code == 1  # two conditions do not hold in every run
    assert "tiny, much: 3 of 3 runs" in output
    assert (
        "3 of 3 runs (much): after_stage2.acc_attempt2 - pretrain.acc_attempt2 >= 0.45; worst 0.500, seed 0" in output
    )
    assert "WARNING: 0 of 3 runs (little): after_stage2.acc_attempt2" in output
    assert "WARNING: 2 of 3 [0.21 0.94] runs (much): alarms <= 0; worst 1.000, seed 1" in output
    tables = [line.split("  ") for line in output.splitlines()]
    attempt2 = [[cell.strip() for cell in line if cell.strip()] for line in tables
                if "after stage II, sampled: attempt 2" in line]  # fmt: skip
    # .80, .82, .84: Student's half width is 4.303 * .02 / sqrt(3) = .0497
    assert attempt2[0][1:] == ["3", "0.800", "0.820", "0.840", "0.820 [0.770 0.870]", "seed 0, 1 thr."]
    assert len(attempt2) == 2
    beside = output[output.index("tiny, side by side") :].splitlines()[3:5]
    # gained: .50, .52, .54; delta: .40, .41, .42, since attempt 1 is .40, .41, .42; all .30 less; .25 + .50 seconds
    assert [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in beside] == [
        ["much", "3", "1,050", "0.900 [0.900 0.900]", "0.820 [0.770 0.870]", "0.900 [0.900 0.900]",
         "+0.520 [+0.470 +0.570]", "+0.410 [+0.385 +0.435]", "0.750"],
        ["little", "3", "1,020", "0.900 [0.900 0.900]", "0.520 [0.470 0.570]", "0.900 [0.900 0.900]",
         "+0.220 [+0.170 +0.270]", "+0.110 [+0.085 +0.135]", "0.750"],
    ]  # fmt: skip
    less = output[output.index("tiny, minus much, seed by seed") :].splitlines()
    assert [cell.strip() for cell in less[1].split("  ") if cell.strip()] == [
        "last less best attempt 1", "the same, greedy", "accuracy", "greedy", "attempt 1"
    ]  # fmt: skip
    assert [cell.strip() for cell in less[3].split("  ") if cell.strip()] == [
        "little", "+0.110 [+0.085 +0.135]", "+0.490 [+0.465 +0.515]", "-0.300 [-0.300 -0.300]",
        "+0.000 [+0.000 +0.000]", "+0.000 [+0.000 +0.000]",
    ]  # fmt: skip

    assert len(rows("results")) == 6 and len(starts()) == 3 + 6
    row = next(row for row in rows("results") if (row["variant"], row["seed"]) == ("much", 1))
    assert (row["exit_code"], row["failed"], row["threads"], len(row["alarms"])) == (0, None, 2, 2)
    assert [entry["global_step"] for entry in row["evaluations"]][::2] == [0, 5, 20]  # stage II begins at step 10
    assert row["cpu"] and row["packages"]["torch"] and "commit" in row
    log = Path("outputs/tiny/much/seed_1/last.log").read_text()
    assert "threads 2, right 0.820" in log

    running, most = set(), 0
    for event in rows("jobs"):
        (running.add if event["event"] == "begun" else running.discard)(event["job"])
        most = max(most, len(running))
    assert most == 2

    page = Path("outputs/tiny/sweep.html").read_text()
    assert page.count("answers &lt;grow&gt; short") == 2  # of two variants
    for moment in ("pretrain, sampled", "pretrain, greedy", "after stage II, sampled", "after stage II, greedy"):
        assert page.count(f">{moment}</th>") == 2  # of each variant
    cells = ("3", "0.800", "0.820", "0.840", "0.820 [0.770 0.870]", "seed 0, 1 thr.")
    assert '<th scope="row">attempt 2</th>' + "".join(f"<td>{cell}</td>" for cell in cells) in page
    beside = (
        "0.900<small>[0.900 0.900]</small>",
        "0.820<small>[0.770 0.870]</small>",
        "0.900<small>[0.900 0.900]</small>",
        "+0.520<small>[+0.470 +0.570]</small>",
    )
    assert "<td>1,050</td>" + "".join(f"<td>{cell}</td>" for cell in beside) in page
    assert page.count('<summary><h2 id="figures--') == 2  # folded, since both variants stand side by side
    assert page.count('<figure class="chart"') == 6 and "default-src &#39;none&#39;" in page

    again, output = run("--table")
    assert again == 1 and "3 of 3 runs (much)" in output and len(rows("results")) == 6
    assert run("variants={much: []}", "require=[]")[0] == 0
    assert run("variants={much: [--gain, '0.1']}")[0] == 2  # the results there are of another command
    assert len(starts()) == 3 + 6


def test_seeds_with_another_config_do_not_join_a_sweep(folder):
    Path("task.yaml").write_text("learning_rate: 0.003")
    stages = {"last": "run.py {dir} --seed {seed} --config task.yaml"}
    assert run(stages=stages, variants={"much": []}, require=[])[0] == 0
    Path("task.yaml").write_text("learning_rate: 0.003  # a comment changes nothing")
    assert run(stages=stages, variants={"much": []}, require=[], seeds=4)[0] == 0 and len(starts()) == 4
    Path("task.yaml").write_text("learning_rate: 0.03")
    code, output = run(stages=stages, variants={"much": []}, require=[], seeds=5)
    assert code == 2 and "had other values: choose another run_name" in output and len(starts()) == 4


@pytest.mark.parametrize("name", ["task.yaml", "task.yml", "task.toml"])
@pytest.mark.parametrize("text", ["a: !env {}", "a: {}\n---\nb: 1", "2026-01-01: {}", "a: \xff{}", "a = {}"])
def test_configs_of_other_programs_may_hold_anything(folder, name, text):
    def settings(value, *words):
        Path(name).write_bytes(text.format(value).encode("latin-1"))
        return sweep.Job("last", 1, 1, Path("last"), ("run.py", *words), None).settings

    split, joined = ("--config", name), (f"--config={name}",)
    assert settings(1, *split) == settings(1, *joined) != settings(2, *split)


def test_threads_fill_the_cores_and_no_more(folder, monkeypatch):
    monkeypatch.setattr(sweep, "cores", lambda: 2)
    config = config_of(stages={"last": "run.py {dir}"}, variants={"v": []}, parallel=None, seeds=4)
    with RunLog(config.run_dir, resume=True, streams=("results", "jobs")) as log:
        schedule = sweep.Schedule(config, plan(config), log, Screen(False))

        def started():
            seeds = []
            for job in schedule.startable():
                seeds.append(job.seed)
                schedule.begun(job, job.seed)
            return seeds

        assert started() == [0, 2]  # one thread each; seeds 1 and 3 need both cores
        schedule.ended(0, 0)
        assert started() == []
        schedule.ended(2, 0)
        assert started() == [1]
        schedule.ended(1, 0)
        assert started() == [3] and not schedule.is_over
        schedule.ended(3, 0)
        assert schedule.is_over and len(rows("results")) == 4


def test_a_failing_run_is_a_row_and_no_end_of_the_others(folder):
    stages = {"data": "run.py {dir} --seed {seed} --fails 1", "last": "run.py {dir} --seed {seed} --fails 2"}
    code, output = run(stages=stages, require=[])
    assert code == 1
    assert "WARNING: shared/seed_1/data ended with exit code 1: there was an iceberg" in output
    ends = {key: (row["exit_code"], row["failed"]) for key, row in results().items()}
    assert ends == {("much", 0): (0, None), ("little", 0): (0, None), ("much", 1): (1, "data"),
                    ("little", 1): (1, "data"), ("much", 2): (1, "last"), ("little", 2): (1, "last")}  # fmt: skip
    assert not Path("outputs/tiny/much/seed_1").exists()  # its data failed
    before = starts()
    assert run(stages=stages, require=[])[0] == 1
    assert starts()[len(before) :].count("shared/seed_1/data") == 1  # what failed is tried again, and nothing else
    assert not {"shared/seed_0/data", "shared/seed_2/data", "much/seed_0/last"} & set(starts()[len(before) :])


@long
def test_a_killed_sweep_leaves_nobody_behind_and_goes_on_to_the_same_results(tmp_path, monkeypatch):
    slow = {"data": "run.py {dir} --seed {seed}", "last": "run.py {dir} --seed {seed} --steps 8 --server"}
    changes = {"stages": slow, "seeds": 2, "threads": [1], "parallel": 3, "require": []}
    made(tmp_path / "whole", monkeypatch)
    assert run(**changes)[0] == 0
    whole = results()

    made(tmp_path / "killed", monkeypatch)
    process = start(**changes)
    wait_for(Path("outputs/tiny/little/seed_0/last/checkpoint").exists)
    process.kill()
    process.join()
    wait_for(lambda: not living())
    assert run(**changes)[0] == 0
    assert results() == whole and len(whole) == 4
    assert any(row["was_restarted"] for row in rows("results"))
    log = Path("outputs/tiny/little/seed_0/last.log").read_text()
    assert log.count("step 0\n") == 1 and "step 7" in log  # it went on from its checkpoint
    assert starts().count("shared/seed_0/data") == 1
    assert not living()

    Path("outputs/tiny/results.jsonl").unlink()  # as if the kill had come before a row
    before = starts()
    assert run(**changes)[0] == 0
    assert results() == whole and starts() == before


def test_a_stage_that_is_added_is_run_and_one_that_is_taken_away_is_refused(folder):
    changes = {"variants": {"little": {"last": ["--gain", "0.2"]}}, "seeds": [0], "require": []}
    assert run(**changes)[0] == 0
    code, output = run(**changes, stages=CONFIG["stages"] | {"after": "run.py {dir} --seed {seed}"})
    assert code == 0, output
    assert starts() == ["shared/seed_0/data", "little/seed_0/last", "little/seed_0/after"] and len(rows("results")) == 2
    code, output = run(**changes)
    assert code == 2 and "has 3 stages, and `stages` now only the first 2" in output


@long
def test_what_was_deleted_is_made_again_where_a_run_still_needs_it(folder):
    changes = {"seeds": [0], "require": []}
    assert run(variants={"much": []}, **changes)[0] == 0
    shutil.rmtree("outputs/tiny/shared/seed_0/data")
    assert run(variants={"much": []}, **changes)[0] == 0
    assert starts() == ["shared/seed_0/data", "much/seed_0/last"]  # its numbers are there
    assert run(variants={"much": [], "little": ["--gain", "0.2"]}, **changes)[0] == 0
    assert starts()[2:] == ["shared/seed_0/data", "little/seed_0/last"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_children_and_then_the_sweep(folder, number):
    slow = {"last": "run.py {dir} --seed {seed} --steps 100 --server"}
    process = start(stages=slow, variants={"v": []}, require=[])
    wait_for(Path("outputs/tiny/v/seed_1/last/checkpoint").exists)
    os.kill(process.pid, number)
    assert ended(process) == 128 + number
    assert "the same command resumes" in Path("output.txt").read_text()
    assert not living()
    if number == signal.SIGTERM:
        assert "saved" in Path("outputs/tiny/v/seed_0/last.log").read_text()
    assert not rows("results") and len(starts()) == 2


def test_figures_of_any_command_are_read_from_its_screen(folder):
    code, output = run(
        stages={"last": "run.py {dir}/elsewhere --seed {seed}"}, variants={"v": []}, seeds=2,
        figures={"after.acc": r"right ([\d.]+)"}, require=["after.acc > 0.7"],
    )  # fmt: skip
    assert code == 0
    assert "2 of 2 runs: after.acc > 0.7; worst 0.800, seed 0" in output


def test_sft_without_held_out_rows_shows_its_loss(folder):
    job = plan(config_of())["much", 0][1]
    job.folder.mkdir(parents=True)
    lines = [json.dumps({"step": step, "loss": 1 / step}) + "\n" for step in range(1, 101)]
    (job.folder / "metrics.jsonl").write_text("".join(lines))
    found = read_run(job, config_of())
    assert [row["step"] for row in found["evaluations"]] == list(range(5, 101, 5))
    assert found["evaluations"][-1]["loss"] == 0.01
    assert found.keys() == {"evaluations", "alarms"} and found["alarms"] == []  # it tells no parameters


def test_two_first_attempts_are_a_figure_beside_the_second_attempt(folder):
    job = plan(config_of())["much", 0][1]
    job.folder.mkdir(parents=True)
    chances = [{"k": 1, "pass": 0.5, "succ": 0.5}, {"k": 2, "pass": 0.625, "succ": 0.75}]
    row = {"when": "after_stage2", "step": 3, "acc_attempt1": 0.5, "acc_attempt2": 0.7, "success_at_k": chances}
    row["revised_minus_fresh"] = 0.25
    (job.folder / "evaluations.jsonl").write_text(json.dumps(row) + "\n")
    result = {"seed": 0, "seconds": 1, "was_restarted": False, **read_run(job, config_of())}
    cells = {summary.label: summary.cells({0: 1}) for summary in summaries([result])}
    assert cells["after stage II: pass@2"][1] == "0.625" and cells["after stage II: revised - fresh"][1] == "+0.250"
    assert value_of(result, Figure("pass_at_2", "after_stage2")) == 0.625
    longer = result | {"evaluations": [row | {"acc_attempt3": 0.8}]}
    assert [value_of(one, Figure("accuracy")) for one in (result, longer)] == [0.7, 0.8]  # of the last attempt


@pytest.mark.parametrize(("link", "shown"), [("../stage1/step_4", True), ("step_4", True), ("step_6", False)])
def test_the_best_checkpoint_is_a_moment_where_it_is_not_the_last(folder, link, shown):
    job = plan(config_of())["much", 0][1]
    moments = [("pretrain", 1, 0, 0.1), ("step", 1, 4, 0.2), ("step", 2, 4, 0.3), ("after_stage2", 2, 6, 0.4)]
    evaluations = [{"when": when, "stage": stage, "step": step, "acc": acc + at / 100, "temperature": at}
                   for when, stage, step, acc in moments for at in (1.0, 0.0)]  # fmt: skip
    (job.folder / "stage2").mkdir(parents=True)
    write_rows(job.folder / "evaluations.jsonl", evaluations)
    (job.folder / "stage2/best").symlink_to(link)
    (job.folder / "best").symlink_to("stage2/best")
    (job.folder / "stage1/step_4").mkdir(parents=True)
    (job.folder / "stage2/step_4").mkdir()
    (job.folder / "metrics.jsonl").write_text(json.dumps({"stage": 2, "step": 1, "global_step": 7}) + "\n")
    result = {"seed": 0, "seconds": 1, "was_restarted": False, **read_run(job, config_of())}
    expected = {"../stage1/step_4": 0.2, "step_4": 0.3, "step_6": 0.4}[link]
    assert value_of(result, Figure("acc", "best", 0.0)) == expected
    assert value_of(result, Figure("acc", "best")) == expected + 0.01
    assert value_of(result, Figure("acc", "last", 0.0)) == 0.4
    assert ("best, greedy: pass@1" in [summary.label for summary in summaries([result])]) == shown


def test_dry_run_lists_the_commands(folder):
    code, output = run("--dry-run", "seeds=1")
    assert code == 0 and not Path("outputs").exists()
    assert "little/seed_0/last, 1 thread: run.py outputs/tiny/little/seed_0/last --seed 0 --gain 0.2" in output
