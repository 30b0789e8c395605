"""The leaderboard's checker, on real runs of a few steps: an honest one passes, each kind of cheating is refused.

Whoever cheats may seal the directory again, so that no checksum tells: what then tells is measured.
"""

import json
import shutil
import sys
from pathlib import Path

import pytest
import yaml
from conftest import long
from helpers.tiny import call, stages
from safetensors.torch import load_file, save_file

from benchmarks import leaderboard, speedrun
from data.builders import write_rows
from lib.core.config import ScoreConfig, load
from lib.core.errors import ConfigError
from lib.run.manifest import MANIFEST, manifest_of, seal

ROOT = Path(__file__).parents[2]
BASE = ROOT / "data/tiny_sums_base"
SMALL = "--lessons 200 --chats 100 --train 200"
LITTLE = {
    "train": stages((4, 2), 8),
    "eval": {"max_examples": 60},
    "optimizer": {"warmup_steps": 0},
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the rules of a small track, its config, and an honest run of it."""
    place = tmp_path_factory.mktemp("speedrun")
    config = yaml.safe_load((ROOT / "configs/speedrun.yaml").read_text())
    config["model"]["name"], config["dataset"] = str(BASE), {"name": str(place / "data"), "test_split_size": 80}
    config["output_dir"] = str(place)
    for section, values in LITTLE.items():
        config[section] |= values
    rules = yaml.safe_load(leaderboard.RULES.read_text())
    rules |= {"config": str(place / "config.yaml"), "data": f"{rules['data']} {SMALL} --test 80"}
    rules["questions"] = {"build": f"{rules['questions']['build']} {SMALL} --test 200", "count": 150}
    (place / "config.yaml").write_text(yaml.safe_dump(config))
    (place / "rules.yaml").write_text(yaml.safe_dump(rules))
    assert command(place, "run") == 0
    return place


def command(place, *words, rules="rules.yaml"):
    """The exit code of the script."""
    return call(speedrun, "--rules", place / rules, *words)


@pytest.fixture(scope="module")
def track(place, tmp_path_factory):
    return leaderboard.track_of(leaderboard.read_rules(place / "rules.yaml"), tmp_path_factory.mktemp("track"))


@pytest.fixture(scope="module")
def foreign(place):
    """A real run on another base and on other data, some of which is held out by the track."""
    base, data = place / "base", place / "other"
    shutil.copytree(BASE, base)
    nudge(base / "model.safetensors", 1e-2)
    leaderboard.build(f"data/build_tiny_sums.py --seed 5 {SMALL} --test 80 --out {{dir}}", data)
    with open(data / "train.jsonl", "a") as file:
        file.write((place / "data/test.jsonl").read_text())
    config = load(
        ScoreConfig, place / "config.yaml", [f"model.name={base}", f"dataset.name={data}", "run_name=foreign"]
    )
    code, used, wall = leaderboard.train(config, 1, 240, place)
    assert code == 0
    seal(config.run_dir, cpu_seconds=used, wall_seconds=wall, threads=1)
    return config.run_dir


@pytest.fixture
def run(place, tmp_path):
    """A copy of the honest run."""
    return shutil.copytree(place / "speedrun-0", tmp_path / "run", symlinks=True)


def nudge(path, size):
    """Changes every weight of a file a little."""
    save_file({name: value + size for name, value in load_file(path).items()}, path, {"format": "pt"})


def sealed(folder, **facts):
    """Seals a folder again, with some facts replaced, as someone who cheats well would."""
    before = {key: value for key, value in manifest_of(folder).items() if key not in ("schema", "files")}
    seal(folder, **before | facts)
    return folder


def edited(path, change):
    """Changes every row of a file of JSON lines."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    write_rows(path, (row for row in rows if change(row) is not False))


def configured(run, **sections):
    """Changes some keys of the run's config."""
    path = run / "config.yaml"
    tree = yaml.safe_load(path.read_text())
    for name, values in sections.items():
        tree[name] = (tree[name] or {}) | values if isinstance(values, dict) else values
    path.write_text(yaml.safe_dump(tree))
    return sealed(run)


def reasons(track, run, tmp_path, rerun=False):
    """Why the checker refuses a run."""
    with pytest.raises(leaderboard.Refused) as refused:
        leaderboard.checked(track, run, tmp_path, rerun)
    return "\n".join(refused.value.reasons)


@long
def test_an_honest_run_is_accepted_and_gives_the_same_weights_again(place, run, capsys):
    assert command(place, "check", run) == 0
    out = capsys.readouterr().out
    assert "seed 0: trained again in " in out and ": the same weights" in out
    row = next(line for line in out.splitlines() if line.startswith("| those to start from | "))
    assert "n = 150 new questions" in out and "one of 1 seeds; an entry that is listed has 5" in out
    assert all(0 <= float(cell.split()[0]) <= 1 for cell in row.split("|")[2:8])


@long
def test_a_run_beyond_its_budget_is_killed_by_the_kernel_and_is_no_entry(place, capfd):
    rules = yaml.safe_load((place / "rules.yaml").read_text()) | {"cpu_seconds": 2}
    (place / "short.yaml").write_text(yaml.safe_dump(rules))
    assert command(place, "run", "run_name=late", rules="short.yaml") == 1
    assert "late-0 was not finished after 2 seconds of processor time, and is no entry" in capfd.readouterr().err
    assert not (place / "late-0" / MANIFEST).exists()


# 1. other data


@long
def test_other_data_and_held_out_rows_are_seen(track, foreign, tmp_path):
    found = reasons(track, foreign, tmp_path)
    assert f"the data: got {manifest_of(foreign / 'stage2')['dataset']}, expected {track.dataset}" in found
    assert "prompts are no rows to train on" in found


def test_data_is_seen_in_the_texts_where_the_fingerprint_is_forged(track, foreign, tmp_path):
    run = shutil.copytree(foreign, tmp_path / "run", symlinks=True)
    for stage in ("stage1", "stage2"):
        sealed(run / stage, dataset=track.dataset, inputs=track.inputs)
    assert "prompts are no rows to train on" in reasons(track, run, tmp_path)
    edited(
        run / "generations.jsonl", lambda row: row["when"] != "train" or row["prompt"] in track.trained_on
    )  # without those that tell
    assert "generations.jsonl: there are no texts of " in reasons(track, sealed(run), tmp_path)


# 2. another base


def test_another_base_is_seen(track, foreign, tmp_path):
    assert "the base weights: got " in reasons(track, foreign, tmp_path)


def test_a_start_from_another_adapter_is_seen(track, run, tmp_path):
    edited(run / "evaluations.jsonl", lambda row: row.update(when="adapter") if row["when"] == "pretrain" else None)
    assert "it does not begin with the base alone" in reasons(track, sealed(run), tmp_path)
    configured(run, model={"adapter": "outputs/better"})
    assert "config: model.adapter None -> 'outputs/better': it may not differ" in reasons(track, run, tmp_path)


# 3. a longer budget


def test_steps_beyond_those_of_the_config_are_seen(track, run, tmp_path):
    found = reasons(track, configured(run, train={"stage2_steps": 1}), tmp_path)
    assert "metrics.jsonl: got 6 steps, expected each of the config's 5, in order" in found
    assert "stage2: its weights are those of step 2, expected 1" in found


def test_an_edited_clock_is_seen(track, run, tmp_path):
    manifest = json.loads((run / MANIFEST).read_text())
    (run / MANIFEST).write_text(json.dumps(manifest | {"cpu_seconds": 1.0}))
    assert f"{MANIFEST} is damaged (its checksum differs)" in reasons(track, run, tmp_path)
    (run / MANIFEST).write_text(json.dumps(manifest))
    assert "budget: 300 seconds of processor time, 240 are allowed" in reasons(
        track, sealed(run, cpu_seconds=300.0, wall_seconds=300.0), tmp_path
    )
    assert "is more than 1 threads can use" in reasons(
        track, sealed(run, cpu_seconds=200.0, wall_seconds=9.0), tmp_path
    )


@long
def test_a_clock_that_was_edited_well_is_seen_by_training_again(track, run, tmp_path):
    strict = track._replace(rules=track.rules.model_copy(update={"cpu_seconds": 2}))
    sealed(run, cpu_seconds=1.5, wall_seconds=1.5)
    assert "rerun: not finished after 2 seconds of processor time, of 2 (exit code -" in reasons(
        strict, run, tmp_path, rerun=True
    )


# 4. edited numbers


def test_edited_numbers_are_seen_with_and_without_a_new_seal(track, run, tmp_path):
    edited(run / "evaluations.jsonl", lambda row: row.update(acc_attempt2=0.99))
    assert "run/evaluations.jsonl " in reasons(track, run, tmp_path)
    found = reasons(track, sealed(run), tmp_path)
    assert found.count("evaluations.jsonl: acc_attempt2 at temperature ") == 2 and "is 0.99, expected 0." in found


# 5. another reward, another evaluation


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"reward": {"format": "free"}}, "config: reward.format 'think_answer' -> 'free'"),
        ({"reward": {"match": "math"}}, "config: reward.match 'exact' -> 'math'"),
        ({"generation": {"max_new_tokens_attempt2": 32}}, "config: generation.max_new_tokens_attempt2 16 -> 32"),
        ({"eval": {"max_examples": 5}}, "config: eval.max_examples 60 -> 5"),
        ({"eval": {"seed": 7}}, "config: eval.seed 0 -> 7"),
        ({"prompts": {"feedback": "verdict"}}, "config: prompts.feedback 'none' -> 'verdict'"),
        ({"prompts": {"self_correction": "Add ten."}}, "config: prompts.self_correction "),
        ({"train": {"after_checkpoint": "touch here"}}, "config: train.after_checkpoint None -> 'touch here'"),
        ({"distill": {"model": {"name": "oracle"}}}, "config: distill"),
    ],
)
def test_a_changed_reward_evaluation_or_prompt_is_seen(track, run, tmp_path, changes, told):
    assert told in reasons(track, configured(run, **changes), tmp_path)


