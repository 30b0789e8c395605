import ast
import asyncio
import functools
import importlib.util
import json
import os
import re
import subprocess
import sys
import textwrap
import threading
import weakref
from concurrent.futures import Future
from pathlib import Path
from time import perf_counter

import numpy as np
import pytest
from helpers.judges import judge_by, rows
from pydantic import ValidationError

from lib.core import killable, registry
from lib.core.config import Reward, SandboxSettings, ScoreConfig
from lib.core.errors import ConfigError, RewardError
from lib.core.registry import Judged, register_extractor, register_matcher, register_reward
from lib.rewards.formula import gsm8k_hash, math_final_answer
from lib.rewards.formula import math as math_match
from lib.rewards.judge import Judge, as_trl_reward, formula, prepare, text_of

GOOD = "<think>6 + 12</think>\n<answer>18</answer>"


@pytest.fixture
def shelf(monkeypatch):
    """Whatever a test registers is gone afterwards."""
    for names in (registry.rewards, registry.extractors, registry.matchers):
        monkeypatch.setattr(names, "_entries", dict(names._entries))


def judged(function):
    """The scores that `function` gives to the predictions a and b."""
    register_reward(function.__name__)(function)
    return judge_by(function.__name__)(["a", "b"], rows("a", "c"))


# --- extractors


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<answer>1</answer> <answer> 2 </answer> #### 3", "2"),
        ("<answer>1</answer> <answer></answer> 3", ""),  # the last block counts, even an empty one
        ("so #### 1,000 for 7", "1000"),
        ("so #### 1,000 and 7", "1,000 and 7"),  # not one number: it comes as it is
        ("#### 1/2", "1/2"),
        ("#### .5", ".5"),
        ("#### 3,4", "3,4"),
        ("#### 2 + 3", "2 + 3"),
        ("#### 10^6", "10^6"),
        ("#### 1.5e3", "1.5e3"),
        ("#### 1 000", "1 000"),
        ("#### 5:30", "5:30"),
        ("#### -$5", "-5"),
        ("#### minus 5", "-5"),
        ("#### 3 millions", "3 millions"),
        ("#### **18** for 2 days", "18"),
        ("#### 18 eggs for 2 days", "18"),
        ("#### 5 ft 3 in", "5 ft 3 in"),
        (r"\boxed{18} apples for 3 kids", "18"),
        (r"\boxed{18} or 19", "19"),
        ("at 5:30", "5:30"),
        ("5 minus 3", "3"),
        ("#### 5\n#### $18.", "18"),
        ("It costs $18.", "18"),
        ("from 3 to -4.5.", "-4.5"),
        ("pages 10-20", "20"),
        ("−3 degrees", "−3"),
        ("#### none, 12 perhaps", "none, 12 perhaps"),
        ("#### none\n12", "12"),
        ("nothing", ""),
        ("", ""),
    ],
)
def test_gsm8k_hash(text, answer):
    assert gsm8k_hash(text) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"\boxed{1} <answer> $\boxed{\frac{1}{2}}$ </answer>", r"\frac{1}{2}"),
        (r"first \boxed{1}, then \boxed{2}", "2"),
        (r"\boxed{\sqrt{\frac{1}{2}}}", r"\sqrt{\frac{1}{2}}"),
        ("The final answer is 3.14.", "3.14"),  # decimals kept at the end of a sentence
        ("The final answer is 3.14. I hope it is correct.", "3.14"),
        ("The Final Answer is: $x = 3. 5$. I hope", "x = 3. 5"),
        ("the final answer is 1. No, the final answer is 2", "2"),
        ("the final answer is $18, not $20.", "$18, not $20"),
        (r"the final answer is $\$18$.", r"\$18"),
        ("the final answer is\n\n7\nbecause", "7"),
        ("it is 5", ""),
        (r" $\frac{1}{2}$ ", r"\frac{1}{2}"),  # an answer column may hold the bare formula
        ("y = 2x + 1", "y = 2x + 1"),
        ("", ""),
    ],
)
def test_math_final_answer(text, answer):
    assert math_final_answer(text) == answer


