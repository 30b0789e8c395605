"""More attempts than two: where a chat stops, what then stands, and what it is worth at equal samples."""

from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
from accelerate import Accelerator
from helpers.tiny import logged, printed, rows_in
from test_feedback import folder as folder

import evaluate
import report
import train
from engine import Completion
from judge.parsing import same_answer
from lib.rewards.judge import Verdict
from lib.rl.evaluation import answers_of, summarise
from lib.rl.prompts import Prompt
from lib.rl.sequential import majority_votes, success_at_k
from lib.rl.tree import Answer, Group

ALONE = Accelerator()
STOPPING = ("prompts.stop=verdict", "train.attempts=3", "eval.attempts=4", "prompts.feedback=none")


def tree(*chats, question=0):
    """A tree of chats, each a text of answers; "1" is right, and no chat goes on behind it."""

    def group(ends):
        prompt = Prompt({}, [question], "")
        return Group(prompt, [answer(text, rest) for text, rest in ends])

    def answer(text, rest):
        following = group([(rest[0], rest[1:])]) if rest else None
        return Answer(Completion([1, 2], [0.0, 0.0], True), text, Verdict(0.0, {}, text == "1", text), following)

    return group([(chat[0], chat[1:]) for chat in chats])


TREES = [tree("1", "221", "231", "3", question=0), tree("234", "1", "24", "222", question=1)]


def test_what_stands_where_a_chat_stopped():
    answers = answers_of(TREES, ALONE, attempts=3)
    assert answers.match.astype(int).tolist() == [
        [1, 0, 0, 0, 0, 1, 0, 0], [1, 0, 0, 0, 0, 1, 0, 0], [1, 1, 1, 0, 0, 1, 0, 0]
    ]  # fmt: skip
    assert (answers.length > 0).sum(axis=0).tolist() == [1, 3, 3, 1, 3, 1, 2, 3]
    row = summarise(answers, 1.0)
    assert (row["acc_attempt1"], row["acc_attempt3"], row["delta"]) == (0.25, 0.5, 0.25)
    assert row["attempts"] == 17 / 8
    assert row["acc_if_stopped"] == row["acc_attempt3"] == 0.5
    # behind a wrong attempt: 221 has 2, 231 nothing, 234 nothing, 24 nothing, 222 has 2 twice
    assert row["repeat_rate"] == 3 / 9
    assert len(answers_of(TREES[:1], ALONE, attempts=5).match) == 5


def test_k_attempts_in_a_chat_against_k_first_ones_by_hand():
    one, two, three = success_at_k(answers_of(TREES, ALONE, attempts=3), samples=4)
    assert (one["succ"], one["pass"], one["gain"]) == (0.25, 0.25, 0.0)
    assert (two["succ"], two["pass"]) == (0.25, 0.5)  # of 4 with one right, 2 have it by half
    assert (three["succ"], three["pass"], three["gain"]) == (fmean([0.75, 0.25]), 0.75, -0.25)
    assert all(part[f"{key}_ci95"][0] <= part[key] <= part[f"{key}_ci95"][1] for part in (one, two, three)
               for key in ("succ", "pass", "gain"))  # fmt: skip
    only = success_at_k(answers_of(TREES, ALONE, attempts=3), samples=4)[:2]
    assert [part["k"] for part in only] == [1, 2]


def test_votes_over_the_last_of_three_attempts_cost_three_first_ones():
    trees = [tree("221", "231", "1", question=0), tree("234", "1", "222", question=1)]
    (one,) = majority_votes(answers_of(trees, ALONE, attempts=3), trees, 3, same_answer, ALONE)
    assert (one["k"], one["attempts"]) == (1, 3)
    assert one["acc_parallel"] == 0.0  # votes 221 and 212
    assert one["acc_sequential"] == fmean([1, 1 / 3])  # each last attempt alone


def test_a_run_that_stops_tells_of_it_everywhere(folder, capsys):
    sampled = ("eval.temperature=1", "eval.samples_per_prompt=4")
    out = printed(train, capsys, "--config", "tiny.yaml", *STOPPING, *sampled)
    rows = logged("evaluations")
    assert [(row["feedback"], row.get("stop")) for row in rows] == [("stop", "verdict"), ("none", None)] * 3
    for row in rows:
        assert [part["k"] for part in row["success_at_k"]] == [1, 2, 3, 4] and "acc_attempt4" in row
    stops, goes_on = rows[-2:]
    assert stops["attempts"] < 4 == goes_on["attempts"] and stops["c_to_i"] == 0
    assert stops["acc_attempt4"] == pytest.approx(stops["success_at_k"][-1]["succ"])  # who is right stays so
    # seeds go by path: the policy that is always asked again has the same answers, up to its first right one
    assert 0 < goes_on["acc_attempt1"] < goes_on["acc_if_stopped"] == stops["acc_if_stopped"] == stops["acc_attempt4"]
    assert goes_on["acc_attempt4"] < goes_on["acc_if_stopped"]
    metrics = logged("metrics")
    assert all(row["gap"] >= 0 and 0 <= row["repeat_rate"] <= 1 for row in metrics)
    assert "stop when right (by an oracle)" in out and "attempts in a chat is right" in out
    printed(report, capsys, "outputs/tiny")
    page = Path("outputs/tiny/report.html").read_text()
    assert "One after another, or side by side" in page and "k = 2" in page and "k = 1" not in page
    shown = printed(evaluate, capsys, "--config", "outputs/tiny/config.yaml", "--run", "outputs/tiny",
                   "--temperature", "1", "--majority", "--output", "results.jsonl")  # fmt: skip
    measured = rows_in("results.jsonl")
    assert [row["success_at_k"] for row in measured] == [stops["success_at_k"], goes_on["success_at_k"]]
    assert "majority votes at temperature 1, no feedback" in shown and np.isfinite(measured[0]["majority"][0]["gain"])