def test_other_code_of_the_reward_is_seen(track, run, tmp_path):
    sealed(run / "stage2", inputs=track.inputs | {"the reward's code": "0123456789abcdef"})
    assert "the reward's code: got 0123456789abcdef, expected " in reasons(track, run, tmp_path)


# and more


@long
def test_weights_from_elsewhere_are_seen(track, run, tmp_path):
    """Where they do as well as the run's own only training again tells."""
    nudge(run / "stage2/adapter_model.safetensors", 1e-5)
    assert "stage2/adapter_model.safetensors " in reasons(track, run, tmp_path)
    sealed(run / "stage2")
    assert "rerun: stage2 has other weights than its config gives here" in reasons(track, run, tmp_path, rerun=True)


def test_nothing_of_a_run_directory_is_executed(track, run, tmp_path, monkeypatch):
    (run / "trap.py").write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')\ndef reward(*_): return 1.0\n")
    monkeypatch.syspath_prepend(str(run))
    monkeypatch.chdir(run)
    assert "config: reward.fn " in reasons(track, configured(run, reward={"fn": "trap.reward"}), tmp_path)
    honest = (run / "config.yaml").read_text().replace("fn: trap.reward", "fn: exact_match")
    configured(run, **{"reward.fn": "exact_match"})  # which the comparison would take for the section's key
    assert "config.yaml: reward.fn: a key with a dot in it" in reasons(track, run, tmp_path)
    (run / "config.yaml").write_text(f"{honest}\nreward: {{fn: trap.reward}}\n")
    assert "reward: given twice, first in line " in reasons(track, sealed(run), tmp_path)
    (run / "config.yaml").write_text("!!python/object/apply:os.mkdir [sprung]\n")
    assert "config.yaml: " in reasons(track, sealed(run), tmp_path)
    assert not (tmp_path / "sprung").exists() and not (run / "sprung").exists() and "trap" not in sys.modules