@pytest.mark.parametrize("piece", ["####", "#### ", "1,", "-1", "final answer is ", "$1 ", "\\boxed{", "\ud800", "\0"])
def test_extractors_are_linear_and_raise_nothing(piece):
    text = piece * (100_000 // len(piece))
    start = perf_counter()
    for value in (text, "final answer is $" + text):
        gsm8k_hash(value), math_final_answer(value)
    assert perf_counter() - start < 5


# --- the three rewards


@pytest.mark.parametrize(
    ("prediction", "parts", "strict"),
    [
        (GOOD, (0.25, 0.25, 0.5), (0.5, 0.5)),
        ("  " + GOOD + "\n", (0.25, 0.25, 0.5), (0.5, 0.5)),
        (GOOD.replace("18", "19"), (0.25, 0.25, 0), (0.5, 0)),
        (GOOD.replace("18", "$18.00"), (0.25, 0.25, 0.5), (0.5, 0.5)),
        ("so: " + GOOD, (0.25, 0.25, 0.5), (0, 0)),
        (GOOD.replace("\n", " thus "), (0.25, 0.25, 0.5), (0, 0)),
        (GOOD + "done", (0.25, 0.25, 0), (0, 0)),
        ("6 + 12 <answer>18</answer>", (0, 0.25, 0), (0, 0)),
        ("<think>a</think> 18", (0.25, 0, 0), (0, 0)),
        ("<think>a</think>" + GOOD, (0, 0.25, 0), (0, 0)),  # two think pairs
        (GOOD + GOOD, (0, 0, 0), (0, 0)),
        (GOOD.replace("6 +", "<think>6 +"), (0, 0.25, 0), (0, 0)),  # one pair, but three tags
        ("<answer>18</answer><think>a</think>", (0.25, 0, 0), (0, 0)),  # wrong order
        ("<think><answer>18</answer></think>", (0.25, 0, 0), (0, 0)),
        ("<Think>a</Think><Answer>18</Answer>", (0, 0, 0), (0, 0)),
        ("<think>18", (0, 0, 0), (0, 0)),
        ("<think>18</answer>", (0, 0, 0), (0, 0)),  # what a policy writes that was paid for the last number
        ("18", (0, 0, 0), (0, 0)),
        ("", (0, 0, 0), (0, 0)),
    ],
)
def test_rewards_pay_for_each_block_once_and_for_a_match_in_both(prediction, parts, strict):
    for format in ("answer", "think_answer"):
        reading = {"format": format, "target_extractor": "gsm8k_hash"}
        plain, tags, exact = (
            judge_by(name, **reading)([prediction], rows("#### 18"))[0]
            for name in ("exact_match", "format_and_match", "strict_format_and_match")
        )
        assert plain.reward == plain.match
        is_exact = any(strict)
        match = parts[2] if format == "answer" or is_exact else 0
        assert tags.components == {"think": parts[0], "answer": parts[1], "match": match}
        assert tags.match == bool(match) and tags.well_formed >= tags.match
        assert exact.components == {"format": strict[0], "match": strict[1]}
        assert exact.match == bool(strict[1]) and exact.well_formed == is_exact


def test_the_earlier_leniency_has_an_honest_name():
    text = "<think>18</answer>"
    lenient = judge_by(answer_extractor="last_number", target_extractor="gsm8k_hash")
    assert lenient([text], rows("#### 18"))[0].reward == 1
    assert judge_by(answer_extractor="last_formula")([r"\boxed{18}, no: <answer>"], rows("18"))[0].match
    for name in ("gsm8k_hash", "math_final_answer"):
        with pytest.raises(ValidationError, match=f"target_extractor: {name}, and say by format: think_answer.*last_"):
            judge_by(answer_extractor=name)


def test_a_reward_for_a_format_wants_one():
    for name in ("format_and_match", "strict_format_and_match"):
        for format in ("free", "boxed"):
            with pytest.raises(ConfigError, match=f"reward.format: '{name}' pays for blocks that '{format}' does not"):
                judge_by(name, format=format)


def test_extractors_read_what_stands_in_the_declared_place():
    text = "<think>19</think><answer>18 of 20 apples, 90 % of them</answer>"
    judge = judge_by(answer_extractor="last_number", format="think_answer")
    assert judge([text], rows("90"))[0].match
    assert not judge([text + " 90"], rows("90"))[0].match
    assert judge([text.replace("18 of 20 apples, 90 %", "all")], rows("19"))[0].answer == ""


def test_a_reward_is_told_what_is_right_and_what_is_malformed(shelf):
    seen = {}

    @register_reward("told")
    def told(right, well_formed, prediction_answers, target_answers):
        seen.update(right=right, well_formed=well_formed, answers=prediction_answers, gold=target_answers)
        return [1.0] * len(right)

    texts = ["<answer>18</answer>", "<answer>19</answer>", "18", "<answer>18</answer> or 19"]
    scores = judge_by("told", format="answer", target_extractor="gsm8k_hash")(texts, rows(*["#### 18"] * 4))
    assert seen == {
        "right": [True, False, False, False], "well_formed": [True, True, False, False],
        "answers": ["18", "19", "", ""], "gold": ["18"] * 4,
    }  # fmt: skip
    assert [score.malformed for score in scores] == ["", "", "no <answer> block", "text after </answer>"]
    assert [score.match for score in scores] == seen["right"]


def test_what_a_reward_says_of_a_match_holds_for_well_formed_texts_alone(shelf):
    @register_reward("generous")
    def generous(predictions):
        return [Judged({"a": 1.0}, match=True), Judged({"a": 1.0}, match=True), Judged({"a": 1.0}, True, malformed="")]

    scores = judge_by("generous", format="answer")(["<answer>1</answer>", "1", "1"], rows("2", "2", "2"))
    assert [(score.match, score.well_formed) for score in scores] == [(True, True), (False, False), (True, True)]


def test_a_reward_of_the_earlier_form_is_told_what_to_take(shelf):
    register_reward("earlier")(lambda predictions, targets, extractor, match: [])
    with pytest.raises(ConfigError, match=r"reward 'earlier' needs `extractor`, .*: take `right`"):
        judge_by("earlier")


def test_two_empty_extractions_earn_nothing():
    [score] = judge_by(answer_extractor="last_number")(["<answer></answer>"], rows("no number"))
    assert (score.reward, score.match, score.answer, score.malformed) == (0, False, "", "no answer found")


def test_blanks_never_match_whatever_the_matcher_says(shelf):
    register_matcher("always")(lambda prediction, target: True)
    scores = judge_by(match="always")(["", "a", " "], rows("", "b", "c"))
    assert [score.reward for score in scores] == [0, 1, 0]
    assert [score.match for score in scores] == [False, True, False]


def test_a_reward_of_ones_own_may_have_a_list_as_its_target(shelf):
    register_reward("tokens_match")(
        lambda predictions, gold: [float(text.split() == g) for text, g in zip(predictions, gold, strict=True)]
    )
    judge, row = judge_by("tokens_match", ["gold"], target="gold"), {"gold": ["a", "d"]}
    assert judge.target_problem(row, "a row") == ""
    assert [verdict.reward for verdict in judge(["a d", "a"], [row, row])] == [1, 0]


def test_unusable_targets():
    judge = judge_by(target="gold", target_extractor="gsm8k_hash")
    golds = [{"gold": gold} for gold in ("#### 1", 3, "none", "<answer> </answer>", None)]
    finds_none = "reward.target_extractor 'gsm8k_hash' finds none in "
    problems = ["", "", f"{finds_none}'none'", f"{finds_none}'<answer> </answer>'", "'gold' is empty"]
    assert [judge.target_problem(row, "a row") for row in golds] == problems
    assert [judge.target_problem(row, "a row", compares=False) for row in golds] == [*[""] * 4, problems[4]]
    assert judge.target_problem({"gold": ["a"]}, "a row", compares=False) == ""
    assert judge.target_problem({"golf": 1}, "a row") == "column 'gold' is missing; did you mean 'golf'?"
    with pytest.raises(ConfigError, match=r"^dataset.target_field: 'gold' of row 7: got a bytes as text"):
        judge.target_problem({"gold": b"3"}, "row 7")


SAYS_7 = {"role": "assistant", "content": "7"}


@pytest.mark.parametrize(
    "gold",
    [
        ["7"],
        [7],
        [["7"]],
        SAYS_7,
        [SAYS_7],
        [[SAYS_7]],
        [{"role": "user", "content": "3+4"}, SAYS_7],
        [{"type": "text", "text": "7"}],
        {"role": "assistant", "content": [{"type": "text", "text": "7"}]},
    ],
)
def test_a_target_may_be_a_chat_or_a_list_of_one_text(gold):
    judge, row = judge_by(target="gold"), {"gold": gold}
    assert judge.target_problem(row, "a row") == ""
    assert [verdict.match for verdict in judge(["7", "8"], [row, row])] == [True, False]


@pytest.mark.parametrize(
    "gold",
    [["7", "8"], [7, 8], [["7", "8"]], ["7", SAYS_7], [[SAYS_7], [SAYS_7]], {"a": 7}, [{"a": 7}], [{"a": 7}, SAYS_7]],
)
def test_a_target_of_several_texts_or_of_none_is_refused(gold):
    problem = "'gold' is not one text or chat: give it as text, or take this column in a reward of your own"
    assert judge_by(target="gold").target_problem({"gold": gold}, "a row") == problem


# --- math-verify


@pytest.mark.parametrize(
    ("prediction", "target", "same"),
    [
        (r"2\sqrt{3}", r"\sqrt{12}", True),
        ("x^2+2x+1", "(x+1)^2", True),
        ("β + α", r"\alpha + \beta", True),
        ("2α", r"\alpha", False),
        ("cos(theta)", r"\cos\theta", True),
        ("ln(2)", r"\ln 3", False),
        (r"\frac{x}{2}", r"\dfrac{x}{2}", True),
        ("(1, 2)", "(1,2)", True),
        ("(1,2)", "(2,1)", False),
        ("x=5", "5", True),
        ("2t", "2", False),  # t is no unit
        (r"2\sqrt{3}\text{ cm}", r"\sqrt{12}", True),
        (r"\dbinom{12}{5}", r"\binom{12}{5}", True),
        (r"\tan^{-1}(2)", r"\arctan 2", True),
        (r"\tan^{-1}(2)", r"\tan(2)^{-1}", False),
        ("2 - 5 i", "2-5i", True),
        (r"\log_3(5)", r"\log_{3} 5", True),
        (r"3(5)x", "15x", False),
        ("(-∞, 0) ∪ (4, ∞)", r"(-\infty, 0) \cup (4, \infty)", True),
        ("10^(-3)x", "10^{-3}x", True),
        ("x+1+6", "x+7", False),
        ("x^2+3", "3+x^2", True),
        ("x/2+3", "3+x/2", True),
        ("1+6x", "6x+1", True),
        (r"x^{-1}+2", r"2+x^{-1}", True),
        (r"e^{-1}+1", r"1+\frac{1}{e}", True),
        ("x-1+2|y|", "x+2|y|-1", True),
        (r"\log_2(8)x", "3x", False),
        (r"\log_2 8 x", "3x", False),
        (r"\exp(x)", "e^x", True),
        ("2 i 3", "6i", False),
        ("z_1 i", "i z_1", True),
        (r"2\sqrt{3}\text{ cm}", r"2\sqrt{3}\text{ km}", False),
        ("0.3333333x", r"\frac{x}{3}", False),
        ("0.25x", r"\frac{x}{4}", True),
        (r"\int_0^1 \frac{4}{1+x^2} dx", r"\pi", False),
        (r"\sqrt{27}-\sqrt{3}", r"2\sqrt{3}", False),
        ("2x + 3x", "5x", False),
        ("7x + 2 - 3x", "4x + 2", False),
        (r"2i\sqrt{3}", r"2\sqrt{3}i", True),
        (r"1 - 2i\sqrt{3}", r"1 - 2\sqrt{3}i", True),
        (r"\{x \mid x > 2\}", r"(2, \infty)", True),
        (r"\{x : x < 2\}", r"(2, \infty)", False),
        ("x^2 + 3x + 2x + 6", "x^2+5x+6", False),
        ("(x+2)(x+3)", "x^2+5x+6", True),
        ("2(x-1)^2 + 3", "2x^2-4x+5", True),
        (r"\frac{x}{2}+\frac{1}{2}", r"\frac{x+1}{2}", True),
        (r"x\sqrt{x} + 1", "x^{3/2} + 1", True),
        (r"2x^2 * 3", "6x^2", False),
        (r"2x \cdot 3", "6x", False),
        ("(2x)(3x)+1", "6x^2+1", False),
        (r"5 \cdot 2^n", "5(2^n)", True),
        (r"3n \cdot 2^n", "3n2^n", True),
        (r"\frac{6x}{2}", "3x", False),
        (r"\frac{6x}{4}", r"\frac{3x}{2}", True),
        (r"y \cdot y", "y^2", False),
        (r"|{-2\sqrt{3}}|", r"2\sqrt{3}", False),
        (r"12\pi \text{ cm}^2", r"12\pi", True),
        ("(2, x+1)", "(2.0, 1+x)", True),
        ("(1+1, 3)", "(2, 3)", False),
        ("3, 1", "1, 3", True),
        ("4, 3", "x = 3, y = 4", False),
        ("3, 4", "x = 3, y = 4", True),
        ("y = 4, x = 3", "x = 3, y = 4", True),
        ("2, 1", "x = 1, x = 2", True),
        ("18 GB", r"18\text{ GB}", True),
        ("18 kilowatts", "18 kW", True),
        ("18 MW", "18 mW", False),
        ("18 nanoseconds", "18 seconds", False),
        ("18 in total", "18 dollars", True),
        ("18 in", "18 dollars", False),
        ("101_2", "101_{two}", True),
        ("101_2", "101_3", False),
        ("2:4", "1:2", False),
        ("$18", "18", True),
        ("East", "east", True),
        ("seat", "east", False),  # as products of letters they are equal
        ("", "", False),
        (r"\sqrt{2}", "", False),
        ("\ud800\0 + 1", "1", False),
        ("(" * 3000 + "x", "1", False),
    ],
)
def test_math_equality(prediction, target, same):
    assert math_match(prediction, target) is same


def test_a_formula_that_never_ends_costs_two_seconds_and_works_outside_the_main_thread():
    verdicts = []

    def ask():
        verdicts.extend([math_match(r"9^{9^{9^9}}", "2"), math_match(r"\sqrt{8}", r"2\sqrt{2}")])

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(timeout=120)  # on a busy machine the child takes its time to start
    assert verdicts == [False, True]  # the child was killed, and the next question answered by a new one


def test_an_interrupted_question_does_not_answer_the_next(monkeypatch):
    math_match("x + 3", "3 + x")
    real = killable.in_daemon_thread

    def interrupted(*work):
        real(*work)
        future = Future()
        future.set_exception(KeyboardInterrupt())
        return future

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(killable, "in_daemon_thread", interrupted)
        math_match("x + 4", "4 + x")  # True would lie in the pipe
    assert math_match("x + 4", "5 + x") is False
    assert math_match("x + 5", "5 + x") is True


def test_a_fork_that_ends_leaves_the_process_to_its_parent():
    assert math_match("y + 3", "3 + y") is True
    if not (child := os.fork()):
        same = math_match("y + 4", "4 + y")  # by a process of its own
        for end in [each for each in weakref.finalize._registry if each.peek()[1] is killable._kill_all]:
            end()  # as at the end of an interpreter, but for those of others, which would delete the parent's files
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0
    pool = formula._math_verify(os.getpid())
    assert [helper._process.poll() for helper in pool._alive] == [None]
    assert math_match("y + 5", "5 + y") is True


def test_without_math_verify_the_judge_names_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "math_verify", None)
    for name in ("_math_verify", "_equivalent"):  # without what they keep
        monkeypatch.setattr(formula, name, getattr(formula, name).__wrapped__)
    with pytest.raises(ConfigError, match="pip install math-verify"):
        judge_by(match="math")
    assert judge_by(match="exact")(["1/2"], rows("0.5"))[0].match


