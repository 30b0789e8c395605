"""The scripts through their real command lines, on a model whose weights are set by hand.

It answers every question by `<think></think><answer>7</answer>`, and by 8 in place of 7 with probability 1/4: all that
the scripts report about it can be worked out on paper.
"""

import ast
import importlib.util
import json
import math
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from conftest import chatterbox
from helpers import tiny
from helpers.tiny import rows_in

import collect_rollouts
import evaluate
import profile_run
import rl_train_gspo_selfplay
import train
from data.builders import write_rows
from engine import Completion
from judge.parsing import same_answer
from lib.core.config import ScoreConfig, load
from lib.core.errors import ConfigError
from lib.rewards.judge import Verdict
from lib.rl.evaluation import pass_at_k
from lib.rl.prompts import Prompt
from lib.rl.sequential import majority_votes, vote
from lib.rl.task import load_data
from lib.rl.tree import Answer, Group

ROOT = Path(__file__).parents[2]
REAL = ("arithmetic", "gsm8k", "math")
ALONE = SimpleNamespace(num_processes=1)


@pytest.fixture(scope="session")
def sevens(tmp_path_factory):
    """The folder of a model that answers 7, or 8 once in four times, within tags."""
    return chatterbox(tmp_path_factory.mktemp("sevens"), {
        "<|assistant|>": {"<think>": 1}, "<think>": {"</think>": 1}, "</think>": {"<answer>": 1},
        "<answer>": {"7": 0.75, "8": 0.25}, "7": {"</answer>": 1}, "8": {"</answer>": 1},
    })  # fmt: skip


RIDDLES = {
    "run_name": "riddles",
    "model": tiny.model(4, 256),
    "dataset": {"name": "riddles.csv", "target_field": "solution", "test_split_size": 48},
    "prompts": {"system": "Guess.", "user": "{riddle}?", "self_correction": "Guess again."},
    "reward": {"fn": "riddle_scores.warm", "answer_extractor": "riddle_scores.guess"},
    "generation": tiny.limits(prompts=(64, 128), answers=(8, 8)),
    "optimizer": {"learning_rate": 0.003},
    "train": tiny.stages((8, 8), 8, beta2=0.01),
    "eval": {"max_examples": 48, "temperature": 1.0, "samples_per_prompt": 4},
}
GUESSES = {
    **RIDDLES,
    "run_name": "guesses",
    "prompts": {"system": "Guess.", "user": "{riddle}?"},
    "generation": {"max_prompt_length": 64, "max_new_tokens": 8},
    "opponent": {"snapshots": {}, "temperature": 1.0},
    "train": {"steps": 4, "batch_size": 8, "group_size": 4, "minibatches": 2, "loss": "grpo", "checkpoint_every": 2},
}  # fmt: skip
NUMBERS = [number * 37 % 96 for number in range(96)]  # 0 to 95, mixed
SCORES = """
def warm(prediction_answers, solution):
    return [{"close": 0.1 * (answer in "789"), "right": 1.0 * (answer == right)}
            for answer, right in zip(prediction_answers, solution, strict=True)]

def guess(text):
    return text.rpartition("<answer>")[2].partition("</answer>")[0]
"""


@pytest.fixture(scope="module")
def riddles(sevens, tmp_path_factory):
    """A folder with a task that nobody here has seen, and a run that trained on it: YAML, data and a reward."""
    folder = tmp_path_factory.mktemp("riddles")
    (folder / "riddle_scores.py").write_text(SCORES)
    (folder / "riddles.csv").write_text("riddle,solution\n" + "".join(f"r{number},8\n" for number in NUMBERS))
    config = RIDDLES | {"model": RIDDLES["model"] | {"name": str(sevens)}}
    (folder / "riddles.yaml").write_text(yaml.safe_dump(config))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(str(folder))
        assert tiny.call(train, "--config", "riddles.yaml") == 0
    return folder


@pytest.fixture(scope="module")
def guesses(riddles):
    """A run of self-play on the same riddles, in the same folder."""
    model = yaml.safe_load((riddles / "riddles.yaml").read_text())["model"]
    (riddles / "guesses.yaml").write_text(yaml.safe_dump(GUESSES | {"model": model}))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(riddles)
        patch.syspath_prepend(str(riddles))
        assert tiny.call(rl_train_gspo_selfplay, "--config", "guesses.yaml") == 0
    return riddles / "outputs/guesses"


@pytest.fixture
def inside(riddles, monkeypatch):
    monkeypatch.chdir(riddles)
    monkeypatch.syspath_prepend(str(riddles))
    return riddles


def write_answers(folder, answers):
    rows = [{"question": f"q{number}", "answer": answer} for number, answer in enumerate(answers)]
    write_rows(folder / "rows.jsonl", rows)