@pytest.mark.parametrize("lost", ["config.yaml", "stage2", "generations.jsonl", MANIFEST])
def test_an_unfinished_or_incomplete_run_is_refused(track, run, tmp_path, lost):
    shutil.rmtree(run / lost) if (run / lost).is_dir() else (run / lost).unlink()
    assert lost in reasons(track, run, tmp_path)


def test_runs_of_one_entry_differ_in_their_seed_alone(track):
    runs = [{"config": track.config.model_copy(update={"seed": seed})} for seed in (0, 1, 2)]
    assert speedrun.together(runs) == []
    assert speedrun.together([*runs, runs[1]]) == ["seed 1 stands there twice"]
    runs[2]["config"] = leaderboard.changed(runs[2]["config"], {"train": {"alpha": 2.0}})
    assert speedrun.together(runs) == ["train.alpha differs between the runs"]


def test_a_config_that_breaks_the_rules_trains_nothing(place):
    with pytest.raises(ConfigError, match=r"config: eval\.seed 0 -> 3: it may not differ"):
        command(place, "run", "run_name=other", "eval.seed=3")
    with pytest.raises(ConfigError, match=r"config: dataset\.name .*: it may not differ"):
        command(place, "run", "run_name=other", f"dataset.name={place / 'mine'}")
    with pytest.raises(ConfigError, match=r"config: model\.name .*: it may not differ"):
        command(place, "run", "run_name=other", "model.name=another")
    assert not (place / "other-0").exists() and not (place / "mine").exists()
    with pytest.raises(ConfigError, match="speedrun-0: an unfinished run or one of other settings is there"):
        command(place, "run", "train.alpha=3")


@long
def test_the_base_that_ships_is_that_of_the_rules(tmp_path):
    track = leaderboard.track_of(leaderboard.read_rules(leaderboard.RULES), tmp_path)
    assert track.inputs["the base weights"] == track.rules.base