# --- the judge's contract


def test_unknown_names_are_explained():
    with pytest.raises(ValidationError, match="did you mean 'exact_match'"):
        judge_by("exact_mach")
    with pytest.raises(ValidationError, match=r"unknown reward 'xyz'\. Known: "):
        judge_by("xyz")
    with pytest.raises(ValidationError, match="unknown extractor 'gsm8k'"):
        judge_by(answer_extractor="gsm8k")
    with pytest.raises(ValidationError, match="'maths'; did you mean 'math'"):
        judge_by(match="maths")


def test_a_second_reward_of_the_same_name_is_refused(shelf):
    def another(predictions):
        return [0.0] * len(predictions)

    with pytest.raises(ConfigError, match="'exact_match' is registered twice"):
        register_reward("exact_match")(another)
    register_reward("part")(functools.partial(another))  # which has no name of its own
    another.__qualname__ = "exact_match"  # a function of that name in another module
    with pytest.raises(ConfigError, match=r"'exact_match' is registered twice, by lib\.rewards\.formula\.exact_match"):
        register_reward("exact_match")(another)


def test_dotted_paths(tmp_path, monkeypatch):
    code = "def half(completions, **kwargs): return [0.5] * len(completions)\ndef first(text): return text[:1]"
    (tmp_path / "my_own_rewards.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    judge = judge_by("my_own_rewards.half", answer_extractor="my_own_rewards.first")
    (score,) = judge(["abc"], rows("axy"))
    assert (score.reward, score.match, score.answer) == (0.5, True, "a")
    assert as_trl_reward(judge).__name__ == "half"


def test_a_reward_gets_what_it_names(shelf):
    seen = {}

    def needy(completions, board, prompts, size=3, missing="default", *, match, **kwargs):
        seen.update(board=board, prompts=prompts, size=size, missing=missing, kwargs=kwargs)
        return [float(match(text, "a")) for text in completions]

    boards = [
        {"target": "a", "board": 1, "size": 4, "other": "x"},
        {"target": "c", "board": 2, "size": 5, "other": "y"},
    ]
    register_reward("needy")(needy)
    scores = judge_by("needy", list(boards[0]))(["a", "b"], boards, ["p", "q"])
    assert [score.reward for score in scores] == [1, 0]
    assert seen == {
        "board": [1, 2],
        "prompts": ["p", "q"],
        "size": [4, 5],
        "missing": "default",
        "kwargs": {"target": ["a", "c"], "other": ["x", "y"]},
    }


def test_a_column_that_is_missing_is_found_before_training(shelf):
    @register_reward("rush")
    def rush(predictions, bord, moves):
        raise AssertionError("never called")

    with pytest.raises(ConfigError, match=r"'bord'; did you mean 'board'\?.*'moves' \(nothing .*: board, completions"):
        judge_by("rush", ["board"])
    with pytest.raises(ConfigError, match="needs bord, which this batch lacks"):
        judge_by("rush", ["bord", "moves"])(["a"], [{"target": "a", "moves": 1}])


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ([1.0, float("nan")], r"'fake' returned nan for sample 1 \('b'\): expected a finite number"),
        ([float("-inf"), 0.0], "returned -inf for sample 0"),
        ([{"a": 1.0}, {"a": float("inf")}], "returned inf for sample 1, component 'a'"),
        ([1.0, 10**400], "expected a finite number"),
        ([1.0, None], "returned None for sample 1"),
        ([1.0, "1"], "returned '1' for sample 1"),
        ([1.0], "returned 1 values for 2 predictions"),
        (1.0, "returned a float for 2 predictions"),
        (None, "returned a NoneType for 2 predictions"),
    ],
)
def test_wrong_returns_name_the_sample(shelf, returned, message):
    def fake(predictions):
        return returned

    with pytest.raises(RewardError, match=message):
        judged(fake)


