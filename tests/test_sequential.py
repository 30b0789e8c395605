"""More attempts than two: where a chat stops, what then stands, and what it is worth at equal samples."""

import json
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from helpers import naive
from helpers.leaves import accumulate
from test_feedback import folder as folder
from test_feedback import run as script

import evaluate
import report
import train
from lib.core.config import ScoreConfig, load
from lib.generators.protocol import Completion
from lib.rewards.judge import Verdict
from lib.rl.evaluation import answers_of, summarise
from lib.rl.prompts import Prompt
from lib.rl.score import ScoreRun
from lib.rl.sequential import majority_votes, success_at_k
from lib.rl.task import load_task
from lib.rl.tree import Answer, Group
from lib.text.parsing import same_answer

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


def test_a_chat_that_stops_is_learned_as_the_equations_say(folder):
    """Every answer in a text of its own, with plain autograd; right attempts have nothing behind them."""
    more = ("train.kl=exact", "generation.temperature=0.8", "train.beta1=0.5", "train.discount=0.5", "train.alpha=0")
    config = load(ScoreConfig, Path("tiny.yaml"), [*STOPPING, *more, "train.attempts_per_prompt=4"])
    run = ScoreRun(load_task(config, say=lambda text: None))
    draw = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in run.policy.trainable:
            parameter += 0.2 * torch.randn(parameter.shape, generator=draw)
    stage = run.stages[1]
    trees = run.sample(stage)
    credit = run.credit(stage, trees)
    answers = {n: (node, a) for node in credit.nodes for n, a in zip(node.numbers, node.group.answers, strict=True)}
    ends = [answer for _, answer in answers.values() if answer.following is None]
    stopped = [node.attempt for node, answer in answers.values() if answer.verdict.match]
    assert {1, 2} <= set(stopped) and all(answer.following is None for _, answer in answers.values() if
                                          answer.verdict.match)  # fmt: skip
    assert all(answer.following for node, answer in answers.values() if not answer.verdict.match and node.attempt < 3)
    assert credit.divisor == len(ends)

    def leaves(answer):
        return sum(map(leaves, answer.following.answers)) if answer.following else 1

    def earned(node, answer):
        return 0.5 ** (node.attempt - 1) * answer.verdict.reward

    for node in credit.nodes:
        if len(node.numbers) > 1:
            values = [earned(node, answer) for answer in node.group.answers]
            others = [(sum(values) - own) / (len(values) - 1) for own in values]
            by_hand = [own - other for own, other in zip(values, others, strict=True)]
            assert credit.advantage[list(node.numbers)].tolist() == pytest.approx(by_hand, abs=1e-6)
    run.policy.zero_grad()
    expected = 0
    for number, (node, answer) in answers.items():
        logp, _, kl = naive.per_token(run.policy, node.group.prompt.ids, answer.completion.ids, 0.8)
        expected += leaves(answer) * (0.5 * kl - credit.advantage[number] * logp).mean() / len(ends)
    expected.backward()
    by_hand = torch.cat([parameter.grad.flatten().clone() for parameter in run.policy.trainable])
    run.policy.zero_grad()
    assert accumulate(run, credit)["loss"] == pytest.approx(expected.item(), abs=1e-5)
    found = torch.cat([parameter.grad.flatten() for parameter in run.policy.trainable])
    torch.testing.assert_close(found, by_hand, rtol=1e-4, atol=1e-5)


def test_a_run_that_stops_tells_of_it_everywhere(folder, monkeypatch, capsys):
    sampled = ("eval.temperature=1", "eval.samples_per_prompt=4")
    out = script(train, monkeypatch, capsys, "--config", "tiny.yaml", *STOPPING, *sampled)
    rows = [json.loads(line) for line in Path("outputs/tiny/evaluations.jsonl").read_text().splitlines()]
    assert [(row["feedback"], row.get("stop")) for row in rows] == [("stop", "verdict"), ("none", None)] * 3
    for row in rows:
        assert [part["k"] for part in row["success_at_k"]] == [1, 2, 3, 4] and "acc_attempt4" in row
    stops, goes_on = rows[-2:]
    assert stops["attempts"] < 4 == goes_on["attempts"] and stops["c_to_i"] == 0
    assert stops["acc_attempt4"] == pytest.approx(stops["success_at_k"][-1]["succ"])  # who is right stays so
    metrics = [json.loads(line) for line in Path("outputs/tiny/metrics.jsonl").read_text().splitlines()]
    assert all(row["gap"] >= 0 and 0 <= row["repeat_rate"] <= 1 for row in metrics)
    assert "stop when right (by an oracle)" in out and "attempts in a chat is right" in out
    script(report, monkeypatch, capsys, "outputs/tiny")
    assert "One after another, or side by side" in Path("outputs/tiny/report.html").read_text()
    shown = script(evaluate, monkeypatch, capsys, "--config", "outputs/tiny/config.yaml", "--run", "outputs/tiny",
                   "--temperature", "1", "--majority", "--output", "results.jsonl")  # fmt: skip
    measured = [json.loads(line) for line in Path("results.jsonl").read_text().splitlines()]
    assert [row["success_at_k"] for row in measured] == [stops["success_at_k"], goes_on["success_at_k"]]
    assert "majority votes at temperature 1, no feedback" in shown and np.isfinite(measured[0]["majority"][0]["gain"])
