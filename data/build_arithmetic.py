"""Builds subtractions and additions that are hard by construction: a borrow or carry in nearly every column, zeros too.

    python data/build_arithmetic.py                                        # data/arithmetic, as it is shipped
    python data/build_arithmetic.py --train 20000 --out data/generated/arithmetic --seed 1
    python data/build_arithmetic.py --operations addition --digits 6 7 8 --out data/generated/long

Each row has the question, the answer and what makes it hard: `digits` of the first number, `carries` (columns that
borrow or carry), `zeros` (borrows that have to pass a zero) and `difficulty`, the sum of the last two. Every number of
digits and every operation has as many rows as the others. `train.jsonl` and `test.jsonl` share no pair of numbers.
"""

import argparse
import random
import sys
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # the repository: `python data/...` puts only data/ there

from data.builders import options, write_rows

OPERATIONS = ("subtraction", "addition")


def main() -> None:
    """Writes test.jsonl, then train.jsonl: a larger --train leaves the test rows unchanged."""
    args = command_line()
    rows = questions(args.operations, args.digits, random.Random(args.seed))
    for name, count in (("test", args.test), ("train", args.train)):
        write_rows(args.out / f"{name}.jsonl", islice(rows, count))
    print(f"{args.out}: {args.train} train and {args.test} test questions")


def command_line() -> argparse.Namespace:
    """Returns the options."""
    result = options(__doc__, "data/arithmetic", seed=3407)
    result.add_argument("--train", type=int, default=2000, metavar="N", help="rows of train.jsonl (default: 2000)")
    result.add_argument("--test", type=int, default=500, metavar="N", help="rows of test.jsonl (default: 500)")
    result.add_argument("--digits", type=int, nargs="+", default=[3, 4, 5], metavar="N", help="default: 3 4 5")
    result.add_argument("--operations", nargs="+", choices=OPERATIONS, default=OPERATIONS, help="default: both")
    args = result.parse_args()
    if min(args.digits) < 3:
        result.error(f"--digits {min(args.digits)}: shorter numbers have too few columns to be hard; give 3 or more")
    return args


def questions(operations: list[str], digits: list[int], rng: random.Random) -> Iterator[dict]:
    """Yields rows without end, no pair of numbers twice; operations and lengths take turns."""
    seen = set()
    for length, operation in cycle([(length, operation) for length in digits for operation in operations]):
        while True:
            row = draw(operation, length, rng)
            pair = frozenset((row["first"], row["second"]))
            if row["carries"] >= length - 1 - (length > 4) and pair not in seen:  # all columns that can, or all but one
                break
        seen.add(pair)
        yield asked(row)


def draw(operation: str, length: int, rng: random.Random) -> dict:
    """Draws two numbers digit by digit; digits that force a borrow or carry come more often than by chance."""
    small, large = ("0", "0", *"01234"), tuple("56789")
    first_of, second_of = (small, large) if operation == "subtraction" else (large, large)
    first = rng.choice("23456789") + "".join(rng.choice(first_of) for _ in range(length - 1))
    second = rng.choice("0123456789"[: int(first[0])] if operation == "subtraction" else "0123456789")
    second += "".join(rng.choice(second_of) for _ in range(length - 1))
    sign = -1 if operation == "subtraction" else 1
    carries, zeros = columns(first, second, sign)
    return {"first": int(first), "second": int(second), "sign": sign, "carries": carries, "zeros": zeros}


def columns(first: str, second: str, sign: int) -> tuple[int, int]:
    """Counts the columns that borrow or carry, and those that borrow because of a zero that had to borrow itself."""
    carry = carries = zeros = 0
    for a, b in zip(reversed(first), reversed(second), strict=True):
        zeros += sign < 0 and carry == 1 and a == "0"
        total = int(a) + sign * (int(b) + carry)
        carry = int(not 0 <= total <= 9)
        carries += carry
    return carries, zeros


def asked(drawn: dict) -> dict:
    """Returns a row of the files."""
    first, second, sign = drawn["first"], drawn["second"], drawn["sign"]
    return {
        "question": f"What is {first} {'minus' if sign < 0 else 'plus'} {second}?",
        "answer": str(first + sign * second),
        "operation": OPERATIONS[sign > 0],
        "digits": len(str(first)),
        "carries": drawn["carries"],
        "zeros": drawn["zeros"],
        "difficulty": drawn["carries"] + drawn["zeros"],
    }


if __name__ == "__main__":
    main()