def test_a_reward_may_change_its_lists(shelf):
    def fake(predictions):
        scores = [float(text == "a") for text in predictions]
        predictions.clear()
        return scores

    assert [score.reward for score in judged(fake)] == [1, 0]


class Odd(BaseException):
    def __str__(self):
        raise RuntimeError("no text")


def cancelled(text):
    raise asyncio.CancelledError


FAULTS = {
    "ZeroDivisionError: division by zero": lambda text: 1 / 0,
    "SystemExit: 0": lambda text: sys.exit(0),
    "StopIteration": lambda text: next(iter(())),
    "SyntaxError: invalid syntax": lambda text: eval("2 +* 2"),
    "JSONDecodeError: Expecting value: line 1 column 1": lambda text: json.loads(text),
    "CancelledError": cancelled,
    "Odd: <exception str() failed>": lambda text: (_ for _ in ()).throw(Odd()),
}


@pytest.mark.parametrize("said", FAULTS)
def test_whatever_a_reward_raises_is_one_sentence_with_place_and_sample(shelf, said):
    """Wherever in a batch the text is; the place is a line of the reward's own file, also where a library raises."""

    def fake(predictions):
        return [FAULTS[said](text) if text == "bad" else 1.0 for text in predictions]

    register_reward("fake")(fake)
    judge = judge_by("fake")
    for texts in (["bad"], ["a", "b", "bad", "bad"]):
        with pytest.raises(RewardError) as raised:
            judge(texts, rows(*["c"] * len(texts)))
        assert "\n" not in str(raised.value)
        assert re.match(rf"reward 'fake' raised [\w.]*{re.escape(said)}.* \(tests/lib/rewards/test_rewards.py:\d+\) "
                        rf"for sample {texts.index('bad')} of {len(texts)} \('bad'\)$", str(raised.value))  # fmt: skip
        assert not isinstance(raised.value.__cause__, RewardError)


