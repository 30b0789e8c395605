"""Builds tasks for a tiny model that differ in how hard checking an answer is next to giving it; nothing is planted.

    python data/build_tiny_checks.py --task pair --out data/generated/tiny-checks --seed 0

`pair`, checking is far easier: `93172=12` asks which two of five digits add up to 12, in the order of the line: `93`.
Giving the answer is a search over ten pairs, checking it one addition.
`sort`, checking is a little easier: `3141592653` is `1123345569`. A check compares neighbors, and counts digits.
`largest`, the same: `41 73 22 98 65 17` is `98`. Who checks has to compare it with all the others.
`digit`, harder: `384615` is `2`, the last digit of its largest, its smallest and its first digit added up. Nothing in
an answer can be checked: who checks solves the question again, and compares.

`sft.jsonl` has right answers only: first `--lessons` chats of one answer, then `--chats` in which the user asks for a
correction and the right answer stands again. So no chat shows a wrong answer, a check or a correction. They teach to
repeat, though. With `--illegible 1` random letters stand where the first answer would, in all of these chats, and are
not trained: nothing can be repeated, and the model solves the question again.

With `--judged 64000` (`pair` alone) as many chats ask "Right?" after an answer, half of them right, and teach the
check: `93` to `93172=12` is `12 12 12 right`, its places in the line, its sum and the total; `37` is `24 10 12 wrong`.
There the chat ends, so none shows a correction. The letters of the other chats are followed by a check that finds them
wrong. With `--coin` chance decides between `right` and `wrong` in the judged chats: as many tokens, and no judgement.

`train.jsonl` and `test.jsonl` have questions to learn from. No question stands twice.
"""

import argparse
import random
import sys
from functools import partial
from itertools import combinations, islice
from operator import itemgetter
from pathlib import Path
from string import ascii_uppercase

sys.path.insert(0, str(Path(__file__).parents[1]))  # the repository: `python data/...` puts only data/ there

from data.builders import chat, distinct, options, write_rows

CHECK = "Right?"  # the user's turn that asks for a check
Question = tuple[str, str]  # and its answer


def main() -> None:
    """Writes sft.jsonl, train.jsonl and test.jsonl."""
    args = parse_arguments()
    drawn = iter(partial(TASKS[args.task], random.Random(args.seed)), None)  # without end
    questions = distinct(drawn, itemgetter(0))
    for name, count in (("test", args.test), ("train", args.train)):
        rows = [next(questions) for _ in range(count)]
        write_rows(args.out / f"{name}.jsonl", ({"question": text, "answer": answer} for text, answer in rows))
    rows = [chat(question, in_block(answer)) for question, answer in islice(questions, args.lessons)]
    rng = random.Random(f"illegible {args.seed}")
    for question, answer in islice(questions, args.chats):
        if rng.random() < args.illegible:
            letters = "".join(rng.choices(ascii_uppercase, k=len(answer)))
            check = (CHECK, f"{guess(rng)} wrong") if args.judged else ()
            prompt = chat(question, in_block(letters), *check, args.request)["messages"]
            rows.append({"prompt": prompt, "completion": in_block(answer)})
        else:
            rows.append(chat(question, in_block(answer), args.request, in_block(answer)))
    rng = random.Random(f"judged {args.seed}")
    for question, answer in islice(questions, args.judged):
        shown = answer if rng.random() < 0.5 else mistake(question, answer, rng)
        is_right = rng.random() < 0.5 if args.coin else shown == answer
        prompt = chat(question, in_block(shown), CHECK)["messages"]
        rows.append({"prompt": prompt, "completion": f"{worked(question, shown)} {'right' if is_right else 'wrong'}"})
    write_rows(args.out / "sft.jsonl", rows)
    print(f"{args.out}: {len(rows)} chats to imitate, {args.train} train and {args.test} test questions")


def parse_arguments() -> argparse.Namespace:
    """Returns the options."""
    result = options(__doc__, "data/generated/tiny-checks")
    result.add_argument("--task", choices=TASKS, required=True)
    result.add_argument("--lessons", type=int, default=6_000, help="first rows of sft.jsonl: one answer")
    result.add_argument("--chats", type=int, default=3_000, help="the other rows: a second answer upon request")
    result.add_argument("--illegible", type=float, default=0.0, help="share of them with letters as first answer")
    result.add_argument("--judged", type=int, default=0, help="more rows: an answer is judged, and not corrected")
    result.add_argument("--coin", action="store_true", help="a coin decides what these say")
    result.add_argument("--request", default="Correct any error.", help="text of the second user turn")
    result.add_argument("--train", type=int, default=4_000, help="rows of train.jsonl")
    result.add_argument("--test", type=int, default=1_000, help="rows of test.jsonl")
    args = result.parse_args()
    if args.judged and args.task != "pair":
        result.error("--judged: only answers of --task pair can be checked in writing")
    return args


def in_block(answer: str) -> str:
    """Returns the assistant's turn."""
    return f"<answer>{answer}</answer>"


def pair(rng: random.Random, count: int = 5) -> Question:
    """Which two of five digits add up to a total; one pair does."""
    while True:
        digits = rng.sample(range(1, 10), count)
        first, second = (digits[i] for i in sorted(rng.sample(range(count), 2)))
        if sum(first + second == a + b for a, b in combinations(digits, 2)) == 1:
            return f"{''.join(map(str, digits))}={first + second:02d}", f"{first}{second}"


def mistake(question: str, answer: str, rng: random.Random) -> str:
    """A wrong answer to `pair`: two digits of the line, a digit that is not there, or the wrong order."""
    line, total = question.split("=")
    while True:
        first = rng.randint(1, 9)
        pair = "".join(line[place] for place in sorted(rng.sample(range(len(line)), 2)))
        kinds = (pair, f"{first}{(int(total) - first) % 10}", f"{first}{rng.choice(line)}")
        (shown,) = rng.choices((*kinds, answer[::-1]), weights=(0.35, 0.25, 0.25, 0.15))
        if shown != answer:
            return shown


def worked(question: str, shown: str) -> str:
    """A check of an answer to `pair`: its places in the line (0: not there), its sum, and the total."""
    line, total = question.split("=")
    return f"{''.join(str(line.find(digit) + 1) for digit in shown)} {sum(map(int, shown)):02d} {total}"


def guess(rng: random.Random) -> str:
    """Random numbers in the form of `worked`, for what has no places and no sum."""
    return f"{rng.randint(0, 55):02d} {rng.randint(2, 18):02d} {rng.randint(2, 18):02d}"


def sort(rng: random.Random, count: int = 10) -> Question:
    """Ten digits in order."""
    digits = rng.choices("0123456789", k=count)
    return "".join(digits), "".join(sorted(digits))


def largest(rng: random.Random, count: int = 6) -> Question:
    """The largest of six numbers."""
    numbers = rng.sample(range(10, 100), count)
    return " ".join(map(str, numbers)), str(max(numbers))


def digit(rng: random.Random, count: int = 6) -> Question:
    """The last digit of the largest, the smallest and the first of six digits added up."""
    digits = rng.choices(range(10), k=count)
    return "".join(map(str, digits)), str((max(digits) + min(digits) + digits[0]) % 10)


TASKS = {"pair": pair, "sort": sort, "largest": largest, "digit": digit}

if __name__ == "__main__":
    main()
