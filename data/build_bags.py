"""Builds questions in words for a language model, and chats with a slip that is always made and can be found.

    python data/build_bags.py --out data/generated/bags --seed 0

    Lena packs a lamp, a red book and a green cup. What is in the bag?

Here is the slip: the first attempt names two things, and half of the questions have a third.

    In the bag there is <answer>a lamp and a red book</answer>

It is a rule, so greedy decoding makes it as surely as sampling does, and asking once more from the start does not help.
Who compares the answer with the question sees what is missing:

    I forgot a green cup, so <answer>a lamp, a red book and a green cup</answer>

`sft.jsonl` has chats of two attempts for a pretrained model: the first makes the slip, the second looks in `--insight`
of the chats, and else guesses: in 35 % it adds what the question names last, be it there already or not, in 65 % it
finds nothing. `train.jsonl` and `test.jsonl` have the true answers. Neither "always" nor "never" pays. No question
stands in two files.
"""

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # the repository: `python data/...` puts only data/ there

from data.builders import chat, options, write_rows

NAMES = ("Anna", "Ben", "Clara", "David", "Emma", "Felix", "Grace", "Hugo", "Ida", "Jonas", "Kate", "Lena", "Max",
         "Nora", "Oscar", "Paula", "Rosa", "Sam", "Tom", "Vera")  # fmt: skip
COLOURS = ("red", "green", "blue", "white", "black", "brown", "pink", "yellow")
WORDS = ("lamp", "book", "cup", "hat", "pen", "map", "key", "coat", "ball", "box", "shirt", "towel", "brush", "spoon",
         "knife", "watch", "ring", "scarf", "camera", "phone", "mirror", "candle", "bottle", "pillow")  # fmt: skip
NAMED = 2  # things in a first attempt, of two or three in the question
GUESSES = 0.35  # share of the second attempts that do not look and add the last thing


@dataclass(frozen=True)
class Bag:
    """A question: what somebody packs, each with its colour or without one."""

    name: str
    things: tuple[str, ...]

    @property
    def question(self) -> str:
        """Returns the question as the user asks it."""
        return f"{self.name} packs {listed(self.things)}. What is in the bag?"


def main() -> None:
    """Writes test.jsonl, train.jsonl and sft.jsonl."""
    args = command_line()
    rng = random.Random(args.seed)
    bags = distinct_bags(rng)
    write_rows(args.out / "test.jsonl", (clean_row(bag) for bag in islice(bags, args.test)))
    write_rows(args.out / "train.jsonl", (clean_row(bag) for bag in islice(bags, args.train)))
    write_rows(args.out / "sft.jsonl", (two_attempts(bag, args, rng) for bag in islice(bags, args.chats)))
    print(f"{args.out}: {args.chats} chats, {args.train} train and {args.test} test questions")


def command_line() -> argparse.Namespace:
    """Returns the options."""
    result = options(__doc__, "data/generated/bags")
    result.add_argument("--chats", type=int, default=400, help="rows of sft.jsonl (default: 400)")
    result.add_argument("--train", type=int, default=4000, help="rows of train.jsonl (default: 4000)")
    result.add_argument("--test", type=int, default=2000, help="rows of test.jsonl (default: 2000)")
    result.add_argument(
        "--insight", type=float, default=0.15, help="share of second attempts that look (default: 0.15)"
    )
    result.add_argument("--self-correction", default="Did you forget anything?", help="text of the second user turn")
    return result.parse_args()


def distinct_bags(rng: random.Random) -> Iterator[Bag]:
    """Yields questions without end and without repetition; every other one has a third thing."""
    seen, more = set(), 1
    while True:
        things = [thing(word, rng) for word in rng.sample(WORDS, NAMED + more)]
        bag = Bag(rng.choice(NAMES), tuple(things))
        if bag not in seen:
            seen.add(bag)
            more = 1 - more
            yield bag


def thing(word: str, rng: random.Random) -> str:
    """Returns `a cup`, or `a green cup`."""
    return f"a {rng.choice(COLOURS)} {word}" if rng.random() < 0.5 else f"a {word}"


def clean_row(bag: Bag) -> dict:
    """Returns one row of train.jsonl and test.jsonl."""
    return {"question": bag.question, "answer": listed(bag.things)}


def two_attempts(bag: Bag, args: argparse.Namespace, rng: random.Random) -> dict:
    """Returns one row of sft.jsonl: a first attempt with the slip, and a second that looks or guesses."""
    found, missing = list(bag.things[:NAMED]), len(bag.things) > NAMED
    adds = missing if rng.random() < args.insight else rng.random() < GUESSES
    first = f"In the bag there is <answer>{listed(found)}</answer>"
    forgotten = bag.things[-1] if adds else "nothing"
    second = f"I forgot {forgotten}, so <answer>{listed(found + [forgotten] * adds)}</answer>"
    return chat(bag.question, first, args.self_correction, second)


def listed(things: Sequence[str]) -> str:
    """Joins things as in `a lamp, a red book and a green cup`."""
    *before, last = things
    return f"{', '.join(before)} and {last}" if before else last


if __name__ == "__main__":
    main()