def test_a_reward_that_raises_about_no_sample_alone(shelf):
    def fake(predictions):
        return [1.0 / (2 - len(predictions))] * len(predictions)

    with pytest.raises(RewardError, match=r"ZeroDivisionError.* for 2 samples together$"):
        judged(fake)


# --- several rewards


@pytest.fixture
def brief(shelf):
    @register_reward("brief")
    def brief(predictions, *, most=50, price=0.0):
        return [{"short": float(len(text) <= most), "price": -price} for text in predictions]

    return brief


TEXTS = [GOOD, "<think>a</think><answer>7</answer>", "18", "<think>a</think><answer>18</answer>" + " " * 40]


def summed(*texts, weights, targets="18", **reading):
    return judge_by(weights, format="think_answer", **reading)(texts, rows(*[targets] * len(texts)))


def test_several_rewards_are_summed_with_their_weights_and_parts_bear_their_names(brief):
    scores = summed(*TEXTS, weights={"exact_match": 2, "brief": 0.5}, options={"brief": {"price": 0.2}})
    parts = [list(score.components.values()) for score in scores]
    assert list(scores[0].components) == ["exact_match", "brief/short", "brief/price"]
    assert parts == [[2, 0.5, -0.1], [0, 0.5, -0.1], [0, 0, -0.1], [2, 0, -0.1]]  # the third one is malformed
    assert [score.reward for score in scores] == [pytest.approx(sum(own)) for own in parts]
    assert [score.match for score in scores] == [True, False, False, True]  # as the config says, whatever is paid
    assert [score.well_formed for score in scores] == [True, True, False, True]


