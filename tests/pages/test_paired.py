import re
from pathlib import Path

import numpy as np
import pytest
from helpers.tiny import call

import evaluate
import report
from data.builders import write_rows
from lib.core.errors import ConfigError
from lib.core.stats import paired_delta_interval, wilson
from pages.paired import compare

NAMES = ("first", "second")


def single(right, n=None, questions="same", **more):
    n = n or [1] * len(right)
    acc = sum(right) / sum(n)
    row = {"when": "pretrain", "stage": 1, "step": 0, "temperature": 1.0, "questions": questions, "acc": acc}
    row |= {"n": sum(n), "prompts": len(n), "acc_ci95": [acc, acc], "pass_at_k": [{"k": 1, "pass": acc}]}
    return row | {"per_question": {"n": n, "acc": right}} | more


def double(one, two, **more):
    row = {"when": "pretrain", "stage": 1, "step": 0, "temperature": 0.0, "questions": "same", "delta": 0}
    return row | {"per_question": {"n": [1] * len(one), "acc_attempt1": one, "acc_attempt2": two}} | more


@pytest.fixture
def folder(tmp_path):
    """`folder(name, rows)`: a run with these evaluations."""

    def make(name, *rows):
        run = tmp_path / name
        run.mkdir()
        write_rows(run / "evaluations.jsonl", rows)
        return str(run)

    return make


def say(capsys, *sources):
    assert call(evaluate, "--compare", *sources) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [["--samples", "4"], ["--rows", "0", "9"], ["--resume"], ["--swap-attempts"], ["--config", "a.yaml"], ["a.b=1"]],
)
def test_other_options_are_refused_by_name(words):
    words = [*words, "--compare", "a", "b"]
    with pytest.raises(ConfigError, match=f"--compare: takes one or two runs .*nothing else: leave out {words[0]}"):
        call(evaluate, *words)
    with pytest.raises(ConfigError, match="leave out c"):
        call(evaluate, "--compare", "a", "b", "c")


def test_one_answer_to_each_question_by_hand():
    # 5 questions are gained and 1 is lost, 4 are the same
    before, after = [0, 0, 0, 0, 0, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 0, 1, 1, 0, 0]
    (row,) = compare(single(before), single(after), NAMES)
    assert (row["of"], row["first"], row["second"], row["difference"]) == ("acc", 0.3, 0.7, pytest.approx(0.4))
    assert row["difference_ci95"] == pytest.approx(paired_delta_interval(before, after))
    assert row["p"] == pytest.approx(2 * (1 + 6) / 64)  # McNemar's: at most 1 of 6


def test_it_is_a_difference_only_where_the_exact_test_and_the_interval_agree(folder, capsys):
    """Of 32 questions 5 are lost and none is gained: p = 2 / 2^5 = 0.0625, and the interval is all below 0."""
    before, after = double([1] * 32, [1] * 32), double([0] * 5 + [1] * 27, [0] * 8 + [1] * 24)
    one, two, _ = compare(before, after, NAMES)
    assert one["p"] == 2 / 2**5 and one["difference_ci95"][1] < 0 and not one["differs"]
    assert two["p"] == 2 / 2**8 and two["differs"]  # and 8 are a difference
    said = say(capsys, folder("a", before), folder("b", after)).splitlines()
    assert said[1].endswith("p = 0.062, no measurable difference") and said[2].endswith("p = 0.0078")
    assert "exact sign-flip test over questions (McNemar's, with one answer to each)" in said[-1]


def test_samples_of_a_question_are_one_witness_and_their_numbers_may_differ():
    one, two = [0, 1, 1, 0, 1, 0], [1, 4, 4, 2, 4, 3]
    (row,) = compare(single(one), single(two, n=[4] * 6), NAMES)
    assert (row["first"], row["second"]) == (0.5, 0.75)
    assert row["difference_ci95"] == pytest.approx(paired_delta_interval(one, [right / 4 for right in two]))
    assert row["p"] == 2 / 2**3  # three questions changed, all for the better
    (many,) = compare(single([8 * right for right in one], n=[8] * 6), single(two, n=[4] * 6), NAMES)
    assert many["difference_ci95"] == pytest.approx(row["difference_ci95"]) and many["p"] == row["p"]
    (twice,) = compare(single([1, 0], n=[2, 1]), single([8, 2], n=[8, 4]), NAMES)  # one question stands in two rows
    assert (twice["first"], twice["second"]) == (pytest.approx(1 / 3), pytest.approx(10 / 12))
    low, high = twice["difference_ci95"]
    assert low < 0.5 < high


