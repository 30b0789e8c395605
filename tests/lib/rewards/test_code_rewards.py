"""Rewards that run programs, from a text to an optimizer step, in the sandbox that holds on this machine."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from conftest import chatterbox
from helpers import tiny
from helpers.judges import judge_by
from helpers.leaves import by_rollout, changed, rollouts_of
from helpers.tiny import logged, score_run, weights

import train
from judge import pool
from judge.worker import CaseVerdict, ProgramVerdict
from lib.core.errors import ConfigError, NumericError
from lib.core.registry import register_reward

pytestmark = pytest.mark.usefixtures("shared_sandbox")
ROOT = Path(__file__).parents[3]
ROW = {"prompt": "Define `add(a, b)`.", "tests": ["assert add(1, 2) == 3", "assert add(2, 2) == 4"]}
RIGHT = "def add(a, b):\n    return a + b\n"
HALF = "def add(a, b):\n    return a * b\n"  # 2 * 2 is 2 + 2
SLOW = "def add(a, b):\n    while True:\n        pass\n"
WEIGHTS = {"code": 2, "code_tests": 1, "code_rewards_thorough": 0.5}


@register_reward("code_rewards_thorough")
def thorough(predictions):
    return [float(len(text) > 20) for text in predictions]


def block(program, before="", after=""):
    return f"{before}```python\n{program}```\n{after}"


def judge_of(reward="code", row=ROW, **options):
    return judge_by(reward, list(row), None, answer_extractor="code", options=options)


def judged(texts, reward="code", row=ROW, **options):
    return judge_of(reward, row, **options)(texts, [row] * len(texts))


def test_the_share_of_tests_whatever_stands_around_the_program():
    texts = [RIGHT, block(HALF, "I think\n"), block(SLOW.replace("while True", "if False")), "", "```python\n" + RIGHT]
    scores = judged(texts, "code_tests")
    assert [score.reward for score in scores] == [1.0, 0.5, 0.0, 0.0, 0.0]  # the last block is not closed
    assert [score.match for score in scores] == [True, False, False, False, False]
    assert scores[1].about.endswith(": wrong pass (assert add(1, 2) == 3; add(1, 2) answered 2)")
    assert scores[0].about == f"{pool.shared().rung.name}: pass pass"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (block(RIGHT, after="Final answer: above"), {"tests": 0.8, "conciseness": 0.2}),
        (block(HALF, after="final answer: above"), {"tests": 0.4}),
        (block(SLOW, after='{"final_answer": 1}'), {"timeout": -0.05}),
        (block(RIGHT), {"format": -0.07}),  # no marker
        (block(RIGHT, "final answer:\n"), {"format": -0.07}),  # in front of the block
        (block(RIGHT) + block(RIGHT, after="final answer:"), {"format": -0.07}),
        (RIGHT + "final answer:", {"format": -0.07}),
        ("", {"format": -0.07}),
        (f"<think>{block(HALF)}</think>" + block(RIGHT, after="Final answer: it"), {"tests": 0.8, "conciseness": 0.2}),
    ],
)
def test_components_of_the_gated_reward(text, parts):
    [score] = judged([text], row=ROW | {"timeout_s": 0.3})
    assert {name: value for name, value in score.components.items() if value} == pytest.approx(parts)
    assert score.reward == pytest.approx(sum(parts.values()))
    assert score.match == (parts.get("tests") == 0.8)


def test_a_program_that_runs_on_until_it_is_cut_off_is_malformed():
    text = block(RIGHT, after="final answer: above. And then")
    for reward, earned in (("code", -0.07), ("code_tests", 0.0)):
        judge = judge_of(reward)
        whole, cut = judge([text] * 2, [ROW] * 2, finished=[True, False])
        assert whole.match and whole.reward == 1 and not cut.match and cut.reward == pytest.approx(earned)
        assert cut.malformed == "cut off by the token limit"


@pytest.mark.parametrize(("words", "bonus"), [(190, 0.2), (350, 0.1), (600, 0.0)])
def test_a_right_program_earns_more_the_shorter_it_is(words, bonus):
    text = block(RIGHT)
    padding = words - len(text.split())
    [score] = judged([" ".join(["well"] * padding) + "\n" + text], final_answer="ignored")
    assert score.components["conciseness"] == pytest.approx(bonus, abs=1e-9)
    assert score.reward == pytest.approx(0.8 + bonus)


def test_a_part_that_can_not_matter_is_no_part():
    text = block(RIGHT, after="final answer: it")
    required, rewarded, ignored = (
        judged([text], final_answer=choice)[0].components for choice in ("required", "rewarded", "ignored")
    )
    assert "style" not in required and "style" not in ignored
    assert (rewarded["style"], rewarded["tests"]) == (0.05, pytest.approx(0.75))
    for choice in ("required", "rewarded", "ignored"):
        assert judged([text], final_answer=choice)[0].reward == pytest.approx(1.0)
    assert judged([block(RIGHT)], final_answer="rewarded")[0].reward == pytest.approx(0.95)


def test_programs_that_read_and_print():
    row = {"stdio": [{"stdin": "3\n", "stdout": "9\n"}, {"stdin": "4", "stdout": "16"}]}
    texts = ["print(int(input()) ** 2)", "print(9)", "x = int(input())\nexit(3)"]
    assert [score.reward for score in judged(texts, "code_tests", row)] == [1.0, 0.5, 0.0]


def test_equal_programs_run_once():
    before = pool.shared().counts.copy()
    row = ROW | {"tests": ["assert add(11, 2) == 13"]}
    assert [score.reward for score in judged([RIGHT] * 6, "code_tests", row)] == [1.0] * 6
    judged([block(RIGHT, after="final answer:")], row=row)  # another reward, and other words around it
    counts = pool.shared().counts - before
    assert (counts["programs"], counts["remembered"]) == (1, 6)


def test_what_was_begun_is_not_run_again():
    row = ROW | {"tests": ["assert add(21, 2) == 23"]}
    judge = judge_of("code", row)
    before = pool.shared().counts.copy()
    text = block(RIGHT, after="final answer:")
    judge.begin(text, row)
    assert (pool.shared().counts - before)["programs"] == 1
    assert judge([text], [row])[0].reward == pytest.approx(1.0)
    assert (pool.shared().counts - before)["programs"] == 1
    assert judge_of("exact_match").begin is None


def test_mistakes_in_the_options_are_told_at_once():
    with pytest.raises(ConfigError) as caught:
        judged([""], concisenes=0.1, style="much")
    lines = str(caught.value).splitlines()
    assert "reward.options.concisenes: reward 'code' has no such option; did you mean 'conciseness'?" in lines
    assert "reward.options.style: got 'much', expected a float such as 0.05" in lines
    with pytest.raises(ConfigError, match="final_answer: got 'requierd', expected one of required, rewarded, ignored"):
        judged([""], final_answer="requierd")


def test_a_row_that_is_no_task_is_found_before_training():
    judge = judge_of("code_tests")
    judge.check([ROW, {"stdio": [{"stdin": "", "stdout": ""}]}])
    for row, reason in (
        ({"tests": "assert add(1, 2) == 3"}, "tests: got 'assert add"),
        ({"tests": []}, "neither of tests and stdio"),
        ({"tests": ["assert f(g(1)) == 2"]}, "entry_points: cannot be inferred"),
    ):
        with pytest.raises(ConfigError, match=f"row 2 is not a programming task: .*{reason}"):
            judge.check([ROW, row])
        with pytest.raises(ConfigError, match=f"line 9 of 'a' is not a programming task: .*{reason}"):
            judge.check([ROW, row], ["line 7 of 'a'", "line 9 of 'a'"])


def test_tests_that_can_not_be_relied_on_are_found_before_training():
    judge = judge_of()
    judge.check([ROW | {"solution": "I add them up.", "prompt": ""}])  # columns that no judgement needs
    always = ROW | {"tests": ["assert (add(1, 2) == 3, 'a sum')"]}
    empty = ROW | {"tests": ["add(1, 2)"]}
    with pytest.raises(
        ConfigError, match=r"2 of 3 rows cannot be relied on: .*asserts a tuple.*row 1.*has no assert.*row 3"
    ) as told:
        judge.check([always, ROW, empty])
    assert "check_code_tasks.py FILE --clean" in str(told.value) and "\n" not in str(told.value)


def test_programs_and_texts_are_paid_together():
    """The tests decide what is right; a text that the gate refuses earns nothing for being boxed, nor for its tests."""
    judge = judge_of(WEIGHTS, code={"conciseness": 0.1})
    texts = [block(RIGHT, after="final answer:"), block(HALF, after="final answer:"), block(RIGHT)]
    scores = judge(texts, [ROW] * 3)
    assert [score.match for score in scores] == [True, False, False]
    assert [score.well_formed for score in scores] == [True, True, False]
    assert [score.reward for score in scores] == [pytest.approx(each) for each in (2 + 1 + 0.5, 0.9 + 0.5 + 0.5, -0.14)]
    assert scores[0].components["code/tests"] == pytest.approx(1.8) and scores[0].components["code_tests/tests"] == 1
    assert judge.begin is not None and not judge.needs_targets


def test_a_fault_of_the_sandbox_is_no_reward(monkeypatch):
    faulty = ProgramVerdict((CaseVerdict("infra_error", "4 workers were lost"),), "R3")
    monkeypatch.setattr(pool.Sandbox, "judge", lambda self, programs: [faulty] * len(programs))
    for reward, text in (("code_tests", RIGHT), ("code", block(RIGHT, after="final answer:"))):
        [score] = judged([text], reward)
        assert (score.scored, score.match, score.components) == (False, False, {})
        assert score.about == "R3: infra_error (4 workers were lost)"
    [score] = judged([block(RIGHT, after="final answer:")], WEIGHTS)
    assert (score.scored, score.reward) == (False, 0)
    assert judged([RIGHT], "code")[0].scored  # no program, so nothing that could go wrong


def test_what_a_program_prints_at_the_first_test_that_it_failed_is_told():
    loud = f"import sys\nprint('a' + 'x' * 9999, file=sys.stderr)\n{HALF}print('top', __name__)\n"
    loud += "if __name__ == '__main__':\n    print('not shown')\n"
    texts, row = [block(loud), block(RIGHT), block(SLOW), "def add("], ROW | {"timeout_s": 0.3}
    verdicts = judged(texts, "code_tests", row)
    judge = judge_of("code_tests")
    told = judge.explain(texts, [row] * 4)
    stderr = told[0].pop("stderr")
    assert told[0] == {
        "test": 0,
        "verdict": "wrong",
        "why": "assert add(1, 2) == 3; add(1, 2) answered 2",
        "stdout": "top solution\n",
    }
    assert stderr.endswith('File "test", line 1, in <module>\nAssertionError\n') and len(stderr) == 400
    assert told[1] == {}
    assert (told[2]["verdict"], told[2]["stdout"]) == ("timeout", "")
    assert told[3]["verdict"] == "load_error" and "SyntaxError" in told[3]["stderr"]
    assert verdicts == judged(texts, "code_tests", row)


def test_what_is_told_of_a_script_is_clean_and_short():
    row = {"prompt": "", "stdio": [{"stdin": "1", "stdout": "2"}, {"stdin": "2", "stdout": "4"}]}
    judge = judge_of({"code": 1, "code_tests": 1}, row)
    echo = block("n = input()\nprint('\\x1b[2J' + n + '\\n\\x9b' + 'y' * 9999)\n", after="final answer:")
    (told,) = judge.explain([echo], [row])
    assert (told["test"], told["stderr"]) == (0, "")
    assert told["stdout"].startswith("�[2J1\n�yy") and len(told["stdout"]) == 400
    many = judge.explain([f"print({n})" for n in range(20)], [row] * 20)
    assert [bool(verdict) for verdict in many] == [True] * 8 + [False] * 12
    assert judge_of("exact_match").explain(["a"], [{}]) == [{}]


# -- in a run


CONFIG = {
    "run_name": "programs",
    "model": tiny.model(4, 128),
    "dataset": {"name": "rows.jsonl", "target_field": "solution", "test_split_size": 16},
    "prompts": {"user": "{prompt}", "self_correction": "again"},
    "reward": {"fn": "code_tests", "answer_extractor": "code"},
    "sandbox": {"workers": 2, "allow_unsafe": True},
    "generation": tiny.limits(prompts=(32, 64), answers=(12, 12)),
    "optimizer": {"learning_rate": 0.003},
    "train": tiny.stages((8, 8), 8, beta2=0.01),
    "eval": {"max_examples": 16, "temperature": 1.0, "samples_per_prompt": 8},
}


@pytest.fixture(scope="module")
def writer(tmp_path_factory):
    """A model that writes `print(7)`, or one time in four `print(8)`."""
    chain = {last: {next: 1} for last, next in zip("print", "rint(", strict=True)}
    chain |= {"<|assistant|>": {"p": 1}, "(": {"7": 0.75, "8": 0.25}, "7": {")": 1}, "8": {")": 1}}
    return chatterbox(tmp_path_factory.mktemp("writer"), chain)


@pytest.fixture
def folder(tmp_path, monkeypatch, writer):
    monkeypatch.chdir(tmp_path)
    rows = [
        {"prompt": f"q{number}", "stdio": [{"stdin": "", "stdout": "8\n"}], "solution": "print(8)"}
        for number in range(64)
    ]
    tiny.write_task(tmp_path, CONFIG, writer, rows)
    return tmp_path


def test_a_policy_learns_to_write_what_the_sandbox_finds_right(folder):
    assert tiny.call(train, "--config", "tiny.yaml") == 0
    rows = logged("evaluations", "programs")
    low, high = rows[0]["acc_attempt1_ci95"]
    assert low < 0.25 < high
    assert rows[-1]["acc_attempt2"] > 0.6
    assert rows[-1]["reward/tests_attempt2"] == rows[-1]["acc_attempt2"]
    texts = logged("generations", "programs")
    rung = pool.shared().rung.name
    assert {row["about2"] for row in texts} >= {f"{rung}: pass"}
    assert all(row["match2"] == (row["attempt2"] == "print(8)") for row in texts)


def test_failures_tell_what_the_programs_of_unsolved_prompts_printed(folder):
    run = score_run("train.attempts_per_prompt=2", "train.revisions_per_attempt=1")
    with run.open():
        trees = run.sample(run.stages[0])
        rollouts = rollouts_of(trees)
        run._keep_texts("train", trees)
        rows = logged("failures", "programs")
    solved = {r.row["prompt"] for r in rollouts if r.score1.match or r.score2.match}
    assert {row["row"]["prompt"] for row in rows} == {r.row["prompt"] for r in rollouts} - solved != set()
    assert all((row["failed"]["stdout"], row["failed"]["verdict"]) == ("7\n", "wrong") for row in rows)


def step_with(unscored, reward):
    """The weights after a step of stage II in which some second attempts could not be judged; and the step's row."""
    run = score_run(f"run_name=r{reward}")
    run.progress.stage = 2
    with run.open():
        trees = run.sample(run.stages[1])
        lost = {rollout.second for i, rollout in enumerate(rollouts_of(trees)) if i in unscored}

        def unjudged(number, answer):
            verdict = answer.verdict._replace(scored=False, reward=reward, match=False)
            return replace(answer, verdict=verdict) if number in lost else answer

        trees = changed(trees, unjudged)
        credit = run.credit(run.stages[1], trees)
        row = run.update(run.stages[1], trees, credit)
    return weights(run), by_rollout(credit, rollouts_of(trees)), row


