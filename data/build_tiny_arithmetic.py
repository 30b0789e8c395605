"""Builds four-digit subtractions for the tiny demo: noisy two-attempt chats to imitate, clean questions to learn from.

    python data/build_tiny_arithmetic.py --out data/generated/tiny-arithmetic --seed 0

Every result has four digits, so all rows have the same length. In `sft.jsonl` each digit that the assistant writes is
replaced by a random one with probability 0.1, on its own in each attempt: the imitator errs, and its second attempt is
no better than its first. `train.jsonl` and `test.jsonl` are clean. No question stands in two of the files.
"""

import argparse
import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path


def main() -> None:
    """Writes sft.jsonl, train.jsonl and test.jsonl."""
    args = parse_arguments()
    rng = random.Random(args.seed)
    questions = distinct_questions(rng)
    args.out.mkdir(parents=True, exist_ok=True)
    write(args.out / "test.jsonl", (clean_row(*next(questions)) for _ in range(args.test)))
    write(args.out / "train.jsonl", (clean_row(*next(questions)) for _ in range(args.train)))
    write(
        args.out / "sft.jsonl",
        (noisy_chat(*next(questions), args.self_correction, args.noise, rng) for _ in range(args.sft)),
    )
    print(f"{args.out}: {args.sft} chats, {args.train} train and {args.test} test questions, seed {args.seed}")


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    result = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    result.add_argument("--out", type=Path, default=Path("data/generated/tiny-arithmetic"), metavar="DIR")
    result.add_argument("--seed", type=int, default=0)
    result.add_argument("--sft", type=int, default=32_000, help="rows of sft.jsonl")
    result.add_argument("--train", type=int, default=20_000, help="rows of train.jsonl")
    result.add_argument("--test", type=int, default=4_000, help="rows of test.jsonl")
    result.add_argument("--noise", type=float, default=0.1, help="probability that a written digit is a random one")
    result.add_argument("--self-correction", default="Correct any error.", help="text of the second user turn")
    return result.parse_args()


def distinct_questions(rng: random.Random) -> Iterator[tuple[str, str]]:
    """Question and answer, without end and without repetition: `("5821-3947", "1874")`."""
    seen = set()
    while True:
        result, subtrahend = rng.randint(1000, 8999), rng.randint(1000, 8999)
        question = f"{result + subtrahend}-{subtrahend}"
        if result + subtrahend <= 9999 and question not in seen:
            seen.add(question)
            yield question, str(result)


def clean_row(question: str, answer: str) -> dict:
    """One row of train.jsonl and test.jsonl."""
    return {"question": question, "answer": answer}


def noisy_chat(question: str, answer: str, self_correction: str, noise: float, rng: random.Random) -> dict:
    """One row of sft.jsonl: question, attempt 1, instruction, attempt 2."""
    turns = [("user", question), ("assistant", noisy_attempt(answer, noise, rng))]
    turns += [("user", self_correction), ("assistant", noisy_attempt(answer, noise, rng))]
    return {"messages": [{"role": role, "content": content} for role, content in turns]}


def noisy_attempt(answer: str, noise: float, rng: random.Random) -> str:
    """Reversed digits first: borrows run from right to left, so the easy digit comes first."""
    text = f"<think>{answer[::-1]}</think><answer>{answer}</answer>"
    return "".join(rng.choice("0123456789") if char.isdigit() and rng.random() < noise else char for char in text)


def write(path: Path, rows: Iterable[dict]) -> None:
    """One JSON object per line."""
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


if __name__ == "__main__":
    main()
