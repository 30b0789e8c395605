"""Which of reasoning-gym's tasks a small model can start on: what it gets right before any training.

    python benchmarks/generated_tasks.py --model data/generated/smollm2 --dtype bfloat16

RL learns from prompts whose answers differ, so a task can be started on where some sampled answers are right and some
are not. Of every task some questions are asked as they are, after `--shots` other questions with their answers as
earlier turns, and several answers sampled at temperature 1. Right is what the task's own scorer pays in full, of the
whole text. Tasks whose prompts are longer than `--limit` tokens are named and left out.
"""

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from lib.core.errors import ConfigError, let_threads_wait

let_threads_wait()

from engine import Decoding, Turn
from lib.core.config import Model, positive
from lib.generators.native import generate
from lib.model.loading import load_base, start_backend
from lib.model.policy import Policy, stop_ids
from lib.text.generated import generated_score, generated_splits, scorer_problem, task_names


@dataclass(frozen=True)
class Found:
    """What was measured on one task."""

    name: str
    tokens: float  # of a prompt, the mean
    right: float  # share of answers
    mixed: float  # share of questions with right and wrong answers
    any_right: float  # share of questions


def main() -> None:
    """Asks the questions of every task, and prints a table."""
    args = parse_arguments()
    config = Model(name=args.model, dtype=args.dtype, backend="plain")
    start_backend(config)
    model, tokenizer = load_base(config, "plain")
    policy = Policy(model.requires_grad_(False), 1.0)
    started, found, left_out = time.monotonic(), [], {}
    for name in task_names():
        try:
            found.append(measured(name, policy, tokenizer, args))
            print(f"{name}: {found[-1].right:.3f} right, {time.monotonic() - started:.0f} s", file=sys.stderr)
        except (ConfigError, ValueError) as error:
            left_out[name] = str(error)
            print(f"{name}: left out: {error}", file=sys.stderr)
    print("| task | tokens of a prompt | answers right | questions with right and wrong answers | with a right one |")
    print("|---|---|---|---|---|")
    for each in sorted(found, key=lambda one: (-one.mixed, -one.right)):
        print(f"| {each.name} | {each.tokens:.0f} | {each.right:.3f} | {each.mixed:.2f} | {each.any_right:.2f} |")
    print("\n" + "\n".join(f"- {name}: {reason}" for name, reason in left_out.items()))


def parse_arguments() -> argparse.Namespace:
    """Returns the options."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--model", required=True, metavar="NAME", help="folder or Hub id")
    options.add_argument("--dtype", default="auto", choices=("auto", "float32", "bfloat16"))
    options.add_argument("--questions", type=positive, default=8, metavar="N", help="of each task (default: 8)")
    options.add_argument("--samples", type=positive, default=8, metavar="N", help="answers to each (default: 8)")
    options.add_argument("--shots", type=int, default=2, metavar="N", help="answered questions before it (default: 2)")
    options.add_argument("--new-tokens", type=positive, default=48, metavar="N", help="of an answer (default: 48)")
    options.add_argument("--limit", type=positive, default=768, metavar="N", help="tokens of a prompt (default: 768)")
    return options.parse_args()


def measured(name: str, policy: Policy, tokenizer: Any, args: argparse.Namespace) -> Found:
    """Samples and scores answers to questions of one task. Raises ConfigError or ValueError where that cannot be."""
    splits = generated_splits(f"reasoning_gym:{name}", {"size": max(1, args.shots)}, args.questions)
    rows, shots = splits["test"], splits["train"][: args.shots]
    if problem := scorer_problem(rows):
        raise ValueError(problem)
    before = [turn for shot in shots for turn in said(shot["question"], shot["answer"])]
    prompts = [
        tokenizer.apply_chat_template([*before, *said(row["question"])], add_generation_prompt=True)["input_ids"]
        for row in rows
    ]
    longest = max(map(len, prompts))
    if longest > args.limit:
        raise ValueError(f"a prompt of {longest} tokens")
    decoding = Decoding(
        1.0, stop_ids(policy.language_model, tokenizer), tokenizer.pad_token_id, rows=128,
        columns=longest + args.new_tokens,
    )  # fmt: skip
    turns = {(index,): Turn(ids, args.new_tokens, args.samples) for index, ids in enumerate(prompts)}
    answers = generate(policy, turns, decoding)
    right = [[] for _ in rows]
    for path, answer in answers.items():
        text = tokenizer.decode(answer.ids, skip_special_tokens=True).strip()
        right[path[0]].append(bool(text) and generated_score(rows[path[0]]["entry"], text) == 1)
    mixed = fmean(any(each) and not all(each) for each in right)
    every = [one for each in right for one in each]
    return Found(name, fmean(map(len, prompts)), fmean(every), mixed, fmean(map(any, right)))


def said(question: str, answer: str | None = None) -> list[dict[str, str]]:
    """Returns a question as a turn, and its answer as the next."""
    turns = [{"role": "user", "content": question}]
    return turns if answer is None else [*turns, {"role": "assistant", "content": answer}]


if __name__ == "__main__":
    main()