def test_what_was_not_judged_is_not_in_the_loss(folder):
    unscored = [2, 3, 11]
    ends, credit, row = step_with(unscored, 0.0)
    others = [index for index in range(len(credit.weight2)) if index not in unscored]
    assert not credit.weight2[unscored].any() and not credit.advantage2[unscored].any()
    assert credit.weight2[others].all()
    assert credit.advantage2[10] == 0  # its only sibling is 11: nobody to compare with
    assert row["unscored"] == pytest.approx(0.5 * len(unscored) / len(credit.weight2))
    assert torch.equal(ends, step_with(unscored, 100.0)[0])
    assert not torch.equal(ends, step_with([], 0.5)[0])


def test_the_shipped_config_runs_small(writer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    overrides = [f"model.name={writer}", f"dataset.name={ROOT / 'data/code_tasks.jsonl'}", "model.max_seq_length=8192",
                 "generation.max_prompt_length_attempt1=2000", "generation.max_prompt_length_attempt2=4000",
                 "sandbox.allow_unsafe=true"]  # fmt: skip
    with pytest.raises(NumericError, match="the gradient was exactly zero"):  # this model writes one text alone
        tiny.call(train, "--config", ROOT / "configs/code_tasks.yaml", "--smoke", "8", *overrides)
    texts = logged("generations", "score-code-tasks-smoke")
    assert {row["about1"] for row in texts} == {"not in the required format"}
    assert {row["reward1"]["format"] for row in texts} == {-0.07}
