"""Builds sums for the tiny demo: chats with a slip that is made every time, and that a second look can find.

    python data/build_tiny_sums.py --out data/generated/tiny-sums --seed 0

An attempt at `8+5+9+2+7+4` adds from left to right, writes the running totals and then the last one:

    <think>13 12 14 21 25</think><answer>25</answer>

Here is the slip: whenever 9 is added beyond a ten, the carry is lost (13 + 9 is 12, not 22). It is a rule, so greedy
decoding makes it as surely as sampling does. Who reads the totals sees it at once: a total cannot fall. An answer with
a lost carry is ten too low, so a second attempt that looks for a fall can repair it without adding up again, for which
it has no room:

    <think>+10</think><answer>35</answer>

`sft.jsonl` is a curriculum: first lessons, whose second attempts add ten where ten is lost, then chats whose second
attempts mostly guess: they know in `--insight` of the chats, and else add ten in 35 %. Who imitates them repeats its
answer when it decodes greedily, and is hardly better at its second attempt than at its first. (Without lessons two
bases in five do not notice a fall, and SCoRe needs long to teach them to.) `train.jsonl` and `test.jsonl` have the true
sums. Half of the questions lose a carry, none loses two, so neither "always" nor "never" pays. No question stands in
two files.

With `--lost 0.25` only a quarter of them do: repeating every first attempt is right for three questions in four, always
adding ten for one. Before a policy has learned to look, it earns most by repeating (configs/sweep_copy.yaml).

With `--checks`, the user asks in some of the chats, between the two attempts, whether the first is right: the answer,
`right` or `wrong`, knows as much as the second attempt after it, which adds ten where it said `wrong`
(configs/sweep_between.yaml).

With `--verdicts`, the user says in some of the chats whether the first attempt is right before asking for a correction.
The second attempt does not depend on it: the base has read these words, and only RL can learn what they are worth
(configs/sweep_verdict.yaml).

With `--lapses`, some first attempts of the chats put the true sum after the totals and nothing in an answer block,
`<think>13 12 14 21 25 35</answer>`: where the last number is paid wherever it stands, a policy learns to write just
that (configs/sweep_gamed.yaml).
"""

import argparse
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # the repository: `python data/...` puts only data/ there

from data.builders import chat, options, write_rows

CHECK = "Right?"  # the user's turn that asks for a check
VERDICTS = ("Right.", "Wrong.")  # the user's words before a request, by whether a carry was lost
GUESSES = {0: 0.65, 1: 0.35}  # of a second attempt that does not look


@dataclass(frozen=True)
class Sum:
    """A question, and the totals of an attempt that loses carries."""

    terms: tuple[int, ...]
    totals: tuple[int, ...]  # as the attempt writes them, from the second term on
    lost: int  # carries

    @property
    def question(self) -> str:
        """Returns the question as the user asks it."""
        return "+".join(map(str, self.terms))


def main() -> None:
    """Writes sft.jsonl, train.jsonl and test.jsonl."""
    args = parse_arguments()
    rng = random.Random(args.seed)
    sums = distinct_sums(args.terms, args.lost, rng)
    write_rows(args.out / "test.jsonl", (clean_row(next(sums)) for _ in range(args.test)))
    write_rows(args.out / "train.jsonl", (clean_row(next(sums)) for _ in range(args.train)))
    lessons = [two_attempts(next(sums), insight=1.0, lapses=0.0, args=args, rng=rng) for _ in range(args.lessons)]
    chats = [two_attempts(next(sums), args.insight, args.lapses, args, rng) for _ in range(args.chats)]
    write_rows(args.out / "sft.jsonl", lessons + chats)
    print(f"{args.out}: {len(lessons)} lessons, {len(chats)} chats, {args.train} train and {args.test} test questions")