def test_a_single_reward_with_a_weight_is_that_reward_and_no_more(shelf):
    one, other = (summed(*TEXTS, "<answer>1</answer>", weights=fn)
                  for fn in ("format_and_match", {"format_and_match": 3}))  # fmt: skip
    assert [score.reward for score in other] == [pytest.approx(3 * score.reward) for score in one]
    assert one[4].reward == 0.25  # on the way to the format
    assert list(one[0].components) == list(other[0].components)


def test_who_decides_the_match_of_a_sum(shelf):
    """All that decide must agree; who refuses a text refuses it for all; who cannot judge leaves it out for all."""
    for name, kinds in {"left": "rwrrmu", "right_too": "rrwrrr"}.items():
        says = {
            "r": Judged({"a": 1.0}, True, name), "w": Judged({"a": 1.0}, False),
            "m": Judged({"a": -0.25}, malformed="m"), "u": Judged({}, scored=False, about="lost"),
        }  # fmt: skip
        register_reward(name)(lambda predictions, kinds=kinds, says=says: [says[kind] for kind in kinds])
    scores = judge_by({"left": 1, "right_too": 1, "exact_match": 1})(["a"] * 6, rows(*"aaabaa"))
    assert [score.match for score in scores] == [True, False, False, True, False, False]
    assert [score.reward for score in scores] == [3, 3, 3, 2, -0.25, 0]
    assert [score.malformed for score in scores] == ["", "", "", "", "m", ""]
    assert [score.scored for score in scores] == [True] * 5 + [False]
    assert [score.about for score in scores][::5] == ["left; right_too", "lost; right_too"]


@pytest.mark.parametrize("takes_all", [False, True])
def test_a_column_is_no_option(shelf, takes_all):
    if takes_all:

        @register_reward("brief")
        def brief(predictions, *, most=50, **columns):
            assert "most" not in columns
            return [float(len(text) <= most) for text in predictions]
    else:

        @register_reward("brief")
        def brief(predictions, *, most=50):
            return [float(len(text) <= most) for text in predictions]

    judge = Judge(Reward(fn="brief", format="answer"), ["answer", "most"], "answer")
    assert judge(["<answer>18</answer>"], [{"answer": "18", "most": 3}])[0].reward == 1


def test_options_of_several_rewards_stand_under_their_names(brief):
    wrong = {"brief": {"mots": 3}, "breif": {"most": 1}, "exact_match": 3}
    with pytest.raises(ConfigError) as told:
        judge_by({"exact_match": 1, "brief": 1}, options=wrong)
    lines = str(told.value).splitlines()
    assert len(lines) == 3
    assert "reward.options.brief.mots: reward 'brief' has no such option; did you mean 'most'?" in lines
    assert any(line.startswith("reward.options.breif: ") and "did you mean 'brief'?" in line for line in lines)
    assert any(line.startswith("reward.options.exact_match: got 3, expected") for line in lines)


