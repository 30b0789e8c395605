"""The task in words: the slip is always made, a second look at the question finds it, and no constant answer pays."""

import re

import pytest
from helpers.tiny import call, rows_in

from data import build_bags as builder

QUESTION = re.compile(r"\w+ packs (.+)\. What is in the bag\?")
FIRST = re.compile(r"In the bag there is <answer>(.+)</answer>")
SECOND = re.compile(r"I forgot (.+), so <answer>(.+)</answer>")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The rows of each file, by name."""
    out = tmp_path_factory.mktemp("bags")
    call(builder, "--out", out, "--chats", 2000, "--train", 1000, "--test", 1000)
    return {path.stem: rows_in(path) for path in out.iterdir()}


def split(text):
    return re.split(r", | and ", text)


def turns(row):
    """The things of the question, of the first attempt, what was forgotten, and the things of the second attempt."""
    question, first, _, second = (message["content"] for message in row["messages"])
    forgotten, repaired = SECOND.fullmatch(second).groups()
    return split(QUESTION.fullmatch(question)[1]), split(FIRST.fullmatch(first)[1]), forgotten, split(repaired)


def test_the_docstring_shows_what_is_built():
    shown = builder.Bag("Lena", ("a lamp", "a red book", "a green cup"))
    assert shown.question in builder.__doc__
    assert f"In the bag there is <answer>{builder.listed(shown.things[: builder.NAMED])}</answer>" in builder.__doc__
    assert f"so <answer>{builder.listed(shown.things)}</answer>" in builder.__doc__


def test_a_first_attempt_names_two_things_of_two_or_three(files):
    for things, named, *_ in map(turns, files["sft"]):
        assert len(things) in (2, 3) and named == things[:2]
        assert len({thing.split()[-1] for thing in things}) == len(things)


def test_a_second_attempt_adds_what_it_says_and_neither_always_nor_never_pays(files):
    added = {True: [], False: []}
    for things, named, forgotten, repaired in map(turns, files["sft"]):
        adds = forgotten != "nothing"
        assert repaired == named + [things[-1]] * adds and forgotten in ("nothing", things[-1])
        added[named != things].append(adds)
    assert len(added[True]) == len(added[False])
    share = {missing: sum(values) / len(values) for missing, values in added.items()}
    assert 0.38 < share[True] < 0.52 and 0.24 < share[False] < 0.36  # greedy decoding never adds


def test_answers_are_right_and_no_question_stands_twice(files):
    rows = files["train"] + files["test"]
    assert all(QUESTION.fullmatch(row["question"])[1] == row["answer"] for row in rows)
    questions = [row["question"] for row in rows] + [row["messages"][0]["content"] for row in files["sft"]]
    assert len(set(questions)) == len(questions) == 4000
