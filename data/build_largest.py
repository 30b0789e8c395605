"""Builds questions for the largest of a few numbers: nothing to imitate and no mistakes, so nothing is planted.

    python data/build_largest.py --out data/generated/largest --seed 0

A row is `{"question": "295, 496, 317, 188", "answer": "496"}`: numbers of three digits, four of them unless `--numbers`
says otherwise. A language model of 135 million parameters answers about one in three greedily. `train.jsonl` and
`test.jsonl` share no set of numbers.
"""

import argparse
import random
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # the repository: `python data/...` puts only data/ there

from data.builders import options, write_rows


def main() -> None:
    """Writes test.jsonl and train.jsonl."""
    args = parse_arguments()
    rows = distinct_rows(random.Random(args.seed), args.numbers)
    write_rows(args.out / "test.jsonl", islice(rows, args.test))
    write_rows(args.out / "train.jsonl", islice(rows, args.train))
    print(f"{args.out}: {args.train} train and {args.test} test questions")


def parse_arguments() -> argparse.Namespace:
    """Returns the options."""
    result = options(__doc__, "data/generated/largest")
    result.add_argument("--numbers", type=int, default=4, help="numbers of a question (default: 4)")
    result.add_argument("--train", type=int, default=4_000, help="rows of train.jsonl (default: 4000)")
    result.add_argument("--test", type=int, default=2_000, help="rows of test.jsonl (default: 2000)")
    return result.parse_args()


def distinct_rows(rng: random.Random, count: int) -> Iterator[dict]:
    """Yields rows of `count` numbers without end; no set of numbers comes twice."""
    seen = set()
    while True:
        drawn = rng.sample(range(100, 1000), count)
        if frozenset(drawn) not in seen:
            seen.add(frozenset(drawn))
            yield {"question": ", ".join(map(str, drawn)), "answer": str(max(drawn))}


if __name__ == "__main__":
    main()