def test_every_reward_of_a_sum_is_prepared_checked_and_begun(shelf):
    seen = []
    for name in ("one", "two", "three"):
        hooks = {
            "begin": lambda text, row, name=name: seen.append((name, "begin", text)),
            "check": lambda rows, name=name: seen.append((name, "check", len(rows))),
            "prepare": lambda name=name: f"{name} is ready",
        }
        hooks = {} if name == "three" else hooks
        register_reward(name, **hooks)(lambda predictions, **columns: [1.0] * len(predictions))
    judge = judge_by({"one": 1, "three": 1, "two": 1})
    judge.begin("text", {})
    judge.check([{}, {}])
    assert seen == [("one", "begin", "text"), ("two", "begin", "text"), ("one", "check", 2), ("two", "check", 2)]
    assert len(judge.functions) == 3 + 2 * 3 + 3  # the rewards, their hooks, both extractors and the equality
    config, told = ScoreConfig.model_construct(sandbox=SandboxSettings(), reward=Reward(fn={"one": 1, "two": 1})), []
    prepare(config, told.append)
    assert told == ["one is ready", "two is ready"]
    assert judge_by({"three": 1}).begin is None
    with pytest.raises(RewardError, match=r"^reward 'two' raised ZeroDivisionError.* for sample 0"):
        registry.rewards._entries["two"] = lambda predictions: [1 / 0]
        judge_by({"one": 1, "two": 1})(["a"], rows("a"))


def test_hooks_belong_to_a_name_and_are_found_by_a_dotted_path_too(shelf, monkeypatch):
    def one(predictions):
        return [1.0] * len(predictions)

    one.check = lambda rows: 1 / 0  # not read
    begins = {name: lambda text, row: None for name in ("a", "b")}
    for name, begin in begins.items():
        register_reward(name, begin=begin)(one)
    monkeypatch.setattr("lib.rewards.tags.one", one, raising=False)
    assert [registry.rewards.hooks(name).begin for name in begins] == list(begins.values())
    assert registry.rewards.hooks("lib.rewards.tags.one") == registry.rewards.hooks("a")
    assert registry.rewards.hooks("exact_match") == registry.Hooks()
    judge_by("a").check([{}])
    with pytest.raises(TypeError, match="unexpected keyword argument 'begins'"):
        register_reward("c", begins=print)


def test_what_stands_beside_a_reward_may_raise_too(shelf, tmp_path, monkeypatch):
    fails = {"check": lambda rows: 1 / 0, "begin": lambda text, row: 1 / 0}
    register_reward("one", **fails)(lambda predictions, **columns: [1.0] * len(predictions))
    register_extractor("first")(lambda text: text.split()[0])
    register_matcher("inverse")(lambda prediction, target: 1 / float(prediction) == 1 / float(target))
    judge = judge_by("one")
    for about, call in {
        r"extractor 'first' raised IndexError.* for sample 1 \(' '\)": lambda: judge_by(
            "one", answer_extractor="first"
        )(["a", " "], rows("a", "b")),
        r"match 'inverse' raised ValueError.* for 'x \+ 1' and '1 \+ x'": lambda: judge_by("one", match="inverse"),
        r"reward 'one' raised ZeroDivision.* in its check\(\)": lambda: judge.check([{}]),
        r"reward 'one' raised ZeroDivision.* in its begin\(\) for 'text'": lambda: judge.begin("text", {}),
    }.items():
        with pytest.raises(RewardError, match=about + "$"):
            call()
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "leaves_at_once.py").write_text("import sys\nsys.exit()\n")
    with pytest.raises(RewardError, match=r"SystemExit.* \(leaves_at_once.py:2\) when its module was imported"):
        registry.rewards.get("leaves_at_once.reward")
    (tmp_path / "mistyped.py").write_text("import sys\ndef reward(:\n")
    with pytest.raises(RewardError, match=r"SyntaxError: .* \(mistyped.py:2\) when its module was imported"):
        registry.rewards.get("mistyped.reward")


def test_an_extractor_that_forgets_to_return_is_named(shelf):
    register_extractor("forgetful")(lambda text: None)
    register_reward("one")(lambda predictions: [1.0] * len(predictions))
    with pytest.raises(RewardError, match="extractor 'forgetful' returned None for sample 0"):
        judge_by("one", answer_extractor="forgetful")(["a"], rows("b"))


@pytest.mark.parametrize("verdict", [0.3, None, "no", float("nan")])
def test_an_equality_that_says_neither_true_nor_false_is_named(shelf, verdict):
    register_matcher("alike")(lambda prediction, target: verdict)
    with pytest.raises(RewardError, match=f"match 'alike' returned {verdict!r} for .*: expected True or False"):
        judge_by("exact_match", match="alike")
    if verdict is not None:
        register_reward("one")(lambda predictions: [Judged({"a": 1.0}, match=verdict) for _ in predictions])
        with pytest.raises(RewardError, match="for sample 0: match must be a bool"):
            judge_by("one")(["a"], rows("a"))


def test_numpy_may_say_what_is_equal(shelf):
    register_matcher("alike")(lambda prediction, target: np.bool_(prediction == target))
    verdicts = judge_by("exact_match", match="alike")(["a", "b"], rows("a", "a"))
    assert [verdict.match for verdict in verdicts] == [True, False]


