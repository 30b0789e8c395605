"""The questions of data/self_check: as they are built, solved another way, in equal shares."""

import importlib.util
import json
import re
import sys
from collections import Counter
from datetime import datetime, timedelta
from functools import partial
from itertools import permutations
from pathlib import Path

import pytest
from conftest import fewer

from data import build_self_check

ROOT = Path(__file__).parents[2]
ROWS = [json.loads(line) for line in (ROOT / "data/self_check/test.jsonl").read_text().splitlines()]

needs_the_puzzles = pytest.mark.skipif(
    importlib.util.find_spec("reasoning_gym") is None, reason="optional: pip install -r requirements-tasks.txt"
)


@needs_the_puzzles
def test_the_shipped_files_are_built_byte_for_byte(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["build", "--out", str(tmp_path)])
    build_self_check.main()
    for name in ("train.jsonl", "test.jsonl"):
        assert (tmp_path / name).read_bytes() == (ROOT / "data/self_check" / name).read_bytes()


def test_sets_and_steps_have_equal_shares_of_any_first_rows():
    cells = Counter((row["task"], row["step"]) for row in ROWS)
    assert Counter(row["task"] for row in ROWS) == dict.fromkeys(("sums", "lists", "dates", "programs", "puzzles"), 200)
    assert len(cells) == 15 and set(cells.values()) == {66, 67}
    for most in (15, 60, 240):
        assert set(Counter((row["task"], row["step"]) for row in ROWS[:most]).values()) == {most // 15}
    train = [json.loads(line) for line in (ROOT / "data/self_check/train.jsonl").read_text().splitlines()]
    assert Counter((row["task"], row["step"]) for row in train) == dict.fromkeys(cells, 1)
    assert len({row["question"] for row in ROWS + train}) == 1015


def test_sums_carry_in_every_column():
    for row in ROWS:
        if row["task"] == "sums":
            numbers = re.findall(r"\d+", row["question"].partition("?")[0])
            assert sum(map(int, numbers)) == int(row["answer"])
            carry = 0
            for digits in zip(*(number[::-1] for number in numbers), strict=True):
                carry = (carry + sum(map(int, digits))) // 10
                assert carry


CONDITIONS = {
    r"are older than (\d+)": lambda age, person: int(person[1]) > int(age),
    r"do not live in (\w+)": lambda city, person: person[3] != city,
    r"are no (\w+)": lambda job, person: person[2] != job,
}


def test_lists_name_who_meets_every_condition():
    for row in ROWS:
        if row["task"] == "lists":
            people, question, _ = row["question"].split("\n\n")
            asked = [
                (test, found[1]) for pattern, test in CONDITIONS.items() if (found := re.search(pattern, question))
            ]
            assert len(asked) == row["step"]
            persons = [line.split(", ") for line in people.splitlines()]
            assert len({person[0] for person in persons}) == len(persons) == (8, 20, 60)[row["step"] - 1]
            met = [person[0] for person in persons if all(test(value, person) for test, value in asked)]
            assert row["answer"] == ", ".join(met) and len(met) > 1


def test_dates_are_counted_day_by_day():
    for row in ROWS:
        if row["task"] == "dates":
            start = datetime.strptime(re.search(r"\d+ [A-Z]\w+ \d{4}", row["question"])[0], "%d %B %Y")
            day, left = (
                start,
                int(re.search(r"(\d+) days after|date is day (\d+)", row["question"])[row["step"] // 3 + 1]),
            )
            while left:
                day += timedelta(1)
                left -= row["step"] < 3 or day.isoweekday() <= 5
            assert row["answer"] == f"{day:%Y-%m-%d}"


def test_programs_are_shipped_tasks_and_longer_ones_of_later_steps():
    tasks = {row["prompt"]: row for row in map(json.loads, (ROOT / "data/code_tasks.jsonl").read_text().splitlines())}
    lines = {1: [], 2: [], 3: []}
    for row in ROWS:
        if row["task"] == "programs":
            task = tasks[row["question"].rpartition("\n\n")[0]]
            assert row["answer"] == task["solution"] and row["tests"] == task["tests"] and row["stdio"] == task["stdio"]
            lines[row["step"]].append(task["solution"].count("\n"))
    assert max(lines[1]) <= min(lines[2]) and max(lines[2]) <= min(lines[3])


PLACES = "first", "second", "third", "fourth", "fifth"
RELATIONS = {  # between the houses of what a clue names first and second
    "next to each other": lambda one, two: abs(one - two) == 1,
    "directly left of": lambda one, two: two - one == 1,
    " is ": lambda one, two: one == two,
}


def named_in(clue, kinds):
    """The kinds and values that a clue names, in order; a first name may be a mother's or a child's."""
    values = {value: kind for kind, values in reversed(kinds.items()) for value in values}
    child = next((kind for kind in kinds if "child" in kind), None)
    found = re.finditer(rf"(named |mother of )?\b({'|'.join(sorted(values, key=len, reverse=True))})", clue)
    return [(child if match[1] else values[match[2]], match[2]) for match in found]


def solutions(kinds, clues, placed):
    """Yields every arrangement: the values of each kind in the order of the houses."""
    ready = ((test, named) for test, named in clues if all(kind in placed for kind, _ in named))
    if not all(test(*(placed[kind].index(value) for kind, value in named)) for test, named in ready):
        return
    if len(placed) == len(kinds):
        yield placed
        return
    decided = {new: sum(new in dict(named) and all(kind in (*placed, new) for kind, _ in named) for _, named in clues)
               for new in kinds if new not in placed}  # fmt: skip
    kind = max(decided, key=decided.__getitem__)
    for order in permutations(kinds[kind]):
        yield from solutions(kinds, clues, placed | {kind: order})


def test_a_puzzle_has_one_solution():
    for row in [row for row in ROWS if row["task"] == "puzzles"][:: fewer(1, 4)]:
        head, listed, asked, _ = row["question"].lower().split("\n\n")
        kinds = {
            kind: values.split(", ") for kind, _, values in (line.partition(": ") for line in head.splitlines()[1:])
        }
        clues = []
        for clue in listed.splitlines():
            test, named = next(test for words, test in RELATIONS.items() if words in clue), named_in(clue, kinds)
            if place := re.search(r"in the (\w+) house", clue):
                test = partial(lambda place, one: one == place, PLACES.index(place[1]))
            assert len(named) == (1 if place else 2)
            clues.append((test, named))
        arrangements = list(solutions(kinds, clues, {}))
        assert len(arrangements) == 1 and "house 1?" in asked
        assert arrangements[0][next(iter(kinds))][0] == row["answer"]


@needs_the_puzzles
def test_more_questions_than_there_are_programs_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["build", "--out", str(tmp_path), "--each", "600"])
    with pytest.raises(SystemExit, match="there are fewer programs of step 1"):
        build_self_check.main()