@pytest.mark.parametrize(
    ("ends", "difference"),
    [
        (((1, 0), (0, 1)), 2),
        (((0, 1), (1, 0)), -2),
        (((1, 1), (1, 1)), 0),
        (((0, 0), (0, 1)), 1),
        (((1, 0), (1, 1)), 1),
    ],
)
def test_the_interval_of_a_delta_that_no_question_changes_holds_it(ends, difference):
    (one, two), (three, four) = ends
    rows = compare(double([one] * 12, [two] * 12), double([three] * 12, [four] * 12), NAMES)
    (row,) = (row for row in rows if row["of"] == "delta")
    low, high = row["difference_ci95"]
    assert row["difference"] == difference and -2 <= low <= difference <= high <= 2
    assert high - low == pytest.approx(4 * wilson(0, 12)[1])


def test_two_attempts_have_three_differences():
    rows = compare(double([0, 0, 1, 1], [0, 1, 1, 1]), double([0, 1, 1, 1], [1, 1, 1, 1]), NAMES)
    assert [(row["of"], row["difference"]) for row in rows] == [
        ("acc_attempt1", 0.25), ("acc_attempt2", 0.25), ("delta", 0),
    ]  # fmt: skip


def test_intervals_and_p_values_of_equal_policies_hold_what_they_say():
    dice, covered, below = np.random.default_rng(0), 0, 0
    for _ in range(500):
        chance = dice.beta(0.5, 0.5, size=80)
        right = [dice.binomial(n, chance).tolist() for n in (4, 2)]
        (row,) = compare(single(right[0], n=[4] * 80), single(right[1], n=[2] * 80), NAMES)
        low, high = row["difference_ci95"]
        covered += low <= 0 <= high
        below += row["p"] < 0.05
    assert 0.92 <= covered / 500 <= 0.98 and 0.02 <= below / 500 <= 0.08


def test_the_script_compares_runs_and_moments(folder, capsys):
    a = folder("a", single([0, 0, 0, 1]), single([0, 1, 1, 1], when="after_training", step=9))
    b = folder("b", single([1, 1, 1, 1], when="after_training", step=9))
    assert re.search(r"pretrain.* after training.*\n.*25\.0 % -> 75\.0 % +\+50\.0 \[.*p = 0\.5", say(capsys, a))
    assert "75.0 % -> 100.0 %" in say(capsys, a, b)
    assert "25.0 % -> 100.0 %" in say(capsys, f"{a}@pretrain", b)
    assert "100.0 % -> 25.0 %" in say(capsys, b, f"{a}@stage1/step_0")
    assert "100.0 % -> 75.0 %" in say(capsys, b, str(Path(a) / "evaluations.jsonl"))


@pytest.mark.parametrize(
    ("second", "sources", "message"),
    [
        (single([1, 1], questions="others"), ["a", "b"], "answered different questions, 3 and 2 of them: measure both"),
        ({"when": "pretrain", "temperature": 1.0, "step": 0}, ["a", "b"], "has no results of single questions"),
        (double([1, 0, 1], [1, 1, 1], temperature=1.0), ["a", "b"], "one has two attempts, the other single answers"),
        (single([1, 1, 1], temperature=0.5), ["a", "b"], "no two evaluations that were answered in the same way"),
        (single([1, 1, 1]), ["a"], "no two evaluations that were answered in the same way"),
        (single([1, 1, 1]), ["a", "b@after_training"], "no such evaluation in"),
        (single([1, 1, 1]), ["a", "nowhere"], "nowhere: no evaluations there; give a run's folder"),
        (single([1, 1, 1]), ["a", "b", "a"], "takes one or two runs"),
        (single([1, 1, 1]), ["a", "b", "--config", "c.yaml"], "takes one or two runs"),
    ],
)
def test_what_cannot_be_compared_says_why(folder, tmp_path, monkeypatch, capsys, second, sources, message):
    folder("a", single([1, 0, 1])), folder("b", second)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=re.escape(message)):
        say(capsys, *sources)


def test_the_page_compares_one_run_and_several(folder):
    a = folder("a", single([0] * 6 + [1]), single([1] * 7, when="after_training", step=9))
    b = folder("b", single([0] * 7, when="after_training", step=9))
    c = folder("c", single([0] * 3, questions="others", when="after_training", step=9))

    def page(*runs):
        out = Path(a) / "page.html"
        assert call(report, *runs, "--out", out) == 0
        return out.read_text(encoding="utf-8").partition("In pairs")[2].partition("</section>")[0]

    assert "+85.7" in page(a) and f"{2 / 2**6:.2g}" in page(a)
    assert ">pretrain, temperature 1  →  after training, temperature 1<" in page(a)
    several = page(a, b, c)
    assert "-100.0" in several and "a, after training, temperature 1  →  b, after training" in several
    assert "answered different questions, 7 and 3 of them" in several
    assert page(b) == ""
