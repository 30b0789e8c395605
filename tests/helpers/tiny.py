"""Shared by tests of whole runs: sums as data, configs for the tiny model, and scripts called from a test.

A run of such a config takes a second. `changed` gives a test other values.
"""

import contextlib
import itertools
import json
import re
import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from types import ModuleType

import pytest
import torch
import yaml

from data.builders import write_rows
from helpers.weights import move
from lib.core.config import ScoreConfig, SelfPlayConfig, load
from lib.core.errors import run_script
from lib.core.registry import Judged
from lib.play.gspo import GspoRun
from lib.rl.score import ScoreRun
from lib.rl.task import load_task

FILE = "tiny.yaml"
TABLE = (
    (Path(__file__).parents[2] / "docs/reading.md").read_text().partition("### The metrics")[2].partition("\n\n`")[0]
)
COLUMN = "".join(line.split("|")[1] for line in TABLE.splitlines() if line.startswith("|"))
KEYS = [re.sub("<.*>", ".+", key) for key in re.findall("`(.+?)`", COLUMN)]
PLACE = ["schema", "time", "stage", "step", "steps", "global_step"]  # when a row was written
METRIC = re.compile(f"({'|'.join(KEYS)})(_(attempt|check|reflection|turn)[0-9]+)?|{'|'.join(PLACE)}")
numbers = itertools.count()


def model(rank: int, length: int = 64, **more) -> dict:
    """A LoRA of this rank, and alpha twice that, on texts of at most `length` tokens."""
    return {"backend": "plain", "max_seq_length": length, "adapters": {"lora": {"r": rank, "alpha": 2 * rank}}, **more}


def limits(prompts: tuple[int, int], answers: tuple[int, int], **more) -> dict:
    """The most tokens of the prompts of attempts 1 and 2, and of the attempts."""
    return {
        "max_prompt_length_attempt1": prompts[0], "max_prompt_length_attempt2": prompts[1],
        "max_new_tokens_attempt1": answers[0], "max_new_tokens_attempt2": answers[1], **more,
    }  # fmt: skip


def stages(steps: tuple[int, int], batch: int, **more) -> dict:
    """The steps of stages I and II, with a batch size for both."""
    return {
        "stage1_steps": steps[0], "stage2_steps": steps[1], "stage1_batch_size": batch, "stage2_batch_size": batch,
        **more,
    }  # fmt: skip


SCORE = {
    "run_name": "tiny",
    "model": model(4, 128),
    "dataset": {"name": "rows.jsonl", "test_split_size": 6},
    "prompts": {"user": "{question}", "self_correction": "R"},
    "reward": {"fn": "helpers.tiny.share_of_digits", "accept_cut": True},
    "generation": limits(prompts=(8, 64), answers=(8, 6)),
    "optimizer": {"learning_rate": 1e-2},
    "train": stages((1, 1), 4, alpha=2.0, attempts_per_prompt=2, revisions_per_attempt=2),
    "eval": {"max_examples": 4},
}
SELFPLAY = SCORE | {
    "prompts": {"user": "{question}", "hinted": "{question} {hint}"},
    "reward": {"fn": "helpers.tiny.mostly_digits", "accept_cut": True},
    "generation": {"max_prompt_length": 8, "max_new_tokens": 8},
    "optimizer": {"learning_rate": 1e-4},
    "train": {"steps": 3, "batch_size": 4, "group_size": 4, "minibatches": 2},
    "eval": {"max_examples": 4, "temperature": 1.0, "samples_per_prompt": 2},
}


def share(text: str) -> float:
    return sum(map(str.isdigit, text)) / max(len(text), 1)


def share_of_digits(predictions: list[str]) -> list[float]:
    return [share(text) for text in predictions]


def mostly_digits(predictions: list[str]) -> list[Judged]:
    return [Judged({"digits": share(text)}, match=share(text) >= 0.4) for text in predictions]


def nothing(predictions: list[str]) -> list[float]:
    return [0.1] * len(predictions)


def changed(config: dict, changes: dict) -> dict:
    """The config with these values, each by its dotted name."""
    config = deepcopy(config)
    for name, value in changes.items():
        *sections, key = name.split(".")
        section = config
        for part in sections:
            section = section.setdefault(part, {})
        section[key] = value
    return config


# -- on disk


def sums(first: range = range(5), second: range = range(5)) -> list[dict]:
    return [{"question": f"{a}+{b}", "answer": str(a + b)} for a in first for b in second]


def write_task(folder: Path, config: dict, base: Path | None = None, rows: list | None = None, name: str = FILE):
    """Writes the config, with this base model, and its rows."""
    write_rows(folder / "rows.jsonl", rows or sums())
    (folder / name).write_text(yaml.safe_dump(changed(config, {"model.name": str(base)} if base else {})))


def folder(config: dict) -> Callable:
    """A fixture: the current folder is a new one, with this task for the tiny model."""

    @pytest.fixture
    def folder(tmp_path, monkeypatch, tiny_folder):
        monkeypatch.chdir(tmp_path)
        write_task(tmp_path, config, tiny_folder)
        return tmp_path

    return folder


def rows_in(path: str | Path) -> list[dict]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def logged(stream: str, run_name: str = "tiny") -> list[dict]:
    """The rows of a file of a run; docs/reading.md must explain each key of metrics.jsonl."""
    rows = rows_in(f"outputs/{run_name}/{stream}.jsonl")
    if stream == "metrics":
        lacking = {key for row in rows for key in row if not METRIC.fullmatch(key)}
        assert not lacking, f"docs/reading.md, The metrics, has no {sorted(lacking)}"
    return rows


# -- scripts and runs


def call(script: ModuleType, *arguments: object) -> int:
    """Runs main() of a script with these arguments; returns its exit code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [f"{script.__name__}.py", *map(str, arguments)])
        return script.main()


def ended(script: ModuleType, capsys, *arguments: object) -> tuple[int, str, str]:
    """The exit code of a script as the command line runs it, and what it printed to stdout and stderr."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as caught:
        patch.setattr(sys, "argv", [f"{script.__name__}.py", *map(str, arguments)])
        patch.setattr("lib.core.errors.end_anyway", lambda code: None)  # it would end the tests
        run_script(script.main)
    return caught.value.code, *capsys.readouterr()


def printed(script: ModuleType, capsys, *arguments: object) -> str:
    """The stdout of a script that ends well."""
    code, out, err = ended(script, capsys, *arguments)
    assert code == 0, err
    return out


def score_run(*overrides: str, moved: float = 0.0, **options) -> ScoreRun:
    """A run of tiny.yaml that has not been opened; `moved` takes the adapter away from its start."""
    run = ScoreRun(load_task(load(ScoreConfig, Path(FILE), list(overrides)), say=lambda text: None), **options)
    move(run.policy.trainable, moved)
    return run


@contextlib.contextmanager
def opened(*overrides: str, moved: float = 0.0) -> Iterator[GspoRun]:
    """An open run of self-play in a directory of its own."""
    config = load(SelfPlayConfig, Path(FILE), [f"run_name=run{next(numbers)}", *overrides])
    run = GspoRun(load_task(config, say=lambda text: None))
    move(run.policy.trainable, moved)
    with run.open():
        yield run


def play_step(run: GspoRun):
    """One step of self-play."""
    played = run.play()
    return run.update(played, run.credit(played, run.assist(played)))


def weights(run: ScoreRun | GspoRun) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten().clone() for parameter in run.policy.trainable])


def gradients(run: ScoreRun | GspoRun) -> torch.Tensor:
    return torch.cat([parameter.grad.flatten().clone() for parameter in run.policy.trainable])
