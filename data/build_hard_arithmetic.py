"""Builds arithmetic questions that a given model fails: each is asked once, greedily, and kept if the answer is wrong.

    python data/build_hard_arithmetic.py --config configs/arithmetic.yaml
    python data/build_hard_arithmetic.py --config configs/arithmetic.yaml --operation addition --digits 7 --pool 8000
    python data/build_hard_arithmetic.py --config configs/arithmetic.yaml --model PATH --out data/generated/mine

Model, prompt, format and token budget are the config's, because "hard" means hard for that model in that setting:
the result says nothing about another one. Questions are made up here; nothing but the model is downloaded. Answers that
ran out of tokens are neither right nor wrong: they are left out, or labelled with --truncated keep.

Written are OUT/train.jsonl and OUT/test.jsonl, which share no question, and OUT.json with accuracy and truncation.
"""

import argparse
import json
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # the repository: `python data/...` puts only data/ there

import reward_function  # noqa: F401  registers rewards and extractors, yours too
from lib.config import ScoreConfig, load, parser
from lib.errors import FINISHED, ConfigError, run_script

SYMBOLS = {"addition": ("plus", int.__add__), "subtraction": ("minus", int.__sub__),
           "multiplication": ("times", int.__mul__)}  # fmt: skip
FILES = ("train.jsonl", "test.jsonl")


def main() -> int:
    """Asks questions of the pool, batch by batch, until enough of them turned out hard; writes those."""
    args, config = command_line()
    from lib.console import Screen, duration  # torch comes after the config was found sound
    from lib.stats import wilson

    screen = Screen()
    pool = questions(args.operation, args.digits, args.pool, args.seed)
    ask = asker(config, screen.say)
    wanted, size, started = args.train + args.test, config.generation.batch_size or 256, time.monotonic()
    asked, right, truncated, hard = 0, 0, 0, []
    for start in range(0, len(pool), size):
        if len(hard) >= wanted:
            break
        for row, is_right in ask(pool[start : start + size]):
            asked += 1
            right += is_right
            truncated += row["truncated"]
            if not is_right and (args.truncated == "keep" or not row["truncated"]):
                hard.append(row)
        share = max(len(hard) / wanted, asked / len(pool))  # of the way to the first of the two ends
        left = (time.monotonic() - started) * max(0.0, 1 / share - 1)
        screen.say(
            f"asked {asked}/{len(pool)}  right {right / asked:.1%}  truncated {truncated / asked:.1%}"
            f"  hard {len(hard)}/{wanted}  {duration(left)} left"
        )
    if len(hard) < wanted:
        raise ConfigError(
            f"only {len(hard)} of {asked} questions are hard for '{config.model.name}' ({right} right, {truncated} "
            f"truncated), expected {wanted}: raise --pool, --digits or --max-new-tokens, or lower --train or --test"
        )
    hard = hard[:wanted]
    write(args.out / "test.jsonl", hard[: args.test])
    write(args.out / "train.jsonl", hard[args.test :])
    stats = {
        "about": "questions that this model fails in this setting; not hard in general",
        "model": config.model.name, "operation": args.operation, "digits": args.digits, "seed": args.seed,
        "temperature": 0.0, "max_new_tokens": config.generation.max_new_tokens_attempt1,
        "system": config.prompts.system, "format": config.reward.format,
        "asked": asked, "accuracy": right / asked, "accuracy_ci95": wilson(right, asked),
        "truncated": truncated / asked, "truncated_ci95": wilson(truncated, asked), "truncated_answers": args.truncated,
        "train": args.train, "test": args.test, "truncated_among_them": sum(row["truncated"] for row in hard),
    }  # fmt: skip
    beside = args.out.with_name(args.out.name + ".json")  # not in it: the folder holds splits
    beside.write_text(json.dumps(stats, indent=2) + "\n", encoding="utf-8")
    screen.say(f"{args.out}: {args.train} train and {args.test} test questions; statistics in {beside}")
    return FINISHED


