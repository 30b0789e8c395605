"""Generated tasks of reasoning-gym: with the package where it is installed, and what is said where it is not."""

import importlib.util
import json

import pytest
from helpers.judges import judge_by

from lib.core.config import Dataset
from lib.core.errors import ConfigError
from lib.text import generated
from lib.text.data import load_splits

there = pytest.mark.skipif(
    importlib.util.find_spec("reasoning_gym") is None, reason="optional: pip install -r requirements-tasks.txt"
)


def load(task, test=4, **options):
    dataset = Dataset(name=f"reasoning_gym:{task}", test_split_size=test, options={"size": 6, **options})
    return load_splits(dataset, ("question",), lambda row: row["question"])


def test_without_the_package_one_sentence_names_it(monkeypatch):
    monkeypatch.setattr(generated.importlib.util, "find_spec", lambda name: None)
    generated._pool.cache_clear()
    with pytest.raises(ConfigError, match=r"needs the package reasoning-gym: pip install -r requirements-tasks.txt"):
        load("countdown")


def test_sizes_and_seeds_are_checked():
    for options in ({"size": 0}, {"seed": -1}, {"size": True}, {"seed": 10**6}):
        with pytest.raises(ConfigError, match=r"dataset.options.(size|seed): got .* expected a whole number"):
            load("countdown", **options)


@pytest.mark.parametrize("died", [generated.ProcessKilled, generated.Refused])
def test_a_scorer_that_hangs_or_raises_pays_nothing(monkeypatch, died):
    def ask(*request):
        raise died("no number")

    monkeypatch.setattr(generated, "_ask", ask)
    judge = judge_by("reasoning_gym", ("target", "entry"), format="answer")
    [found] = judge(["<answer>1</answer>"], [{"target": "1", "entry": json.dumps(["countdown", {}, 0])}])
    assert (found.reward, found.match, found.scored) == (0, False, True)


def test_only_a_full_score_in_its_place_is_right(monkeypatch):
    scores = {"half": 0.5, "full": 1.0, "nan": float("nan"), "huge": 9.0, "none": None}
    monkeypatch.setattr(generated, "_ask", lambda task, options, index, answer: scores[answer])
    texts = [f"<answer>{name}</answer>" for name in scores] + ["full"]
    rows = [{"target": "", "entry": json.dumps(["countdown", {}, 0])}] * len(texts)
    strict = judge_by("reasoning_gym", ("target", "entry"), format="answer")(texts, rows)
    partial = judge_by("reasoning_gym", ("target", "entry"), format="answer", options={"partial": True})(texts, rows)
    assert [score.reward for score in strict] == [0, 1, 0, 1, 0, 0]
    assert [score.reward for score in partial] == [0.5, 1, 0, 1, 0, 0]
    assert (
        [score.match for score in partial]
        == [score.match for score in strict]
        == [False, True, False, True, False, False]
    )


@there
def test_rows_are_the_same_again_and_splits_share_no_seed():
    splits, again = load("countdown", min_numbers=3, max_numbers=3), load("countdown", min_numbers=3, max_numbers=3)
    assert (len(splits.train), len(splits.test), splits.fingerprint) == (6, 4, again.fingerprint)
    seeds = [
        {options["seed"] + index for _, options, index in (json.loads(row["entry"]) for row in rows)}
        for rows in (splits.train, splits.test)
    ]
    assert seeds[0] == set(range(10**6, 10**6 + 6)) and seeds[1] == set(range(4))
    fewer = load("countdown", test=2, min_numbers=3, max_numbers=3).test
    assert [row["question"] for row in fewer] == [row["question"] for row in splits.test[:2]]
    generated._pool.cache_clear()  # another process
    assert load("word_ladder").fingerprint == load("word_ladder").fingerprint


@there
def test_answers_are_scored_by_the_task_itself():
    splits = load("countdown", min_numbers=3, max_numbers=3)
    judge = judge_by("reasoning_gym", ("question", "answer", "entry"), "answer", format="answer")
    judge.check(splits.train)
    row = splits.train[0]
    texts = [f"<answer>{text}</answer>" for text in (row["answer"], "1+1", "9**9**9**9", "(", row["answer"] + " = 3")]
    verdicts = judge([*texts, row["answer"]], [row] * 6)
    assert [verdict.reward for verdict in verdicts] == [1, 0, 0, 0, 0, 0]
    row = load("prime_factorization").train[0]
    verdicts = judge([f"<answer>{text}</answer>" for text in ("zzz", row["answer"])], [row] * 2)
    assert [verdict.reward for verdict in verdicts] == [0, 1]


@there
@pytest.mark.parametrize(
    ("task", "text"),
    [("game_of_life_halting", "no answer to anything"), ("complex_arithmetic", "nan"), ("coin_flip", "0")],
)
def test_a_scorer_that_pays_any_text_or_one_constant_is_refused(task, text):
    judge = judge_by("reasoning_gym", ("question", "answer", "entry"), "answer", format="answer")
    with pytest.raises(ConfigError, match=rf"its scorer pays '{text}'"):
        judge.check(load(task).train)


@there
def test_a_constant_that_is_right_on_some_rows_is_no_reason_to_refuse_the_task():
    judge = judge_by("reasoning_gym", ("question", "answer", "entry"), "answer", format="answer")
    for task in ("circuit_logic", "polynomial_equations"):
        judge.check(load(task, size=8).train)


@there
def test_mistakes_are_explained():
    with pytest.raises(ConfigError, match=r"reasoning-gym has no task 'countdwn'; did you mean 'countdown'"):
        load("countdwn")
    with pytest.raises(ConfigError, match=r"dataset.options: 'reasoning_gym:countdown' refuses"):
        load("countdown", no_such_option=3)


def test_its_process_is_bounded():
    assert generated.TASK.cpu_seconds <= 5 and generated.TASK.memory_bytes <= 8 << 30
