"""The questions of data/self_check: as they are built, solved another way, in equal shares."""

import json
import re
import sys
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from data import build_self_check

ROOT = Path(__file__).parents[2]
ROWS = [json.loads(line) for line in (ROOT / "data/self_check/test.jsonl").read_text().splitlines()]


def test_the_shipped_files_are_built_byte_for_byte(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["build", "--out", str(tmp_path)])
    build_self_check.main()
    for name in ("train.jsonl", "test.jsonl"):
        assert (tmp_path / name).read_bytes() == (ROOT / "data/self_check" / name).read_bytes()


def test_sets_and_steps_have_equal_shares_of_any_first_rows():
    cells = Counter((row["task"], row["step"]) for row in ROWS)
    assert Counter(row["task"] for row in ROWS) == dict.fromkeys(("sums", "lists", "dates", "programs"), 200)
    assert len(cells) == 12 and set(cells.values()) == {66, 67}
    for most in (12, 60, 240):
        assert set(Counter((row["task"], row["step"]) for row in ROWS[:most]).values()) == {most // 12}
    train = [json.loads(line) for line in (ROOT / "data/self_check/train.jsonl").read_text().splitlines()]
    assert Counter((row["task"], row["step"]) for row in train) == dict.fromkeys(cells, 1)
    assert len({row["question"] for row in ROWS + train}) == 812


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


def test_more_questions_than_there_are_programs_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["build", "--out", str(tmp_path), "--each", "600"])
    with pytest.raises(SystemExit, match="there are fewer programs of step 1"):
        build_self_check.main()
