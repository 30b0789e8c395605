"""Exports the rows and the rewards of a config to verl: its parquet files, and a reward function in its calling form.

    python data/to_verl.py --config configs/gsm8k.yaml --out outputs/verl-gsm8k

    python -m verl.trainer.main_ppo algorithm.adv_estimator=grpo \\
        data.train_files=outputs/verl-gsm8k/train.parquet \\
        data.val_files=outputs/verl-gsm8k/test.parquet \\
        reward.custom_reward_function.path=data/to_verl.py reward.custom_reward_function.name=compute_score \\
        +reward.custom_reward_function.reward_kwargs.config=outputs/verl-gsm8k/config.yaml

The keys are those of verl 0.9, which is not part of the tests.
The same rows are held out, prompts have the same messages, and every text is judged by the same code as here: format,
extractors, equality and sandbox included. What verl has no word for stays behind: second attempts, opponents, teachers
and curricula. A LoRA trained here is a folder of PEFT's, so verl can start from it; one trained there is given to
evaluate.py --adapter. Text goes to verl as its template and its decoder have it: where a model's tags are special
tokens, its `skip_special_tokens` removes them before a reward sees them, so use a format without such tags.
"""

import argparse
import functools
import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # verl loads this file by its path

import pyarrow as pa
import pyarrow.parquet
import yaml

import reward_function  # noqa: F401  registers rewards and extractors, yours too
from lib.core.config import RLConfig, ScoreConfig, SelfPlayConfig, load
from lib.core.errors import SandboxError, run_script
from lib.rewards.judge import Judge, prepare
from lib.rewards.routing import TASK, JudgeByTask
from lib.run.tracking import without_secrets

_lock = threading.Lock()  # verl may judge in several threads


def main() -> int:
    """Writes train.parquet, test.parquet, and the config, which the reward function reads."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument(
        "--config", required=True, type=Path, metavar="FILE", help="of train.py or rl_train_gspo_selfplay.py"
    )
    options.add_argument("--out", required=True, type=Path, metavar="DIR", help="the folder to write to")
    options.add_argument("overrides", nargs="*", metavar="section.key=value", help="replace values of the config")
    args = options.parse_args()
    config = load((SelfPlayConfig, ScoreConfig), args.config, args.overrides)
    from lib.rl.task import load_data  # torch is imported once the config is valid

    splits, judge = load_data(config)
    args.out.mkdir(parents=True, exist_ok=True)
    for split, rows in {"train": splits.train, "test": splits.test}.items():
        table = pa.Table.from_pylist(list(in_form_of_verl(rows, split, config, judge)))
        pyarrow.parquet.write_table(table, args.out / f"{split}.parquet")
    tree = without_secrets(config.model_dump(mode="json"))
    (args.out / "config.yaml").write_text(
        yaml.safe_dump(tree, sort_keys=False, allow_unicode=True, width=120), encoding="utf-8"
    )
    print(f"{args.out}: {len(splits.train)} rows to train on, {len(splits.test)} held out, and config.yaml")
    return 0


def in_form_of_verl(rows: list[dict], split: str, config: RLConfig, judge: Judge) -> Iterator[dict[str, Any]]:
    """Yields rows with verl's columns. `extra_info` has the whole row as JSON, since rewards may read any column."""
    for index, row in enumerate(rows):
        source = row.get(TASK) if config.reward.by_task else None
        target = row.get(config.dataset.target_field)
        yield {
            "data_source": str(source or config.dataset.name or config.run_name),
            "prompt": messages_of(row, config),
            "ability": str(source or config.run_name),
            "reward_model": {"style": "rule", "ground_truth": "" if target is None else judge.answer_of(row)},
            "extra_info": {"split": split, "index": index, "row": json.dumps(row, ensure_ascii=False, default=str)},
        }


def messages_of(row: dict[str, Any], config: RLConfig) -> list[dict[str, str]]:
    """Returns the messages of a row's first prompt."""
    from lib.rl.prompts import chat_of, filled
    from lib.text.templates import with_system

    if isinstance(config, SelfPlayConfig):
        chat = chat_of(row, config.prompts)
    else:
        user = {"role": "user", "content": filled(config.prompts.user, row, "prompts.user")}
        chat = with_system([user], config.prompts.system)
    return [{"role": message["role"], "content": message["content"]} for message in chat]


def compute_score(
    data_source: str, solution_str: str, ground_truth: str, extra_info: dict[str, Any], *, config: str, **_: Any
) -> dict[str, float]:
    """Judges one answer, as verl calls it: `score` is what is paid, `acc` whether it is right, the rest is told.

    `config` is the file that main() wrote. Raises SandboxError for a program without a verdict: a reward of 0 would be
    a lie.
    """
    row = json.loads(extra_info["row"])
    [verdict] = _judge_of(config, tuple(row))([solution_str], [row])
    if not verdict.scored:
        raise SandboxError(f"{data_source}, row {extra_info['index']}: no verdict; see `python -m judge --self-test`")
    return {
        "score": float(verdict.reward),
        "acc": float(verdict.match),
        "well_formed": float(verdict.well_formed),
    }


def _judge_of(path: str, columns: tuple[str, ...]) -> Judge:
    with _lock:
        return _built(path, columns)


@functools.lru_cache
def _built(path: str, columns: tuple[str, ...]) -> Judge:
    config = load((SelfPlayConfig, ScoreConfig), Path(path), [])
    prepare(config, say=lambda note: None)
    kind = JudgeByTask if config.reward.by_task else Judge
    return kind(config.reward, columns, config.dataset.target_field)


if __name__ == "__main__":
    run_script(main)