def local(sevens, **more):
    """Overrides that put the tiny model and local rows in place of a config's own; a character is a token here."""
    values = {
        "model.name": sevens, "dataset.name": "rows.jsonl", "dataset.target_field": "answer",
        "dataset.test_split_size": 8,
        "dataset.config_name": None, "prompts.user": "'{question}'", "model.load_in_4bit": "false",
        "model.max_seq_length": 8192, "generation.max_prompt_length_attempt1": 2000,
        "generation.max_prompt_length_attempt2": 4000, "generation.batch_size": 64, **more,
    }  # fmt: skip
    return [f"{key}={'null' if value is None else value}" for key, value in values.items()]


# ---- train.py and the configs


def test_an_unseen_task_trains_by_yaml_alone(riddles):
    rows = {row["when"]: row for row in rows_in(riddles / "outputs/riddles/evaluations.jsonl")}
    assert list(rows) == ["pretrain", "after_stage1", "after_stage2"]
    assert rows["pretrain"]["n"] == 144
    low, high = rows["pretrain"]["acc_attempt1_ci95"]
    assert low < 0.25 < high
    assert rows["after_stage2"]["acc_attempt2"] > 0.6
    last = rows["after_stage2"]
    parts = last["reward/close_attempt2"], last["reward/right_attempt2"]
    assert sum(parts) == pytest.approx(last["reward_attempt2"])
    assert parts[1] == pytest.approx(last["acc_attempt2"])


@pytest.mark.parametrize("path", sorted((ROOT / "configs").glob("*.yaml")), ids=lambda path: path.stem)
def test_a_config_opens_with_its_command(path):
    first = path.read_text().splitlines()[0]
    assert first.startswith("# ")
    assert f"--config configs/{path.name}" in first


@pytest.mark.parametrize("name", REAL)
def test_a_real_config_loads_and_shows_its_plan(name, sevens, tmp_path, monkeypatch, capsys):
    config = load(ScoreConfig, ROOT / f"configs/{name}.yaml")
    whole = config.generation.max_prompt_length_attempt1 + config.generation.max_new_tokens_attempt1
    assert config.generation.max_prompt_length_attempt2 > whole + 100  # so that attempt 2 sees all of attempt 1
    assert (config.train.alpha, config.train.beta1, config.train.beta2, config.seed) == (1.0, 0.01, 0.1, 3407)
    monkeypatch.chdir(tmp_path)
    write_answers(tmp_path, ["7"] * 24)
    assert tiny.call(train, "--config", ROOT / f"configs/{name}.yaml", "--dry-run", *local(sevens)) == 0
    shown = capsys.readouterr().out
    steps = math.ceil(16 / config.train.stage2_batch_size)
    for text in (config.prompts.system.split(".")[0], "There might be an error in the solution above.", "[target: 7]",
                 f"stage II: {steps} steps", "nothing was trained"):  # fmt: skip
        assert text in shown
    assert "LoRA Without Regret" not in shown  # our own configs follow it
    assert not (tmp_path / "outputs").exists()


