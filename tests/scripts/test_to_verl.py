"""What verl reads and calls, as it does: the parquet files by their columns, the reward function loaded by its path."""

import importlib.util
import json
import os
import sys
from pathlib import Path

import pyarrow.parquet
import pytest
import yaml
from helpers import tiny

from data.builders import write_rows
from lib.core.config import ScoreConfig, SelfPlayConfig, load
from lib.core.errors import ConfigError
from lib.rl.task import load_data

ROOT = Path(__file__).parents[2]
CONFIG = {
    "run_name": "sums",
    "model": {"name": "nowhere", "max_seq_length": 64},
    "dataset": {"name": "rows.jsonl", "target_field": "solution", "test_split_size": 3},
    "prompts": {"system": "Think.", "user": "What is {sum}?", "self_correction": "again"},
    "reward": {"fn": {"exact_match": 1.0, "format_and_match": 0.5}, "format": "answer"},
    "generation": tiny.limits(prompts=(16, 40), answers=(4, 4)),
    "train": tiny.stages((1, 1), 2),
}
RIGHT = "<think>4+4</think> thus <answer>so 8</answer>"


@pytest.fixture
def to_verl(tmp_path, monkeypatch):
    """The file, loaded as verl loads a reward function; the current folder has data and a config."""
    monkeypatch.chdir(tmp_path)
    rows = [{"sum": f"{a}+{a}", "solution": f"so {2 * a}", "level": a} for a in range(9)]
    write_rows(Path("rows.jsonl"), rows)
    Path("c.yaml").write_text(yaml.safe_dump(CONFIG))
    spec = importlib.util.spec_from_file_location("custom_module", ROOT / "data/to_verl.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def export(*options):
        monkeypatch.setattr(sys, "argv", ["to_verl.py", *options])
        assert module.main() == 0

    module.export = export
    return module


def test_rows_have_verls_columns_and_the_same_are_held_out(to_verl, capsys):
    to_verl.export("--config", "c.yaml", "--out", "out")
    assert capsys.readouterr().out == "out: 6 rows to train on, 3 held out, and config.yaml\n"
    splits, _ = load_data(load(ScoreConfig, Path("c.yaml"), []))
    for split, rows in {"train": splits.train, "test": splits.test}.items():
        table = pyarrow.parquet.read_table(f"out/{split}.parquet").to_pylist()
        assert [json.loads(row["extra_info"]["row"]) for row in table] == rows
        assert [row["extra_info"]["index"] for row in table] == list(range(len(rows)))
        assert {row["extra_info"]["split"] for row in table} == {split}
        for row, own in zip(table, rows, strict=True):
            assert row["prompt"] == [
                {"role": "system", "content": "Think."},
                {"role": "user", "content": f"What is {own['sum']}?"},
            ]
            assert (row["data_source"], row["reward_model"]["style"]) == ("rows.jsonl", "rule")
            assert row["reward_model"]["ground_truth"] == own["solution"]


@pytest.mark.parametrize("text", [RIGHT, "so 8", RIGHT.replace("8", "9"), "<answer>so 8</answer>", "", "<answer>so 8"])
def test_a_text_is_judged_as_here(to_verl, text):
    to_verl.export("--config", "c.yaml", "--out", "out")
    _, judge = load_data(load(ScoreConfig, Path("c.yaml"), []))
    row = {"sum": "4+4", "solution": "so 8", "level": 4}
    told = {"split": "train", "index": 0, "row": json.dumps(row)}
    found = to_verl.compute_score(
        data_source="rows.jsonl", solution_str=text, ground_truth="so 8", extra_info=told, config="out/config.yaml"
    )
    [verdict] = judge([text], [row])
    assert found == {"score": verdict.reward, "acc": float(verdict.match), "well_formed": float(verdict.well_formed)}
    assert found["acc"] == (text == RIGHT)


def test_tasks_of_a_mixture_keep_their_own_rewards(to_verl):
    write_rows(Path("words.jsonl"), ({"sum": f"w{n}", "solution": f"x{n}"} for n in range(8)))
    tree = {key: value for key, value in CONFIG.items() if key not in ("dataset", "generation", "train", "prompts")}
    tree |= {
        "dataset": {"mixture": {"sums": {"name": "rows.jsonl"}, "words": {"name": "words.jsonl"}},
                    "target_field": "solution", "test_split_size": 4},
        "prompts": {"user": "{sum}"},
        "reward": {"by_task": {"sums": {"fn": "exact_match"}, "words": {"fn": "exact_match", "format": "boxed"}}},
        "generation": {"max_prompt_length": 16, "max_new_tokens": 8},
        "train": {"steps": 1, "batch_size": 2, "group_size": 2, "minibatches": 1},
    }  # fmt: skip
    Path("mixed.yaml").write_text(yaml.safe_dump(tree))
    assert load(SelfPlayConfig, Path("mixed.yaml"), [])
    to_verl.export("--config", "mixed.yaml", "--out", "mixed")
    table = pyarrow.parquet.read_table("mixed/train.parquet").to_pylist()
    assert {row["data_source"] for row in table} == {"sums", "words"}
    for row in table:
        right = row["reward_model"]["ground_truth"]
        for text in (right, rf"\boxed{{{right}}}"):
            called = {key: row[key] for key in ("data_source", "extra_info")}
            found = to_verl.compute_score(
                **called, solution_str=text, ground_truth=right, config=os.path.abspath("mixed/config.yaml")
            )
            assert found["acc"] == (row["data_source"] == "sums" or text.startswith("\\"))  # a free form finds both


def test_a_mistake_in_the_config_is_told(to_verl):
    with pytest.raises(ConfigError, match="rewarding"):
        to_verl.export("--config", "c.yaml", "--out", "out", "rewarding=1")
