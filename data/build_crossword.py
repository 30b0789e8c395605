"""Builds crossword clues from a list of words: plain definitions, and cryptic clues whose wordplay is checked by rule.

    python data/build_crossword.py                                  # data/crossword, as it is shipped
    python data/build_crossword.py --seed 1 --out data/generated/crossword

`data/crossword_words.tsv` has a word a line: answer, definition, and for some a wordplay and what it is made from. The
list is our own, and comes under the licence of Rematch. Each word gives a plain clue, and another by its wordplay:

    anagram     the source has the letters of the answer, in another order
    hidden      the answer stands in the source, across its words or within one
    reversal    the source is the answer, read from its end
    initials    the source's words begin with the letters of the answer

Rows have `question` (the clue with its enumeration), `answer`, `enumeration` and `kind`. `train.jsonl` and `test.jsonl`
share no answer.
"""

import argparse
import csv
import random
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # the repository: `python data/...` puts only data/ there

from data.builders import options, write_rows

WORDS = Path(__file__).with_name("crossword_words.tsv")
HOW = {
    "anagram": ("{definition}: {source}, mixed up", "{definition}: {source} in disarray",
                "{source}, scrambled: {definition}"),
    "hidden": ("{definition}: some of {source}", "{definition}, within {source}", "part of {source}: {definition}"),
    "reversal": ("{definition}: {source}, going back", "{source}, returned: {definition}"),
    "initials": ("{definition}: {source}, at first", "leaders of {source}: {definition}"),
}  # fmt: skip


def main() -> None:
    """Writes train.jsonl and test.jsonl."""
    args = command_line()
    dice = random.Random(args.seed)
    with open(WORDS, encoding="utf-8", newline="") as file:
        words = list(csv.DictReader(file, delimiter="\t", restval=""))
    held_out = {word["answer"] for word in dice.sample(words, round(len(words) * args.test))}
    rows = [(word["answer"] in held_out, row) for word in words for row in clues(word, dice)]
    dice.shuffle(rows)
    for name, wanted in (("train", False), ("test", True)):
        part = [row for is_held_out, row in rows if is_held_out is wanted]
        write_rows(args.out / f"{name}.jsonl", part)
        print(f"{args.out / name}.jsonl: {len(part)} clues")


def command_line() -> argparse.Namespace:
    """Returns the options."""
    result = options(__doc__, "data/crossword", seed=3407)
    result.add_argument("--test", type=float, default=0.3, metavar="SHARE", help="words held out (default: 0.3)")
    args = result.parse_args()
    if not 0 < args.test < 1:
        result.error(f"--test {args.test}: expected a share between 0 and 1, such as 0.3")
    return args


def clues(word: dict, dice: random.Random) -> list[dict]:
    """Returns the clues of a word: the plain one, and one by its wordplay."""
    answer, definition, kind, source = (word[key] for key in ("answer", "definition", "wordplay", "source"))
    rows = [row_of(answer, definition, "definition")]
    if kind:
        if not works(kind, answer, source):
            raise SystemExit(f"{WORDS}: '{source}' is no {kind} of '{answer}': correct the line")
        text = dice.choice(HOW[kind]).format(definition=definition[0].lower() + definition[1:], source=source)
        rows.append(row_of(answer, text[0].upper() + text[1:], kind))
    return rows


def row_of(answer: str, clue: str, kind: str) -> dict:
    """Returns a row of the files."""
    enumeration = re.sub("[a-z]+", lambda word: str(len(word[0])), answer).replace(" ", ",")
    return {"question": f"{clue} ({enumeration})", "answer": answer.upper(), "enumeration": enumeration, "kind": kind}


def works(kind: str, answer: str, source: str) -> bool:
    """True if the source gives the answer by this wordplay, without naming it."""
    wanted, given = ("".join(re.findall("[a-z]", text.lower())) for text in (answer, source))
    if answer in source.lower().split():
        return False
    if kind == "anagram":
        return sorted(wanted) == sorted(given) and wanted != given
    if kind == "reversal":
        return wanted == given[::-1] and wanted != given
    if kind == "initials":
        return wanted == "".join(part[0] for part in source.lower().split())
    return kind == "hidden" and wanted in given


if __name__ == "__main__":
    main()