def command_line() -> tuple[argparse.Namespace, ScoreConfig]:
    """The options, and the config with them applied. ConfigError for every mistake in them."""
    options = parser(__doc__, smoke=False)
    options.add_argument("--model", metavar="NAME", help="hub id or folder (default: the config's)")
    options.add_argument("--operation", choices=SYMBOLS, default="subtraction")
    options.add_argument("--digits", type=int, default=5, metavar="N", help="of both operands (default: 5)")
    options.add_argument("--pool", type=int, default=8000, metavar="N", help="ask at most these many (default: 8000)")
    options.add_argument("--train", type=int, default=1000, metavar="N", help="rows of train.jsonl (default: 1000)")
    options.add_argument("--test", type=int, default=200, metavar="N", help="rows of test.jsonl (default: 200)")
    options.add_argument("--seed", type=int, default=3407)
    options.add_argument("--batch-size", metavar="N", help="questions answered at once (default: the config's)")
    options.add_argument("--max-new-tokens", metavar="N", help="per answer (default: the config's for attempt 1)")
    options.add_argument("--truncated", choices=("exclude", "keep"), default="exclude", help="answers cut off")
    options.add_argument("--out", type=Path, metavar="DIR", help="default: the config's dataset.name, if ./...")
    args = options.parse_args()
    shorthands = {"model.name": args.model, "generation.batch_size": args.batch_size,
                  "generation.max_new_tokens_attempt1": args.max_new_tokens}  # fmt: skip
    args.overrides += [f"{key}={value}" for key, value in shorthands.items() if value is not None]
    for name in ("digits", "pool", "train", "test"):
        if getattr(args, name) < 1:
            raise ConfigError(f"--{name}: got {getattr(args, name)}, expected at least 1")
    if args.pool < args.train + args.test:
        raise ConfigError(f"--pool {args.pool} is less than --train {args.train} + --test {args.test}: raise it")
    config = load(ScoreConfig, args.config, args.overrides)
    if args.out is None and not config.dataset.name.startswith("./"):
        raise ConfigError(f"dataset.name: '{config.dataset.name}' is no path ./... of a folder: give --out DIR")
    args.out = args.out or Path(config.dataset.name)
    if any((args.out / name).exists() for name in FILES):
        raise ConfigError(f"{args.out} already holds a data set: remove it, or give another --out")
    return args, config


def questions(operation: str, digits: int, count: int, seed: int) -> list[dict]:
    """Up to `count` different questions with both operands of exactly `digits` digits."""
    word, compute = SYMBOLS[operation]
    low = 10 ** (digits - 1)
    span = 10**digits - low
    chosen = random.Random(seed).sample(range(span * span), min(count, span * span))
    pairs = [(low + number // span, low + number % span) for number in chosen]
    return [{"question": f"What is {a} {word} {b}?", "answer": str(compute(a, b))} for a, b in pairs]


def asker(config: ScoreConfig, say):
    """A function that asks the model, greedily: it returns each question with the answer, and whether that is right."""
    from lib.generators import Turn, native
    from lib.model import Policy, load_base, start_backend, stop_ids
    from lib.prompts import TwoTurnPrompts
    from lib.rewards import judge_of

    judge = judge_of(config.reward, ["question", "answer"])
    backend = start_backend(config.model)
    say(f"model {config.model.name} through {backend}")
    base, tokenizer = load_base(config.model, backend)
    policy = Policy(base, config.generation.temperature, backend)
    prompts = TwoTurnPrompts(tokenizer, config.prompts, config.generation, config.model.chat_template_kwargs)
    stops, budget = stop_ids(base, tokenizer), config.generation.max_new_tokens_attempt1

    def ask(rows: list[dict]) -> list[tuple[dict, bool]]:
        turns = {(i,): Turn(prompts.first(row), budget) for i, row in enumerate(rows)}
        columns = max(len(turn.ids) for turn in turns.values()) + budget
        decoding = native.Decoding(0.0, stops, tokenizer.pad_token_id, rows=len(rows), columns=columns)
        written = native.generate(policy, turns, decoding)
        answers = [written[i, 0] for i in range(len(rows))]
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        scores = judge([prompts.text(answer) for answer in answers], columns["answer"], columns, columns["question"])
        return [
            (row | {"model_answer": score.answer, "truncated": not answer.finished}, score.match)
            for row, score, answer in zip(rows, scores, answers, strict=True)
        ]

    return ask


def write(path: Path, rows: list[dict]) -> None:
    """One JSON object per line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


if __name__ == "__main__":
    run_script(main)
