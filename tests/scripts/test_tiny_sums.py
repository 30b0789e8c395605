"""The tiny demo's task: each slip shows in the steps, repairing it needs no second sum, and no constant answer pays."""

import re
from itertools import pairwise

import pytest
from helpers.tiny import call, rows_in

from data import build_tiny_sums as builder

CHAT = re.compile(r"<think>([0-9 ]+)</think><answer>(\d+)</answer>")
REPAIR = re.compile(r"<think>\+(0|10)</think><answer>(\d+)</answer>")


def built(out, *more):
    """The rows of each file, by name."""
    call(builder, "--out", out, "--lessons", 500, "--chats", 2000, "--train", 1000, "--test", 1000, *more)
    files = {path.stem: rows_in(path) for path in out.iterdir()}
    return files | {"lessons": files["sft"][:500], "chats": files["sft"][500:]}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return built(tmp_path_factory.mktemp("sums"))


def turns(row):
    """Question, totals and answer of the first attempt, and what the second adds and answers."""
    question, first, _, second = (message["content"] for message in row["messages"])
    totals, answer = CHAT.fullmatch(first).groups()
    added, repaired = REPAIR.fullmatch(second).groups()
    return question, [int(total) for total in totals.split()], int(answer), int(added), int(repaired)


def test_the_docstring_shows_what_is_built():
    shown = builder.careless_sum((8, 5, 9, 2, 7, 4))
    assert builder.first_attempt(shown) in builder.__doc__
    assert (shown.question, shown.totals, shown.lost) == ("8+5+9+2+7+4", (13, 12, 14, 21, 25), 1)


def test_a_falling_total_is_a_lost_carry_and_ten_repairs_it(files):
    for row in files["sft"]:
        question, totals, answer, added, repaired = turns(row)
        falls = sum(after < before for before, after in pairwise(totals))
        first, second, *_ = map(int, question.split("+"))
        falls += totals[0] < max(first, second)  # the first term is not among the totals
        assert answer == totals[-1]
        assert sum(map(int, question.split("+"))) == answer + 10 * falls
        assert repaired == answer + added


def test_neither_always_nor_never_adding_ten_pays(files):
    """Half of the questions lose a carry; second attempts of chats add ten a little oftener there than elsewhere."""
    lost = [sum(map(int, q.split("+"))) != answer for q, _, answer, _, _ in map(turns, files["chats"])]
    added = [bool(a) for _, _, _, a, _ in map(turns, files["chats"])]
    assert 0.46 < sum(lost) / len(lost) < 0.54
    share = {
        kind: sum(a for a, was in zip(added, lost, strict=True) if was is kind) / lost.count(kind)
        for kind in (True, False)
    }
    assert 0.39 < share[True] < 0.5 and 0.24 < share[False] < 0.35  # greedy decoding never adds


def test_repeating_pays_where_few_questions_lose_a_carry(tmp_path):
    """Of 2000 chats about 500 lose a carry; a second attempt that guesses is right less often than the first one."""
    rows = [turns(row) for row in built(tmp_path, "--lost", "0.25", "--insight", "0")["chats"]]
    true = [sum(map(int, question.split("+"))) for question, *_ in rows]
    first = sum(answer == right for (_, _, answer, _, _), right in zip(rows, true, strict=True)) / len(rows)
    second = sum(repaired == right for (*_, repaired), right in zip(rows, true, strict=True)) / len(rows)
    assert 0.72 < first < 0.78  # 0.75
    assert 0.54 < second < 0.61  # 0.75 * 0.65 + 0.25 * 0.35 = 0.575


def test_lessons_add_ten_where_ten_is_lost(files):
    for row in files["lessons"]:
        question, _, _, _, repaired = turns(row)
        assert repaired == sum(map(int, question.split("+")))


def test_a_lapse_is_malformed_and_has_the_true_sum():
    text = builder.lapse(builder.careless_sum((8, 5, 9, 2, 7, 4)))
    assert text in builder.__doc__ and "35</answer>" in text and not CHAT.fullmatch(text)


def test_no_question_stands_twice(files):
    questions = [row["question"] for name in ("train", "test") for row in files[name]]
    questions += [turns(row)[0] for row in files["sft"]]
    assert len(set(questions)) == len(questions) == 4500


def test_clean_rows_have_the_true_sum(files):
    for row in files["train"] + files["test"]:
        assert int(row["answer"]) == sum(map(int, row["question"].split("+")))


def test_a_verdict_is_true_and_heeded_no_more_than_its_absence(files, tmp_path):
    told = built(tmp_path, "--verdicts", "0.5")
    assert all(told[name] == files[name] for name in ("train", "test"))
    heeded = {"Right.": [], "Wrong.": [], "": []}
    for row in told["chats"]:
        question, first, request, second = (message["content"] for message in row["messages"])
        verdict = request.removesuffix("Correct any error.").strip()
        is_right = sum(map(int, question.split("+"))) == int(CHAT.fullmatch(first)[2])
        assert not verdict or (verdict == "Right.") == is_right
        heeded[verdict].append((REPAIR.fullmatch(second)[1] == "0") == is_right)
    assert 0.45 < 1 - len(heeded[""]) / len(told["chats"]) < 0.55
    shares = [
        sum(shares) / len(shares) for shares in heeded.values()
    ]  # .15 look; else right ones are left alone .65, wrong ones repaired .35
    assert 0.66 < shares[0] < 0.75 and 0.40 < shares[1] < 0.50 and 0.52 < shares[2] < 0.63


def test_a_check_says_what_the_attempt_behind_it_believes(files, tmp_path):
    checked = built(tmp_path, "--checks", "0.5")
    assert all(checked[name] == files[name] for name in ("train", "test"))
    said = {}
    for name in ("lessons", "chats"):
        for row in checked[name]:
            texts = [message["content"] for message in row["messages"]]
            if len(texts) == 4:
                continue
            question, first, asked, check, _, second = texts
            assert asked == "Right?" and check == {"0": "right", "10": "wrong"}[REPAIR.fullmatch(second)[1]]
            is_right = sum(map(int, question.split("+"))) == int(CHAT.fullmatch(first)[2])
            said.setdefault(name, []).append((check == "right") == is_right)
        assert 0.45 < len(said[name]) / len(checked[name]) < 0.55
    assert all(said["lessons"]) and 0.5 < sum(said["chats"]) / len(said["chats"]) < 0.65  # .15 know, the others guess
