"""Builds four-digit subtractions for the tiny demo: noisy two-attempt chats to imitate, clean questions to learn from.

    python data/build_tiny_arithmetic.py --out data/generated/tiny-arithmetic --seed 0

`sft.jsonl` is a curriculum: first lessons without mistakes, which teach subtraction, then chats of two attempts in
which every digit is random with probability 0.12, on its own in each attempt. Who imitates them errs, and its second
attempt is no better than its first. (Chats alone would teach to copy before they teach to subtract.)
`train.jsonl` and `test.jsonl` are clean. Every result has four digits, and no question stands in two of the files.
"""

import argparse
import random
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # the repository: `python data/...` puts only data/ there

from data.builders import chat, options, write_rows


def main() -> None:
    """Writes sft.jsonl, train.jsonl and test.jsonl."""
    args = parse_arguments()
    rng = random.Random(args.seed)
    questions = distinct_questions(rng)
    write_rows(args.out / "test.jsonl", (clean_row(*next(questions)) for _ in range(args.test)))
    write_rows(args.out / "train.jsonl", (clean_row(*next(questions)) for _ in range(args.train)))
    lessons = [lesson(*next(questions)) for _ in range(args.lessons)]
    chats = [careless_chat(*next(questions), args.self_correction, args.noise, rng) for _ in range(args.chats)]
    write_rows(args.out / "sft.jsonl", lessons + chats)
    print(f"{args.out}: {len(lessons)} lessons, {len(chats)} chats, {args.train} train and {args.test} test questions")


def parse_arguments() -> argparse.Namespace:
    """Returns the options."""
    result = options(__doc__, "data/generated/tiny-arithmetic")
    result.add_argument("--lessons", type=int, default=16_000, help="first rows of sft.jsonl, without mistakes")
    result.add_argument("--chats", type=int, default=9_600, help="the other rows of sft.jsonl, with mistakes")
    result.add_argument("--train", type=int, default=8_000, help="rows of train.jsonl")
    result.add_argument("--test", type=int, default=4_000, help="rows of test.jsonl")
    result.add_argument("--noise", type=float, default=0.12, help="probability that a digit in a chat is random")
    result.add_argument("--self-correction", default="Correct any error.", help="text of the second user turn")
    return result.parse_args()


def distinct_questions(rng: random.Random) -> Iterator[tuple[str, str]]:
    """Yields question and answer, without end and without repetition: `("5821-3947", "1874")`."""
    seen = set()
    while True:
        result, subtrahend = rng.randint(1000, 8999), rng.randint(1000, 8999)
        question = f"{result + subtrahend}-{subtrahend}"
        if result + subtrahend <= 9999 and question not in seen:
            seen.add(question)
            yield question, str(result)


def clean_row(question: str, answer: str) -> dict:
    """Returns one row of train.jsonl and test.jsonl."""
    return {"question": question, "answer": answer}


def lesson(question: str, answer: str) -> dict:
    """Returns one of the first rows of sft.jsonl: one attempt, without a mistake."""
    return chat(question, attempt(answer))


def careless_chat(question: str, answer: str, self_correction: str, noise: float, rng: random.Random) -> dict:
    """Returns one of the later rows of sft.jsonl: two attempts, each with mistakes of its own."""
    first, second = (careless(attempt(answer), noise, rng) for _ in range(2))
    return chat(question, first, self_correction, second)


def attempt(answer: str) -> str:
    """Writes the digits as a draft and again, in one order: look-ups at a constant distance are easy to learn."""
    return f"<think>{answer}</think><answer>{answer}</answer>"


def careless(text: str, noise: float, rng: random.Random) -> str:
    """Returns the text with each digit replaced by a random one with probability `noise`."""
    return "".join(rng.choice("0123456789") if char.isdigit() and rng.random() < noise else char for char in text)


if __name__ == "__main__":
    main()