@pytest.mark.parametrize("name", ["gsm8k", "math"])
def test_a_real_config_runs_small(name, sevens, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_answers(tmp_path, ["7", "8"] * 12)
    assert tiny.call(train, "--config", ROOT / f"configs/{name}.yaml", "--smoke", 8, *local(sevens)) == 0
    rows = rows_in(tmp_path / f"outputs/score-{name}-smoke/evaluations.jsonl")
    assert {row["when"] for row in rows} == {"pretrain", "step", "after_stage1", "after_stage2"}
    if rows[0]["temperature"] == 0:
        assert rows[0]["n"] == 4 and 0 < rows[0]["acc_attempt1"] < 1  # it says 7, and half of all answers are 7
    assert "after stage II" in capsys.readouterr().out


def test_without_network_one_sentence_says_what_to_do(tmp_path, monkeypatch):
    import datasets

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    for name, source in (("gsm8k", "openai/gsm8k"), ("arithmetic", "./data/arithmetic")):
        with pytest.raises(ConfigError) as caught:
            tiny.call(train, "--config", ROOT / f"configs/{name}.yaml")
        message = str(caught.value)
        assert source in message
        assert "give " in message
        assert "\n" not in message
        assert caught.value.exit_code == 2


# ---- evaluate.py


def test_evaluate_reports_what_can_be_worked_out_on_paper(inside, sevens, tmp_path, capsys):
    write_answers(tmp_path, ["7"] * 20 + ["8"] * 21 + ["9"] * 10)  # one that is 8 is not held out
    overrides = ["dataset.name=" + str(tmp_path / "rows.jsonl"), "dataset.target_field=answer",
                 "dataset.test_split_size=50", "prompts.user='{question}'", "reward.fn=exact_match",
                 "eval.selection_examples=0"]  # fmt: skip
    options = [
        "--temperature",
        0,
        1,
        "--samples",
        16,
        "--max-examples",
        50,
        "--majority",
        "--output",
        tmp_path / "o.jsonl",
    ]
    assert tiny.call(evaluate, "--config", "riddles.yaml", *overrides, *options) == 0
    greedy, sampled = rows_in(tmp_path / "o.jsonl")
    assert [greedy[key] for key in ("when", "adapter", "temperature", "n", "prompts")] == ["pretrain", None, 0, 50, 50]
    assert [greedy[key] for key in ("acc_attempt1", "acc_attempt2", "delta", "i_to_c")] == [0.4, 0.4, 0, 0]
    assert "pass_at_k" not in greedy
    assert (sampled["n"], sampled["prompts"], sampled["temperature"], sampled["seed"]) == (800, 50, 1, 0)
    expected = 0.4 * 0.75 + 0.4 * 0.25
    # four standard errors each; 640 of the 800 answers are open, and 40 of the 50 prompts
    assert sampled["acc_attempt1"] == pytest.approx(expected, abs=0.055)  # 4 sqrt(640 * 0.75 * 0.25) / 800
    assert sampled["i_to_c"] == pytest.approx(0.8 * 0.75 * 0.25, abs=0.05)  # 4 sqrt(640 * 0.19 * 0.81) / 800
    assert sampled["delta"] == pytest.approx(sampled["i_to_c"] - sampled["c_to_i"])
    at = {row["k"]: row["pass"] for row in sampled["pass_at_k"]}
    assert list(at) == [1, 2, 4, 8, 16]
    assert at[1] == pytest.approx(sampled["acc_attempt1"])
    assert at[16] == pytest.approx(0.4 + 0.4 * (1 - 0.75**16), abs=0.036)  # 4 sqrt(20 * 0.99 * 0.01) / 50
    for name in ("revised_after_wrong", "fresh_after_wrong"):  # a second look is as good as another first one here
        assert sampled[name] == pytest.approx((0.4 + 0.4) * 0.75 * 0.25 / 0.6, abs=0.055) and name not in greedy
    votes = {row["k"]: row for row in sampled["majority"]}
    assert list(votes) == [1, 2, 4, 8]
    assert votes[1]["acc_sequential"] == pytest.approx(sampled["acc_attempt2"])
    # sixteen votes are for 8 with probability 0.0075, tied with 0.0197: 0.012 is the variance of a prompt's score
    assert votes[8]["acc_parallel"] == pytest.approx(0.4, abs=0.056)  # 4 sqrt(40 * 0.012) / 50
    assert votes[8]["gain"] == pytest.approx(votes[8]["acc_sequential"] - votes[8]["acc_parallel"])
    shown = capsys.readouterr().out
    for text in ("greedy ", "40.0 %", "n = 800 answers to 50 held-out questions", "pass@16", "K = 8", "base of",
                 "temperature 1: after a wrong attempt 1 the revision is right 2"):  # fmt: skip
        assert text in shown


def test_evaluate_repeats_the_last_evaluation_of_a_run(inside, tmp_path, capsys):
    arguments = ["--config", "outputs/riddles/config.yaml", "--run", "outputs/riddles", "--temperature", 1]
    assert tiny.call(evaluate, *arguments, "--output", tmp_path / "new" / "o.jsonl") == 0
    (again,) = rows_in(tmp_path / "new" / "o.jsonl")
    then = rows_in("outputs/riddles/evaluations.jsonl")[-1]
    assert again["adapter"] == "outputs/riddles/stage2"
    same = set(then) - {"time", "stage", "step", "selection"}
    assert {"when", "n", "acc_attempt1", "delta_ci95", "c_to_i", "mcnemar_p"} <= same
    assert {key: again[key] for key in same} == {key: then[key] for key in same}
    assert "are not split as those" not in capsys.readouterr().out
    assert tiny.call(evaluate, *arguments, "--max-examples", 2, "dataset.test_split_size=49") == 0
    assert "these rows are not split as those of outputs/riddles/stage2 were" in " ".join(
        capsys.readouterr().out.split()
    )


def test_evaluate_reports_single_answers(inside, guesses, tmp_path, capsys):
    write_answers(tmp_path, ["7"] * 20 + ["8"] * 21 + ["9"] * 10)  # one that is 8 is not held out
    overrides = [f"dataset.name={tmp_path / 'rows.jsonl'}", "dataset.target_field=answer", "reward.fn=exact_match",
                 "dataset.test_split_size=50", "prompts.user='{question}'", "eval.selection_examples=0"]  # fmt: skip
    options = ["--temperature", 0, 1, "--samples", 16, "--max-examples", 50, "--output", tmp_path / "o.jsonl"]
    assert tiny.call(evaluate, "--config", "guesses.yaml", *overrides, *options) == 0
    greedy, sampled = rows_in(tmp_path / "o.jsonl")
    about = ["when", "adapter", "temperature", "n", "prompts", "samples", "acc", "truncated", "unscored"]
    assert [greedy[key] for key in about] == ["pretrain", None, 0, 50, 50, 1, 0.4, 0, 0]
    assert [entry["pass"] for entry in greedy["pass_at_k"]] == [0.4]
    assert (sampled["n"], sampled["prompts"], sampled["temperature"], sampled["seed"]) == (800, 50, 1, 0)
    assert not {"games", "delta", "majority"} & set(sampled)
    assert sampled["length"] == 6  # four tags, the digit, the end
    # four standard errors each, as above
    assert sampled["acc"] == pytest.approx(0.4 * 0.75 + 0.4 * 0.25, abs=0.055)
    at = {row["k"]: row["pass"] for row in sampled["pass_at_k"]}
    assert list(at) == [1, 2, 4, 8, 16]
    assert at[1] == pytest.approx(sampled["acc"])
    assert at[16] == pytest.approx(0.4 + 0.4 * (1 - 0.75**16), abs=0.036)
    shown = capsys.readouterr().out.splitlines()
    head = next(number for number, line in enumerate(shown) if line.split() == ["pass@1", "pass@16", "well-formed"])
    assert shown[head + 2].replace("%", "").split() == ["pretrain", "40.0", "-", "100.0"]  # greedily
    at_one = shown[head + 4].replace("%", "").split()
    assert at_one[:3] == ["pretrain", *(f"{100 * at[k]:.1f}" for k in (1, 16))]
    words = " ".join(shown[head:])
    assert "at temperature 1, n = 800 answers to 50 held-out questions, from rows 0 to 49 (counted from 0)" in words
    assert f"temperature 1: pass@4 {100 * at[4]:.1f} % [" in words


def test_the_card_of_self_play_has_its_table(guesses):
    rows = rows_in(guesses / "evaluations.jsonl")
    card = (guesses / "stage1/README.md").read_text()
    assert "| | pass@1 | pass@4 | well-formed | games won | opponent |" in card.replace("|  |", "| |")
    for row, label in ((rows[0], "pretrain"), (rows[-1], "after training")):
        assert f"| {label} | {row['acc']:.3f} [{row['acc_ci95'][0]:.3f}, {row['acc_ci95'][1]:.3f}] | " in card
    assert "- self-play\n" in card and "**Opponent:** earlier weights of the policy" in card


def test_evaluate_repeats_the_last_evaluation_of_self_play(inside, guesses, tmp_path):
    arguments = ["--config", guesses / "config.yaml", "--temperature", 1, "--output", tmp_path / "o.jsonl"]
    assert tiny.call(evaluate, *arguments, "--run", guesses) == 0
    assert tiny.call(evaluate, *arguments, "--adapter", guesses / "stage1/step_2") == 0
    again, before = rows_in(tmp_path / "o.jsonl")
    assert (again["adapter"], again["samples"]) == (str(guesses / "stage1"), 4)
    then, rates = rows_in(guesses / "evaluations.jsonl")[-1], ("opponent_acc", "win_rate")
    games = {"games", "wins", "losses", "missing_games", *rates, *(f"{rate}_ci95" for rate in rates)}
    same = set(then) - games - {"time", "step", "selection"}
    assert {"when", "stage", "n", "acc", "acc_ci95", "pass_at_k", "reward", "truncated"} <= same
    assert {key: again[key] for key in same} == {key: then[key] for key in same}
    assert (before["when"], before["step"]) == ("step", 2)
    assert before["reward"] != again["reward"]


def test_evaluate_swaps_attempts(inside, tmp_path, capsys):
    options = ["--config", "outputs/riddles/config.yaml", "--run", "outputs/riddles", "--swap-attempts", "--samples", 3]
    assert tiny.call(evaluate, *options, "--rows", 4, 40, "--output", tmp_path / "o.jsonl") == 0
    greedy, sampled = rows_in("outputs/riddles/swaps.jsonl")
    assert [greedy, sampled] == rows_in(tmp_path / "o.jsonl")
    rows, left_out = greedy["rows"], greedy["rows_left_out"]
    assert (rows, greedy["n"], sampled["n"]) == ([4, 40], 36 - left_out, 3 * (36 - left_out))
    assert (sampled["when"], sampled["stage"], sampled["samples"]) == ("after_stage2", 2, 3)
    assert greedy["acc_attempt1"] == greedy["after"]["own"]["acc"] == greedy["after"]["other"]["acc"] == 1  # it says 8
    shown = " ".join(capsys.readouterr().out.split())
    assert "by greedy decoding, n = " in shown and "after another's" in shown
    assert (
        f"from rows 4 to 39 (counted from 0) of what is held out without {left_out} that training chooses by" in shown
    )


def test_rows_are_those_of_the_run_or_those_that_are_asked_for(inside, tmp_path):
    arguments = ["--config", "outputs/riddles/config.yaml", "--temperature", 0, "--output", tmp_path / "o.jsonl"]
    for more in ([], ["--rows", 0, 48], ["--rows", 8, 24], ["--rows", 8, 24, "--max-examples", 5]):
        assert tiny.call(evaluate, *arguments, *more) == 0
    plain, whole, part, few = rows_in(tmp_path / "o.jsonl")
    assert {key: plain[key] for key in plain if key != "time"} == {key: whole[key] for key in whole if key != "time"}
    assert (plain["n"], plain["rows_left_out"], few["n"]) == (36, 12, 5)
    assert part["n"] + part["rows_left_out"] == 16 and part["n"] < 16
    for wrong in ((8, 8), (-1, 8), (0, 49)):
        with pytest.raises(ConfigError, match="expected two numbers, the first one lower, of at most 48"):
            tiny.call(evaluate, *arguments, "--rows", *wrong)


def test_no_majority_of_single_answers(inside, guesses):
    with pytest.raises(
        ConfigError, match=r"second attempts, and guesses\.yaml is a config of single answers: leave it out"
    ):
        tiny.call(evaluate, "--config", "guesses.yaml", "--majority", "--samples", 4)
    with pytest.raises(
        ConfigError, match=r"--swap-attempts measures second attempts, and guesses\.yaml is a config of"
    ):
        tiny.call(evaluate, "--config", "guesses.yaml", "--swap-attempts")


@pytest.mark.parametrize(
    ("script", "config", "owner", "expected"),
    [
        (train, "guesses.yaml", "rl_train_gspo_selfplay.py", "train.py"),
        (profile_run, "guesses.yaml", "rl_train_gspo_selfplay.py", "train.py"),
        (rl_train_gspo_selfplay, "riddles.yaml", "train.py", "rl_train_gspo_selfplay.py"),
        (evaluate, ROOT / "configs/sft_code.yaml", "sft_train.py", "rl_train_gspo_selfplay.py or train.py"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_the_config_of_another_script_is_one_sentence(inside, guesses, script, config, owner, expected):
    with pytest.raises(ConfigError) as caught:
        tiny.call(script, "--config", config)
    assert str(caught.value).startswith(f"{config}: this is a config of {owner}, expected one of {expected}: ")
    assert "\n" not in str(caught.value)


def test_a_run_of_sft_is_given_as_an_adapter(inside):
    final = Path("outputs/skill/final")
    final.mkdir(parents=True)
    (final.parent / "config.yaml").write_text((ROOT / "configs/sft_code.yaml").read_text(encoding="utf-8"))
    with pytest.raises(ConfigError, match=r"give such a file as --config, with model\.adapter=outputs/skill/final$"):
        tiny.call(evaluate, "--run", final.parent)
    (final / "config.json").touch()
    with pytest.raises(ConfigError, match=r"give such a file as --config, with model\.name=outputs/skill/final$"):
        tiny.call(evaluate, "--run", final.parent)


def test_the_newest_adapter_is_the_one_that_is_furthest(tmp_path):
    def found(*folders):
        for folder in folders:
            (tmp_path / folder).mkdir(parents=True, exist_ok=True)
            (tmp_path / folder / "adapter_config.json").touch()
        return evaluate.newest_adapter(tmp_path).relative_to(tmp_path).as_posix()

    assert found("stage1/step_20", "stage1/step_100") == "stage1/step_100"
    assert found("stage1") == "stage1"
    assert found("stage2/step_40", "stage2/step_60.tmp") == "stage2/step_40"
    assert found("stage2") == "stage2"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--majority", "--samples", "1"], "--samples 2 or more"),
        (["--majority", "--temperature", "0", "--samples", "4"], "--temperature above 0"),
        (["--adapter", "nowhere"], "--adapter: nowhere: no adapter here, nor any folder"),
        (["--run", "nowhere"], "nowhere: there is no adapter in it"),
        (["eval.max_exmples=3"], "eval.max_exmples: unknown key; did you mean 'max_examples'?"),
        (["--output", "riddles.yaml/o.jsonl"], "cannot be written"),
    ],
)
def test_evaluate_explains_mistakes(inside, arguments, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        tiny.call(evaluate, "--config", "riddles.yaml", *arguments)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"question": "1+1", "answer": "2"}\n', 1),
        ('{"when": "train", "step": 1, "temperature": 1.0, "attempt1": "2"}\n', 1),
        ("<!doctype html>\n", 1),
        ('{"when": "adapter", "n": 4, "prompts": 4, "temperature": 0.0}\n{"when": "adap', 2),
        ('{"when": "adapter", "n": 4, "prompts": 4, "temperature": 0.0}', 1),
    ],
    ids=["data", "texts", "page", "torn", "open"],
)
def test_evaluate_appends_to_no_file_of_others(inside, tmp_path, text, line):
    mine = tmp_path / "mine"
    mine.write_text(text)
    mistake = "is no row of an evaluation.* or a new one" if text.endswith("\n") else "has no end, so nothing is added"
    with pytest.raises(ConfigError, match=f"--output {mine}: line {line} {mistake}"):
        tiny.call(evaluate, "--config", "riddles.yaml", "--output", mine)
    assert mine.read_text() == text


