"""Rewards chosen row by row, and mixtures of data sets."""

from collections import Counter
from pathlib import Path

import pytest

import reward_function  # noqa: F401
from data.builders import write_rows
from lib.core.config import Reward, SelfPlayConfig, load
from lib.core.errors import ConfigError
from lib.core.registry import register_reward
from lib.rewards.judge import Judge, as_trl_reward
from lib.rewards.routing import JudgeByTask, judge_of_rows
from lib.rl.task import load_data
from lib.text.data import load_splits

ROOT = Path(__file__).parents[3]
CALLS = []


@register_reward("routing_calls")
def calls(predictions, right, answer):
    """A reward that remembers what it was asked about."""
    CALLS.append((predictions, answer))
    return [float(value) for value in right]


COLUMNS = ("task", "answer", "enumeration")
REWARD = Reward(
    by_task={
        "math": {"fn": "math", "format": "boxed"},
        "crossword": {"fn": {"crossword": 0.5}, "format": "answer"},
        "lines": {"fn": "routing_calls", "answer_extractor": "last_number"},
    }
)
ROWS = [
    {"task": "crossword", "answer": "NEAR", "enumeration": "4"},
    {"task": "math", "answer": "1/2", "enumeration": None},
    {"task": "lines", "answer": "7", "enumeration": None},
    {"task": "crossword", "answer": "FAR", "enumeration": "3"},
]
TEXTS = ["<answer>near</answer>", r"\boxed{\frac{1}{2}}", "it is 7", "<answer>near</answer>"]


def test_each_row_of_a_batch_is_judged_by_the_reward_of_its_task():
    judge = JudgeByTask(REWARD, COLUMNS, "answer")
    CALLS.clear()
    verdicts = judge(TEXTS, ROWS, ["?"] * 4)
    assert CALLS == [(["it is 7"], ["7"])]  # the rows of its task, once
    assert [verdict.reward for verdict in verdicts] == [0.5, 1, 1, 0]
    assert [verdict.match for verdict in verdicts] == [True, True, True, False]
    assert [verdict.task for verdict in verdicts] == ["crossword", "math", "lines", "crossword"]
    assert [list(verdict.components) for verdict in verdicts] == [
        ["crossword/answer"], ["math/math"], ["lines/routing_calls"], ["crossword/answer"]
    ]  # fmt: skip
    assert judge(TEXTS[::-1], ROWS[::-1]) == verdicts[::-1]
    swapped = judge([r"\boxed{NEAR}", "<answer>1/2</answer>", *TEXTS[2:]], ROWS)  # each in the other's format
    assert [(verdict.reward, verdict.well_formed) for verdict in swapped[:2]] == [(0, False), (0, False)]
    assert [judge.judge_of(row).format for row in ROWS] == ["answer", "boxed", "free", "answer"]
    assert judge.answer_of(ROWS[1]) == "1/2" and judge.reveals("it is 7", ROWS[2]) and judge.needs_targets
    assert judge([], []) == []


def test_trl_calls_it_by_columns():
    reward = as_trl_reward(JudgeByTask(REWARD, COLUMNS, "answer"))
    columns = {name: [row[name] for row in ROWS] for name in COLUMNS}
    assert reward(prompts=["?"] * 4, completions=TEXTS, completion_ids=None, trainer_state=None, **columns) == [
        0.5, 1, 1, 0
    ]  # fmt: skip
    chats = [[{"role": "assistant", "content": text}] for text in TEXTS]
    assert reward(prompts=["?"] * 4, completions=chats, **columns) == [0.5, 1, 1, 0]
    with pytest.raises(ConfigError, match=r"reward.by_task: no column 'task'"):
        reward(prompts=["?"], completions=TEXTS[:1], answer=["NEAR"], enumeration=["4"])


def test_mistakes_of_all_tasks_are_told_at_once():
    reward = Reward(by_task={"math": {"fn": "math", "options": {"reed": 1}}, "crossword": {"fn": "crossword"}})
    with pytest.raises(ConfigError) as caught:
        JudgeByTask(reward, ("task", "answer"), "answer")
    first, second = str(caught.value).splitlines()
    assert "reward.by_task.math: reward.options.reed: reward 'math' has no such option" in first
    assert "reward.by_task.crossword: reward 'crossword' needs by name 'enumeration'" in second
    with pytest.raises(ConfigError, match=r"no reward for the task 'mth' of a row; did you mean 'math'"):
        JudgeByTask(REWARD, COLUMNS, "answer")(["7"], [{"task": "mth", "answer": "7"}])
    with pytest.raises(ConfigError, match=r"use JudgeByTask"):
        Judge(REWARD, COLUMNS, "answer")


SELFPLAY = """
run_name: mixed
model: {{name: some/model}}
prompts: {{user: "{{question}}"}}
generation: {{max_prompt_length: 64, max_new_tokens: 64}}
dataset: {dataset}
reward: {reward}
"""


def config(tmp_path, dataset, reward="{}"):
    path = tmp_path / "mixed.yaml"
    path.write_text(SELFPLAY.format(dataset=dataset, reward=reward))
    return load(SelfPlayConfig, path)