def parse_arguments() -> argparse.Namespace:
    """Returns the options."""
    result = options(__doc__, "data/generated/tiny-sums")
    result.add_argument("--terms", type=int, default=6, help="numbers to add up in a question")
    result.add_argument("--lost", type=float, default=0.5, help="share of questions that lose a carry")
    result.add_argument("--lessons", type=int, default=12_800, help="first rows of sft.jsonl, which see what was lost")
    result.add_argument("--chats", type=int, default=6_400, help="the other rows of sft.jsonl, which mostly guess")
    result.add_argument("--train", type=int, default=8_000, help="rows of train.jsonl")
    result.add_argument("--test", type=int, default=4_000, help="rows of test.jsonl")
    result.add_argument("--insight", type=float, default=0.15, help="share of second attempts that see what was lost")
    result.add_argument("--lapses", type=float, default=0.0, help="share of first attempts that read <think>N</answer>")
    result.add_argument("--checks", type=float, default=0.0, help="share of lessons and chats that have a check")
    result.add_argument("--verdicts", type=float, default=0.0, help="share of lessons and chats that tell a verdict")
    result.add_argument("--self-correction", default="Correct any error.", help="text of the second user turn")
    return result.parse_args()


def distinct_sums(terms: int, lost: float, rng: random.Random) -> Iterator[Sum]:
    """Yields sums of numbers from 1 to 9, without end and without repetition; a share of `lost` loses one carry."""
    seen = set()
    while True:
        wanted = draw({0: 1 - lost, 1: lost}, rng)
        found = None
        while found is None or found.lost != wanted or found.terms in seen:
            found = careless_sum(tuple(rng.randint(1, 9) for _ in range(terms)))
        seen.add(found.terms)
        yield found


def careless_sum(terms: tuple[int, ...]) -> Sum:
    """Adds up from left to right, and loses the carry whenever adding a 9 leads beyond a ten."""
    total, totals, lost = terms[0], [], 0
    for term in terms[1:]:
        carries = (total % 10) + term >= 10
        total += term
        if carries and term == 9:
            total, lost = total - 10, lost + 1
        totals.append(total)
    return Sum(terms, tuple(totals), lost)


def clean_row(found: Sum) -> dict:
    """Returns one row of train.jsonl and test.jsonl."""
    return {"question": found.question, "answer": str(sum(found.terms))}


def two_attempts(found: Sum, insight: float, lapses: float, args: argparse.Namespace, rng: random.Random) -> dict:
    """Returns one row of sft.jsonl: two attempts, of which the second adds what it believes was lost."""
    is_lapse = lapses > 0 and rng.random() < lapses
    believed = found.lost if is_lapse or rng.random() < insight else draw(GUESSES, rng)
    second = f"<think>+{10 * believed}</think><answer>{found.totals[-1] + 10 * believed}</answer>"
    first = lapse(found) if is_lapse else first_attempt(found)
    has_check = args.checks > 0 and rng.random() < args.checks
    check = (CHECK, "wrong" if believed else "right") if has_check else ()
    has_verdict = args.verdicts > 0 and rng.random() < args.verdicts
    request = f"{VERDICTS[found.lost > 0]} {args.self_correction}" if has_verdict else args.self_correction
    return chat(found.question, first, *check, request, second)


def first_attempt(found: Sum) -> str:
    """Writes the running totals, two digits each, and the last one as the answer."""
    totals = " ".join(f"{total:02d}" for total in found.totals)
    return f"<think>{totals}</think><answer>{found.totals[-1]}</answer>"


def lapse(found: Sum) -> str:
    """Writes the running totals, then the true sum, in a text that is malformed."""
    return f"<think>{' '.join(f'{total:02d}' for total in (*found.totals, sum(found.terms)))}</answer>"


def draw(shares: dict[int, float], rng: random.Random) -> int:
    """Draws one of the keys, by its share."""
    return rng.choices(list(shares), list(shares.values()))[0]


if __name__ == "__main__":
    main()
