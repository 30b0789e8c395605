"""Keeps the questions that a given model fails: each is asked once, greedily, and kept if the answer is wrong.

    python data/build_hard_arithmetic.py --config configs/arithmetic.yaml
    python train.py --config configs/arithmetic.yaml dataset.name=data/generated/hard-arithmetic

    python data/build_arithmetic.py --train 20000 --digits 6 7 --out data/generated/long    # more questions
    python data/build_hard_arithmetic.py --config configs/arithmetic.yaml --out data/generated/hard-long \\
        dataset.name=data/generated/long

Questions are the rows of the config's data set, train rows for train.jsonl and held-out rows for test.jsonl; model,
prompt, format and token budget are the config's too, because "hard" means hard for that model in that setting: the
result says nothing about another one. Answers that ran out of tokens are neither right nor wrong: they are left out, or
labelled with --truncated keep. OUT.json has accuracy and truncation.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # the repository: `python data/...` puts only data/ there

import reward_function  # noqa: F401  registers rewards and extractors, yours too
from data.builders import write_rows
from lib.core.config import ScoreConfig, load, parser
from lib.core.errors import FINISHED, ConfigError, run_script

FILES = ("train.jsonl", "test.jsonl")
Ask = Callable[[list[dict]], Iterator[list[tuple[dict, bool]]]]


def main() -> int:
    """Asks the rows of each split, batch by batch, until enough of them prove hard; writes those."""
    args, config = command_line()
    from lib.core.console import Screen  # torch is imported once the config is valid
    from lib.rl.task import load_task

    screen = Screen()
    task = load_task(config, screen.say)
    find = partial(hard_ones, ask=ask_of(task), truncated=args.truncated, say=screen.say)
    train, train_stats = find("train", task.train, args.train)
    test, test_stats = find("test", task.selection + task.test, args.test)
    for name, rows in zip(FILES, (train, test), strict=True):
        write_rows(args.out / name, rows)
    stats = {
        "about": "questions that this model fails in this setting; not hard in general",
        "model": config.model.full_name, "dataset": config.dataset.name, "temperature": 0.0,
        "max_new_tokens": config.generation.max_new_tokens_attempt1, "system": config.prompts.system,
        "format": config.reward.format, "truncated_answers": args.truncated, "train": train_stats, "test": test_stats,
    }  # fmt: skip
    figures = args.out.with_name(args.out.name + ".json")  # not in it: the folder holds splits
    figures.write_text(json.dumps(stats, indent=2) + "\n", encoding="utf-8")
    screen.say(f"{args.out}: {len(train)} train and {len(test)} test questions; statistics in {figures}")
    return FINISHED


def command_line() -> tuple[argparse.Namespace, ScoreConfig]:
    """Returns the options, and the config with them applied. Raises ConfigError for any mistake."""
    options = parser(__doc__, smoke=False)
    options.add_argument("--train", type=int, default=200, metavar="N", help="rows of train.jsonl (default: 200)")
    options.add_argument("--test", type=int, default=50, metavar="N", help="rows of test.jsonl (default: 50)")
    options.add_argument("--truncated", choices=("exclude", "keep"), default="exclude", help="answers cut off")
    options.add_argument("--out", type=Path, metavar="DIR", default=Path("data/generated/hard-arithmetic"))
    args = options.parse_intermixed_args()  # overrides may stand anywhere
    for name in ("train", "test"):
        if getattr(args, name) < 1:
            raise ConfigError(f"--{name}: got {getattr(args, name)}, expected at least 1")
    config = load(ScoreConfig, args.config, ["dataset.max_train_rows=null", *args.overrides])
    if any((args.out / name).exists() for name in FILES):
        raise ConfigError(f"{args.out} already holds a data set: remove it, or give another --out")
    return args, config


def hard_ones(
    split: str, rows: list[dict], wanted: int, ask: Ask, truncated: str, say: Callable[[str], None]
) -> tuple[list[dict], dict]:
    """Returns the first `wanted` rows answered wrong, and figures of all asked. Raises ConfigError if too few are."""
    from lib.core.console import duration
    from lib.core.stats import wilson

    started, hard, answered, right, cut_off = time.monotonic(), [], 0, 0, 0
    for answers in ask(rows):
        for row, is_right in answers:
            right += is_right
            cut_off += row["truncated"]
            if not is_right and (truncated == "keep" or not row["truncated"]):
                hard.append(row)
        answered += len(answers)
        share = max(len(hard) / wanted, answered / len(rows))  # done, by whichever of the two ends comes first
        left = (time.monotonic() - started) * max(0.0, 1 / share - 1)
        say(
            f"{split}: asked {answered}/{len(rows)}  right {right / answered:.1%}  truncated {cut_off / answered:.1%}"
            f"  hard {len(hard)}/{wanted}  {duration(left)} left"
        )
        if len(hard) >= wanted:
            break
    if len(hard) < wanted:
        raise ConfigError(
            f"only {len(hard)} of {answered} {split} questions are hard for this model ({right} right, {cut_off} "
            f"truncated), expected {wanted}: give more questions (dataset.name), raise "
            f"generation.max_new_tokens_attempt1, or lower --{split}"
        )
    return hard[:wanted], {
        "asked": answered, "kept": wanted, "accuracy": right / answered, "accuracy_ci95": wilson(right, answered),
        "truncated": cut_off / answered, "truncated_ci95": wilson(cut_off, answered),
        "truncated_among_kept": sum(row["truncated"] for row in hard[:wanted]),
    }  # fmt: skip


def ask_of(task) -> Ask:
    """Returns a generator that asks the model greedily and yields batches of (row with answer, whether it is right)."""
    from engine import Decoding, Turn
    from lib.generators import native

    sampling = task.sampling(0.0)
    size, budget = task.config.generation.batch_size or 256, sampling.max_new_tokens[0]

    def ask(rows: list[dict]) -> Iterator[list[tuple[dict, bool]]]:
        for start in range(0, len(rows), size):
            batch = rows[start : start + size]
            turns = {(i,): Turn(task.prompt_ids(row), budget) for i, row in enumerate(batch)}
            width = max(len(turn.ids) for turn in turns.values()) + budget
            decoding = Decoding(0.0, sampling.stop_ids, sampling.pad_id, rows=len(batch), columns=width)
            written = native.generate(task.policy, turns, decoding)
            answers = [written[i, 0] for i in range(len(batch))]
            questions = [task.prompts.question(row) for row in batch]
            scores = task.judge([task.prompts.text(answer) for answer in answers], batch, questions)
            yield [
                (row | {"model_answer": score.answer, "truncated": not answer.finished}, score.match)
                for row, score, answer in zip(batch, scores, answers, strict=True)
            ]

    return ask


if __name__ == "__main__":
    run_script(main)