def test_config_mistakes_have_their_place(tmp_path):
    with pytest.raises(ConfigError) as caught:
        config(tmp_path, "{mixture: {a: {name: x, weight: 0}, b: {colums: {}}}}", "{by_task: {m: {fn: mth}}}")
    told = str(caught.value)
    for sentence in ("dataset.mixture.a.weight: should be greater than 0, got 0",
                     "dataset.mixture.b.colums: unknown key; did you mean 'columns'?",
                     "dataset.mixture.b.name: is missing and has no default: add it",
                     "reward.by_task.m.fn: unknown reward 'mth'; did you mean 'math'?"):  # fmt: skip
        assert sentence in told
    with pytest.raises(ConfigError) as caught:
        config(
            tmp_path,
            "{name: y, split: train, test_split_size: 1, mixture: {a: {name: x}, b: {name: x}}}",
            "{match: math, by_task: {m: {fn: format_and_match}}}",
        )
    told = str(caught.value)
    for sentence in ("dataset.name: give one of the two", "dataset.split: with a mixture each part has its own",
                     "dataset.test_split_size: 1 held-out rows are too few for 2 parts",
                     "reward.match: with by_task each task has",
                     "reward.by_task.m.format: 'format_and_match' pays for blocks"):  # fmt: skip
        assert sentence in told
    with pytest.raises(ConfigError, match=r"dataset.name: is missing: give a source, or several in a mixture"):
        config(tmp_path, "{test_split_size: 3}")


def write(path, rows):
    write_rows(path, rows)
    return path


@pytest.fixture
def mixed(tmp_path):
    """A config of two parts, 3 to 1, with other names for their columns."""
    sums = write(tmp_path / "sums.jsonl", [{"question": f"{n}+1", "answer": str(n + 1)} for n in range(400)])
    clues = [{"clue": f"word {n}", "gold": "NEAR", "enumeration": "4", "question": 0} for n in range(70)]
    words = write(tmp_path / "clues.jsonl", [*clues, {"clue": "5+1", "gold": "SIX", "enumeration": "3", "question": 0}])
    parts = (
        f"{{sums: {{name: {sums}, weight: 3, task: math}}, "
        f"crossword: {{name: {words}, columns: {{question: clue, answer: gold}}}}}}"
    )

    def load_mixed(**more):
        extra = "".join(f", {key}: {value}" for key, value in more.items())
        return config(
            tmp_path, f"{{mixture: {parts}, target_field: answer, test_split_size: 40{extra}}}",
            "{by_task: {math: {fn: math}, crossword: {fn: crossword}}}",
        )  # fmt: skip

    return load_mixed


def splits_of(config):
    return load_splits(config.dataset, ("question",), lambda row: row["question"])


def test_a_mixture_takes_each_part_in_its_share_from_train_and_test(mixed):
    splits = splits_of(mixed())
    assert Counter(row["task"] for row in splits.test) == {"math": 30, "crossword": 10}
    counts = Counter(row["task"] for row in splits.train)
    assert 58 <= counts["crossword"] <= 61 and counts["math"] == 3 * counts["crossword"]
    for rows in (splits.train, splits.test):  # any first rows have both
        assert Counter(row["task"] for row in rows[:8]) == {"math": 6, "crossword": 2}
        assert all(set(row) == {"question", "answer", "enumeration", "task"} for row in rows)
    assert all((row["enumeration"] is None) == (row["task"] == "math") for row in splits.train)
    assert all(row["answer"] in ("NEAR", "SIX") for row in splits.train if row["task"] == "crossword")
    asked = [row["question"] for row in splits.train]
    assert len(set(asked)) >= len(asked) - 1 and not set(asked) & {row["question"] for row in splits.test}
    assert "clues.jsonl" in str(splits.train_places[[row["task"] for row in splits.train].index("crossword")])
    assert any(note.startswith("mixture.crossword: trains on") for note in splits.notes)


def test_a_mixture_is_the_same_again_and_its_seed_draws_other_rows(mixed):
    splits, again, other = (splits_of(mixed(**more)) for more in ({}, {}, {"mixture_seed": 1}))
    assert splits.fingerprint == again.fingerprint != other.fingerprint
    assert splits.test == other.test and splits.train != other.train
    few = splits_of(mixed(max_train_rows=20))
    assert Counter(row["task"] for row in few.train) == {"math": 15, "crossword": 5}
    assert few.test == splits.test


def test_a_row_that_asks_what_another_part_holds_out_is_removed(tmp_path):
    same = [{"question": f"{n}+1", "answer": str(n + 1)} for n in range(60)]
    parts = [write(tmp_path / f"{name}.jsonl", same) for name in "ab"]
    mixture = "{mixture: {" + ", ".join(f"{path.stem}: {{name: {path}}}" for path in parts) + "}, test_split_size: 20}"
    splits = splits_of(config(tmp_path, mixture))
    assert not {row["question"] for row in splits.train} & {row["question"] for row in splits.test}


def test_the_judge_of_a_mixture_knows_the_columns_of_each_task(mixed):
    splits, judge = load_data(mixed())
    assert isinstance(judge, JudgeByTask)
    texts = [row["answer"].lower() for row in splits.train]
    assert all(verdict.match for verdict in judge(texts, splits.train))
    with pytest.raises(ConfigError, match=r"reward.by_task.math: reward 'crossword' needs by name 'enumeration'"):
        judge_of_rows(Reward(by_task={"math": {"fn": "crossword"}, "crossword": {}}), splits, "answer")
    with pytest.raises(ConfigError, match=r"no reward for the task 'crossword' of a row .*clues.jsonl"):
        judge_of_rows(Reward(by_task={"math": {}}), splits, "answer")


def test_a_missing_part_is_named(tmp_path):
    wrong = config(tmp_path, "{mixture: {sums: {name: ./no/such.jsonl}}, test_split_size: 1}")
    with pytest.raises(ConfigError, match=r"dataset.mixture.sums: dataset.name: there is no file or folder"):
        splits_of(wrong)