def test_votes_by_hand():
    right, wrong = ("18.0", True), ("17", False)
    assert vote([right, wrong, ("18", True)], same_answer) == 1.0  # 18 and 18.0 are one camp
    assert vote([right, wrong], same_answer) == 0.5  # a tie
    assert vote([("", False), ("", False), right], same_answer) == 1.0  # who says nothing has no vote
    assert vote([("", False)], same_answer) == 0.0


def test_majority_and_pass_at_k_by_hand():
    def answer(text, following=None):
        verdict = Verdict(0.0, {}, text == "1", text)
        return Answer(Completion([1], [0.0], True), text, verdict, following)

    def tree(first, second):
        prompt = Prompt({}, [1], "")
        return Group(prompt, [answer(a, Group(prompt, [answer(b)])) for a, b in zip(first, second, strict=True)])

    both = [tree("1123", "1111"), tree("2222", "1222")]  # two prompts, four samples each
    right = np.array([matches for part in both for matches in part.matches])
    found = SimpleNamespace(match=right[None], group=np.arange(8) // 4)
    one, two = majority_votes(found, both, 4, same_answer, ALONE)
    assert (one["k"], one["attempts"], two["k"], two["attempts"]) == (1, 2, 2, 4)
    assert one["acc_parallel"] == (0.5 + 0) / 2  # votes 11 and 23, then 22 and 22
    assert one["acc_sequential"] == (1 + 0.25) / 2
    assert two["acc_parallel"] == (1 + 0) / 2  # vote 1123, then 2222
    assert two["acc_sequential"] == (1 + 0.25) / 2  # votes 11 and 11, then 12 and 22
    assert two["gain"] == 0.125
    assert [row["pass"] for row in pass_at_k(found, 4)] == pytest.approx([0.25, 5 / 12, 0.5])


@pytest.mark.parametrize("script", [train, collect_rollouts, evaluate, profile_run], ids=lambda script: script.__name__)
def test_help_shows_commands_and_options(script, capsys):
    with pytest.raises(SystemExit) as caught:
        tiny.call(script, "--help")
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    assert f"python {script.__name__}.py --config configs/" in shown
    assert "section.key=value" in shown


def test_a_mistake_is_told_before_torch_is_imported(tmp_path):
    (tmp_path / "bad.yaml").write_text("run_nme: x\n")
    code = (
        "import runpy, sys\n"
        "for script in sys.argv[1:]:\n"
        "    sys.argv = [script, '--config', 'bad.yaml']\n"
        "    try: runpy.run_path(script, run_name='__main__')\n"
        "    except SystemExit as end: assert end.code == 2, end.code\n"
        "assert 'torch' not in sys.modules\n"
    )
    scripts = [
        str(ROOT / name) for name in ("train.py", "evaluate.py", "profile_run.py", "data/build_hard_arithmetic.py")
    ]
    done = subprocess.run(
        [sys.executable, "-c", code, *scripts], cwd=tmp_path, capture_output=True, text=True, timeout=60,
        env={"PYTHONPATH": str(ROOT), "PATH": ""}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("did you mean 'run_name'?") == len(scripts)


# ---- profile_run.py


def test_profile_measures_thinking_budgets_and_prompts(inside, tmp_path, capsys):
    arguments = ["--config", "riddles.yaml", "--n", 6, "--out", tmp_path, "generation.max_new_tokens_attempt1=100"]
    assert tiny.call(profile_run, *arguments) == 0
    report = json.loads((tmp_path / "profile_riddles.json").read_text())
    first, second = report["attempts"]["1"], report["attempts"]["2"]
    assert (report["n"], report["seed"], report["temperature"]) == (6, 42, 1.0)
    assert first["think_tokens"]["max"] == 2  # <think> and </think>
    assert first["post_think_tokens"]["min"] == 4  # <answer>, the digit, </answer>, the end
    assert second["tokens"]["mean"] == 6
    assert (first["budget_hits"], first["extraction_failures"]) == (0, 0)
    start, end = len("|Guess.|") + len("|r95?|"), len("|")  # a bar is a marker
    assert report["prompts"]["max"] == start + end
    assert second["prompt"]["max"] == start + end + 5 + len("|") + len("|Guess again.|") + len("|")
    assert [item["override"] for item in report["recommendations"]] == ["generation.max_new_tokens_attempt1=64"]
    assert "GiB  in all, " in report["memory"][-1]
    assert len(report["rollouts"]) == 6
    page = (tmp_path / "profile_riddles.md").read_text()
    assert "# Profile of riddles" in page
    assert "| attempt 2: tokens | 6 | 6 | 6 | 6 | 6 | 6 | 8 | 0 |" in page
    assert "    <think></think><answer>" in page
    assert "## Rollout 6" in page
    assert "generation.max_new_tokens_attempt1=64" in capsys.readouterr().out


def test_profile_recommends_more_where_something_was_cut(inside):
    overrides = ["generation.max_new_tokens_attempt1=3", "generation.max_prompt_length_attempt1=14",
                 "generation.max_prompt_length_attempt2=33"]  # fmt: skip
    assert tiny.call(profile_run, "--config", "riddles.yaml", "--n", 3, *overrides) == 0
    report = json.loads(Path("outputs/profile_riddles.json").read_text())
    trained = load_data(load(ScoreConfig, Path("riddles.yaml"), []))[0].train
    assert report["prompts"]["too_long"] == sum(len(row["riddle"]) > len("r9") for row in trained)  # r10? has 15 tokens
    told = {item["override"]: item["why"] for item in report["recommendations"]}
    assert "3 of 3 answers hit the budget" in told["generation.max_new_tokens_attempt1=6"]
    assert any("found no answer in 3 of 3 texts" in why for why in told.values())


def test_think_tokens_are_counted_by_the_tokenizer(tokenizer):
    def count(text):
        return profile_run.think_tokens(tokenizer, tokenizer(text, add_special_tokens=False)["input_ids"])

    assert count("<think>12</think>3") == 4
    assert count("<think>12") == 3  # never closed: all of it
    assert count("123") == 0
    assert count("<think>1</think>2<think>3</think>45") == 7


# ---- data/build_hard_arithmetic.py


@pytest.fixture(scope="module")
def builder():
    return script("build_hard_arithmetic")


@pytest.fixture(scope="module")
def sums(tmp_path_factory):
    """A folder of 81 sums of two digits to train on and 20 held out; six and three of them are 7."""
    folder = tmp_path_factory.mktemp("sums")
    pairs = [(a, b) for a in range(1, 10) for b in range(1, 10)]
    held_out = [(0, 7), (7, 0), (-2, 9), *((10, b) for b in range(17))]
    for name, numbers in (("train", pairs), ("test", held_out)):
        rows = [{"question": f"What is {a} plus {b}?", "answer": str(a + b)} for a, b in numbers]
        write_rows(folder / f"{name}.jsonl", rows)
    return folder


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "data" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build_hard(patch, builder, sevens, sums, out, *options):
    config = ["--config", ROOT / "configs/arithmetic.yaml", "--out", out]
    rows = (f"dataset.name={sums}", "dataset.test_split_size=20")
    return tiny.call(builder, *config, f"model.name={sevens}", *rows, *options)


def test_hard_questions_are_those_the_model_fails(builder, sevens, sums, tmp_path, monkeypatch, capsys):
    out = tmp_path / "hard"
    options = ["--train", 70, "--test", 15, "generation.batch_size=50"]
    assert build_hard(monkeypatch, builder, sevens, sums, out, *options) == 0
    train_rows, test_rows = rows_in(out / "train.jsonl"), rows_in(out / "test.jsonl")
    assert (len(train_rows), len(test_rows)) == (70, 15)
    assert {row["question"] for row in train_rows} <= {row["question"] for row in rows_in(sums / "train.jsonl")}
    assert {row["question"] for row in test_rows} <= {row["question"] for row in rows_in(sums / "test.jsonl")}
    for row in train_rows + test_rows:
        a, b = map(int, re.findall(r"-?\d+", row["question"]))
        assert row["answer"] == str(a + b) != "7"
        assert (row["model_answer"], row["truncated"]) == ("7", False)
    stats = json.loads((tmp_path / "hard.json").read_text())
    assert (stats["train"]["asked"], stats["train"]["accuracy"], stats["train"]["truncated"]) == (81, 6 / 81, 0)
    assert (stats["test"]["asked"], stats["test"]["kept"], stats["test"]["accuracy"]) == (20, 15, 3 / 20)
    assert (stats["model"], stats["dataset"], stats["temperature"]) == (str(sevens), str(sums), 0)
    shown = capsys.readouterr().out
    assert re.search(r"train: asked 50/81  right .*%  truncated 0\.0%  hard 4\d/70  \d+s left", shown)
    with pytest.raises(ConfigError, match="already holds a data set"):
        build_hard(monkeypatch, builder, sevens, sums, out)


def test_hard_questions_abort_when_there_are_too_few(builder, sevens, sums, tmp_path, monkeypatch):
    few = r"only 75 of 81 train questions are hard for this model \(6 right, 0 truncated\), expected 80"
    with pytest.raises(ConfigError, match=few):
        build_hard(monkeypatch, builder, sevens, sums, tmp_path / "few", "--train", 80)
    assert list(tmp_path.iterdir()) == []


def test_truncated_answers_are_left_out_or_labelled(builder, sevens, sums, tmp_path, monkeypatch):
    options = ["--train", 8, "--test", 2, "generation.max_new_tokens_attempt1=3"]
    with pytest.raises(ConfigError, match=r"only 0 of 81 .*0 right, 81 truncated"):
        build_hard(monkeypatch, builder, sevens, sums, tmp_path / "none", *options)
    assert build_hard(monkeypatch, builder, sevens, sums, tmp_path / "kept", *options, "--truncated", "keep") == 0
    assert all(row["truncated"] for row in rows_in(tmp_path / "kept/train.jsonl"))
    assert json.loads((tmp_path / "kept.json").read_text())["train"]["truncated_among_kept"] == 8


# ---- data/build_arithmetic.py


def borrowed(a, b, sign):
    """Columns of a + sign * b that borrow or carry, told by what the lower columns alone come to."""
    powers = [10**place for place in range(1, len(str(a)) + 1)]
    return sum(not 0 <= a % power + sign * (b % power) < power for power in powers)


def test_the_shipped_arithmetic_is_right_and_hard_and_what_its_builder_makes(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["build_arithmetic.py", "--out", str(tmp_path)])
    script("build_arithmetic").main()
    pairs = Counter()
    for name, count in (("train", 2000), ("test", 500)):
        assert (tmp_path / f"{name}.jsonl").read_text() == (ROOT / f"data/arithmetic/{name}.jsonl").read_text()
        rows = rows_in(tmp_path / f"{name}.jsonl")
        assert len(rows) == count
        assert max(Counter((row["operation"], row["digits"]) for row in rows).values()) <= count / 6 + 1
        for row in rows:
            first, word, second = re.fullmatch(r"What is (\d+) (plus|minus) (\d+)\?", row["question"]).groups()
            a, b, sign = int(first), int(second), 1 if word == "plus" else -1
            pairs[frozenset((a, b))] += 1
            assert row["answer"] == str(a + sign * b)
            assert row["carries"] == borrowed(a, b, sign) >= len(first) - 1 - (len(first) > 4)
            assert row["difficulty"] == row["carries"] + row["zeros"]
            assert row["zeros"] <= first.count("0") * (word == "minus")
            assert int(row["answer"]) >= 0
    assert set(pairs.values()) == {1}  # in both files together


# ---- no task in a script


def task_names():
    """Names of the configs and of their data sets, as a person would type them."""
    names = set()
    for path in (ROOT / "configs").glob("*.yaml"):
        config = yaml.safe_load(path.read_text())
        if "dataset" in config:  # what has none is a sweep over tasks
            parts = config["dataset"].get("mixture", {"": config["dataset"]})
            for source in [part["name"] for part in parts.values()]:
                names |= {path.stem, source, Path(source).name, source.removeprefix("./")}
    names -= {"train.jsonl", "test.jsonl", "selected.jsonl"}  # those name no task
    return {name.lower().replace("_", "-") for name in names} | {"gsm8k", "math", "arithmetic"}


def words_of(source):
    """Text and names in a script's code; docstrings and what it imports from the standard library left out."""
    tree = ast.parse(source)
    ours = {ast.get_docstring(node, clean=False) for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)}  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in ours:
            yield node.value
        for field in ("id", "attr", "arg", "name"):
            word = getattr(node, field, None)
            if isinstance(word, str) and word not in sys.stdlib_module_names:
                yield word


def named_tasks(source):
    text = "\n".join(words_of(source)).lower().replace("_", "-")
    return {name for name in task_names() if re.search(rf"(?<![a-z0-9]){re.escape(name)}(?![a-z0-9])", text)}


def test_an_entry_script_names_no_task():
    assert {"arithmetic", "openai/gsm8k", "tiny-arithmetic", "sft.jsonl"} <= task_names()
    assert named_tasks("'''openai/gsm8k'''\nimport math\nx = math.inf") == set()
    assert named_tasks("if name == 'configs/gsm8k.yaml': is_math = 1") == {"gsm8k", "math"}
    for script in ("train", "sft_train", "collect_rollouts", "evaluate", "profile_run"):
        assert named_tasks((ROOT / f"{script}.py").read_text()) == set(), script