def test_lists_of_different_length_are_a_bug_of_the_caller():
    for asked in [(rows("a"),), (rows("a", "b"), ["?"])]:
        with pytest.raises(ValueError, match="1 values for 2 texts"):
            judge_by()(["a", "b"], *asked)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", "a"),
        (None, ""),
        (18, "18"),
        ([{"role": "assistant", "content": "a"}], "a"),
        ([[{"role": "assistant", "content": "a"}]], "a"),
        ({"role": "assistant", "content": [{"type": "text", "text": "a"}]}, "a"),
        (["a", ["b"]], "a\nb"),
        (
            [
                {"role": "assistant", "content": None, "tool_calls": []},
                {"role": "tool", "content": "<answer>1</answer>"},  # not the model's words
                {"role": "assistant", "content": "b"},
            ],
            "b",
        ),
    ],
)
def test_text_of(value, text):
    assert text_of(value) == text


def test_text_of_refuses_what_is_no_text():
    with pytest.raises(ConfigError, match="got a set as text"):
        text_of({1})


# --- TRL


def test_trl_calls_rewards_by_these_keywords():
    path = Path(importlib.util.find_spec("trl").origin).parent / "trainer" / "grpo_trainer.py"
    calls = [
        {keyword.arg for keyword in node.keywords}
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "reward_func"
    ]
    assert {"prompts", "completions", "completion_ids", None} in calls  # None stands for **reward_kwargs


@pytest.mark.parametrize("chat", [False, True])
def test_a_judge_serves_as_a_trl_reward(chat):
    reading = {"format": "think_answer", "target_extractor": "gsm8k_hash"}
    reward = as_trl_reward(judge_by("format_and_match", ["question", "answer", "prompt"], "answer", **reading))
    texts = [GOOD, "I think 18", "no idea"]
    rewards = reward(
        prompts=[[{"role": "user", "content": "?"}]] * 3 if chat else ["?"] * 3,
        completions=[[{"role": "assistant", "content": text}] for text in texts] if chat else texts,
        completion_ids=[[1], [2], [3]],
        answer=["#### 18"] * 3,
        question=["q"] * 3,
        trainer_state=object(),
        log_extra=print,
        log_metric=print,
    )
    assert rewards == [1.0, 0.0, 0.0]
    assert reward.__name__ == "format_and_match"


def test_trl_without_the_target_column():
    with pytest.raises(ConfigError, match="got 'answr', expected a column of the data set; did you mean 'answer'"):
        as_trl_reward(judge_by(columns=["answer"], target="answr"))
    with pytest.raises(ConfigError, match=r"got None, expected a column of the data set\. Columns: answer"):
        as_trl_reward(judge_by(columns=["answer"], target=None))
    with pytest.raises(ConfigError, match="not passed by TRL"):
        as_trl_reward(judge_by(columns=["answer"], target="answer"))(prompts=["?"], completions=["a"], question=["q"])


# --- reward_function.py


def test_reward_function_registers_the_shelf_without_torch():
    code = (
        "import reward_function, sys; from lib.core.config import Reward; from lib.rewards.judge import Judge;"
        "Judge(Reward());"
        "sys.exit(any(name in sys.modules for name in ('torch', 'numpy', 'scipy', 'math_verify', 'trl')))"
    )
    root = Path(__file__).parents[3]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, env=os.environ, check=False).returncode == 0


def test_the_examples_in_its_docstring_work(shelf):
    import reward_function

    example = reward_function.__doc__.split("A few lines each:")[1].split("and in the config:")[0]
    exec(textwrap.dedent(example), dict(vars(reward_function)))
    judge = judge_by("brief_match", answer_extractor="last_line")
    assert [s.reward for s in judge(["so\n18", "19", "", "a" * 400 + "\n18"], rows(*["18"] * 4))] == [1, 0, 0, 0]


# ---- the reward math

CANONICAL = [  # prediction, target, strict, tolerant
    ("$3$", "3", True, True),
    ("{3}", "3", False, False),  # a set
    ("(3)", "3", True, True),
    ("3.00", "3", True, True),
    ("x + 1", "x+1", True, True),
    (r"x\ + 1", "x+1", True, True),
    (r"\frac{1}{2}", r"\dfrac{1}{2}", False, True),
    ("0.5", "1/2", False, True),
    (r"\boxed{3}", "3", False, True),
    ("1,000", "1000", False, True),
    ("3.10", "3.1", False, True),
    (r"\text{east}", "East", False, True),
    ("1 + x", "x + 1", False, True),
    ("1 8", "18", False, False),
    ("4", "3", False, False),
    ("", "", False, False),
]


@pytest.mark.parametrize(("prediction", "target", "strict", "tolerant"), CANONICAL)
def test_the_two_readings_of_the_reward_math(prediction, target, strict, tolerant):
    for reading, right in {"strict": strict, "tolerant": tolerant}.items():
        judge = judge_by("math", format="answer", options={"reading": reading})
        [found] = judge([f" \n<answer>{prediction}</answer>"], [{"target": target}])
        assert (found.reward, found.match) == (right, right), reading


def test_an_unknown_reading_is_a_mistake():
    with pytest.raises(ConfigError, match="got 'loose', expected strict or tolerant"):
        judge_by("math", options={"reading": "loose"})
