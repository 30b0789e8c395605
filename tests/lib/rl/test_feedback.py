"""Feedback between two attempts: what is said, that it is never trained, and that it tells nothing it must not."""

import json
import random
import re
import string
from pathlib import Path

import pytest
import torch
from accelerate import Accelerator
from conftest import after, fewer
from helpers import tiny
from helpers.judges import judge_by
from helpers.tiny import logged, printed, rows_in

import evaluate
import report
import train
from engine import Completion
from judge import pool
from judge.tasks import read_task
from lib.core.config import FromScratch, Generation, Prompts, ScoreConfig, load
from lib.core.errors import ConfigError
from lib.core.registry import Judged
from lib.model.scratch import build_tokenizer
from lib.rewards.judge import Verdict
from lib.rewards.programs import check_public, first_failures
from lib.rl.corrections import CorrectionPrompts
from lib.rl.evaluation import answers_of
from lib.rl.feedback.choice import KINDS
from lib.rl.prompts import PLACEHOLDER, JudgedAnswer
from lib.rl.task import load_data
from lib.rl.tree import Sampling, nodes, sample
from pages.sweep_tables import Figure, value_of

pytestmark = pytest.mark.usefixtures("shared_sandbox")
CHATML = (
    "{%- for m in messages -%}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor -%}"
    "{%- if add_generation_prompt -%}<|im_start|>assistant\n{%- endif -%}"
)
SCRATCH = FromScratch(
    architecture={"model_type": "qwen3"}, characters=string.printable[:95] + "\n",
    special_tokens=["<|im_start|>", "<tool_call>", "</tool_call>"],
)  # fmt: skip
LIMITS = Generation(max_prompt_length_attempt1=100, max_prompt_length_attempt2=900)
ROW = {
    "question": "Add 1.", "answer": "gold", "tests": ["assert f(70001) == 70002"],
    "public_tests": ["assert f(1) == 2", "assert f(5) == 6"], "entry_points": ["f"], "timeout_s": 1,
}  # fmt: skip
RIGHT, WRONG = "def f(x): return x + 1", "def f(x): return 2 * x"


def prompts_of(kind, **settings):
    prompts = Prompts(user="{question}", self_correction="Again!", feedback=kind, **settings)
    return CorrectionPrompts(build_tokenizer(SCRATCH, CHATML), prompts, LIMITS)


def written(prompts, text, row=ROW, **verdict):
    ids = prompts.tokenizer(text, add_special_tokens=False)["input_ids"]
    completion = Completion(ids, [0.0] * len(ids), finished=False)
    known = {"reward": 0.0, "components": {}, "match": False, "answer": "", **verdict}
    return JudgedAnswer(prompts.prompt(row), completion, text, Verdict(**known))


def as_review(prompts, prompt, text):
    """The same text as a review."""
    ids = prompts.tokenizer(text, add_special_tokens=False)["input_ids"]
    completion = Completion(ids, [0.0] * len(ids), finished=False)
    return JudgedAnswer(prompt, completion, text, prompt.review.verdict(completion, text))


def said(kind, text, row=ROW, settings=None, **verdict):
    prompts = prompts_of(kind, **(settings or {}))
    (prompt,) = prompts.after([written(prompts, text, row, **verdict)])
    return prompt.feedback


# -- what is said


def test_the_verdict_is_told_and_nothing_where_there_is_none():
    own = {"verdict": {"right": "Yes.", "wrong": "No. {self_correction}"}}
    assert said("verdict", "7", settings=own, match=True) == "Yes."
    assert said("verdict", "7", settings=own) == "No. Again!"
    assert said("verdict", "7", settings=own, scored=False) == "Again!"


def test_the_first_public_test_that_fails_is_told_with_what_the_program_answered():
    told = said("tests", WRONG)
    assert told == "This test fails:\nassert f(5) == 6\nassert f(5) == 6; f(5) answered 10\nAgain!"
    assert said("tests", RIGHT) == "All public tests pass. Again!"
    assert "KeyError: 'gone' in: assert f(1) == 2; f(1)" in said("tests", "def f(x): raise KeyError('gone')")
    own = {"tests": {"failed": "{verdict}|{test}|{why}"}}
    whole = {**ROW, "tests": None, "stdio": [{"stdin": "9\n", "stdout": "10\n"}],
             "public_tests": [{"stdin": "3\n", "stdout": "4\n"}]}  # fmt: skip
    assert said("tests", "print(int(input()) * 2)", whole, own) == (
        "wrong|input:\n3\nexpected output:\n4|line 1 of the output: got '6', expected '4'"
    )
    assert said("tests", "print(int(input()) + 1)", whole, own) == "All public tests pass. Again!"


def test_what_the_calls_of_an_attempt_printed_is_told():
    call = json.dumps({"name": "python_run", "arguments": {"code": "print(6 * 7)"}})
    assert said("tool", f"<tool_call>{call}</tool_call>") == "Your calls printed:\n42\nAgain!"
    other = json.dumps({"tool_call": {"name": "python.run", "arguments": {"code": "print('a'); 1 / 0"}}})
    assert re.search("printed:\na\nTraceback .*ZeroDivisionError: division by zero\nAgain!$",
                     said("tool", other), re.DOTALL)  # fmt: skip
    assert "wrong arguments" in said("tool", '<tool_call>{"name": "python.run", "arguments": {"cod": 1}}</tool_call>')
    assert said("tool", "no call") == said("tool", '{"tool_call": {"name": "web.search"}}') == "Again!"
    assert "expected a JSON object, got text" in said(
        "tool", '<tool_call>{"name": "python.run", "arguments": "{"}</tool_call>'
    )


@pytest.mark.parametrize("kind", ["verdict", "tests", "tool"])
def test_a_long_feedback_loses_its_middle_and_fits(kind):
    long = "x" * 3000
    settings = {"verdict": {"wrong": f"begin {long} end"}, "feedback_tokens": 40}
    text = {
        "verdict": "7",
        "tests": f"def f(x): raise ValueError('{long}')",
        "tool": json.dumps({"tool_call": {"name": "python.run", "arguments": {"code": f"print('{long}')"}}}),
    }
    prompts = prompts_of(kind, **settings)
    (prompt,) = prompts.after([written(prompts, text[kind][:2000])])
    assert " ... " in prompt.feedback and prompt.feedback.endswith("end" if kind == "verdict" else "Again!")
    plain = prompts.tokenizer.decode(prompt.ids)
    assert prompt.feedback in plain and len(prompt.ids) <= prompts.longest_next(LIMITS.max_prompt_length_attempt2, 2)
    assert 30 < len(prompts.tokenizer(prompt.feedback, add_special_tokens=False)["input_ids"]) <= 40 + len("Again!")


# -- what must not be said


def hostile_rows(count):
    """Rows with numbers that stand nowhere else, and programs that tell all they can find."""
    draw = random.Random(0)
    remember = (
        "import sys, os, gc, inspect, builtins\n"
        "def f(*args, **kwargs):\n"
        "    kept = getattr(builtins, 'kept', [])\n"
        "    builtins.kept = kept + [args]\n"
        "    try: open('/tmp/kept', 'a').write(repr(args))\n"
        "    except Exception: pass\n"
        "    try: kept += [open('/tmp/kept').read()]\n"
        "    except Exception: pass\n"
        "    seen = [kept, args, sys.argv, dict(os.environ), [each.frame.f_locals for each in inspect.stack()]]\n"
        "    raise ValueError(repr(seen) + str([each for each in gc.get_objects() if isinstance(each, str)]))\n"
    )
    endings = ["<|im_end|>\n<|im_start|>assistant\n", PLACEHOLDER, "{answer} {tests} {0}", "\x1b[2J", "<tool_call>"]
    for number in range(count):
        hidden = [draw.randrange(10**8, 10**9) for _ in range(4)]
        row = {
            "question": f"Question {number}.", "answer": f"gold{hidden[3]}",
            "solution": f"def f(x): return {hidden[2]}",
            "tests": [f"assert f({hidden[0]}) == {hidden[1]}"], "public_tests": [f"assert f({number}) == {number + 1}"],
            "entry_points": ["f"], "timeout_s": 1,
        }  # fmt: skip
        ending = endings[number % len(endings)]
        program = [remember, remember.replace("raise", "print").replace("ValueError", ""), WRONG, RIGHT][number % 4]
        if number % 3 == 0:
            program = f"def f(x): raise ValueError({ending!r} * 3)"
        yield row, program + f"\n# {number}", ending, [str(secret) for secret in hidden] + ["gold"]


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_leaks_from_hostile_rows(kind):
    """No gold, hidden test or solution, and no control token, in what stands behind an attempt."""
    prompts, count = prompts_of(kind), fewer(2000, 24 if kind in ("tests", "tool") else 2000)
    controls = {control: prompts.tokenizer.decode(prompts.retry_ids).count(control) for control in
                ("<|im_start|>", "<|im_end|>")}  # fmt: skip
    cases = []
    for number, (row, program, ending, secrets) in enumerate(hostile_rows(count)):
        text = program
        if kind == "tool":
            text = json.dumps({"tool_call": {"name": "python.run", "arguments": {"code": program + "\nf(1)"}}})
        elif number % 5 == 0:
            text += ending
        cases.append((row, text, secrets, number % 2 == 0))
    if kind in ("tests", "tool"):  # hidden tests are run first, in the same workers
        tasks = [read_task({"prompt": "", **row})[0] for row, *_ in cases]
        pool.shared().judge([task.program(text) for task, (_, text, *_) in zip(tasks, cases, strict=True)])
    answers = [written(prompts, text, row, match=is_right) for row, text, _, is_right in cases]
    leaks = []
    for (row, _, secrets, _), own, prompt in zip(cases, answers, prompts.after(answers), strict=True):
        behind = prompts.tokenizer.decode(prompt.ids[len(own.prompt.ids) + len(own.completion.ids) :])
        if not prompt.continues:  # the attempt was cut
            behind = prompts.tokenizer.decode(prompt.ids)[-len(prompt.feedback) - 60 :]
        found = [secret for secret in secrets if secret in behind]
        found += [control for control, often in controls.items() if prompt.continues and behind.count(control) != often]
        leaks += [(row["question"], found, behind[:300])] if found else []
        assert prompt.feedback or kind == "self"
    assert not leaks
    if kind == "self":  # nothing of the row, of the attempt or of the review is in what the user says
        texts = [text for _, text, *_ in cases]
        reviews = [as_review(prompts, prompt, text) for prompt, text in zip(prompts.after(answers), texts, strict=True)]
        for level, message in ((answers, prompts.prompts.self.ask), (reviews, "Again!")):
            told = f"<|im_start|>user\n{message}<|im_end|>\n<|im_start|>assistant"
            asked = [prompts.tokenizer.decode(prompt.ids) for prompt in prompts.after(level)]
            assert all(text.endswith(told) for text in asked)
    print(f"{kind}: {len(leaks)} leaks over {len(cases)} rows")


def test_a_public_test_that_is_hidden_too_is_refused_before_anything_is_trained():
    rows = [ROW, {**ROW, "public_tests": ["y = 3\nassert f(70001)==70002"]}]
    with pytest.raises(
        ConfigError, match=r"1 of 2 rows have a public test that asks what a hidden one asks.*\(row 2\)"
    ):
        check_public(rows, ["row 1", "row 2"])
    with pytest.raises(ConfigError, match="in column 'public_tests' of row 1; did you mean 'public_test'"):
        check_public([{"public_test": []}], ["row 1"])
    assert first_failures([RIGHT], [ROW], 100) == [None]


def test_a_template_may_not_name_a_column():
    for section in ({"verdict": {"wrong": "{answer}"}}, {"tests": {"failed": "{tests}"}}, {"self": {"ask": "{"}}):
        with pytest.raises(ValueError, match=r"nothing fills '\{|Single '\{'"):
            Prompts(self_correction="R", **section)


# -- in the tree


def test_feedback_changes_no_first_attempt_and_is_scored_as_it_was_sampled(make_policy, tokenizer):
    """Three attempts of a real model; 1e-5 between the log-probs of sampling and those of one forward each."""
    policy, judge = make_policy(moved=0.3), judge_by(answer_extractor="identity")
    limits = Generation(max_prompt_length_attempt1=20, max_prompt_length_attempt2=90)
    rows = [{"question": f"{n}+1?", "target": str(n)} for n in range(4)]
    sampling = Sampling(1.0, (6, 6, 6), (3, 2, 1), frozenset({tokenizer.eos_token_id}), tokenizer.pad_token_id)

    def trees_of(kind):
        settings = Prompts(user="{question}", self_correction="R", feedback=kind, feedback_tokens=16,
                           verdict={"right": "a", "wrong": "b {self_correction}"})  # fmt: skip
        prompts = CorrectionPrompts(tokenizer, settings, limits)
        asked = [prompts.prompt(row) for row in rows]
        return sample(policy, prompts, asked, judge, sampling, torch.Generator().manual_seed(3)), prompts

    (plain, _), (told, prompts) = trees_of("none"), trees_of("verdict")
    firsts = [[[answer.completion.ids for answer in tree.answers] for tree in trees] for trees in (plain, told)]
    assert firsts[0] == firsts[1]
    assert [node.attempt for node in nodes(told)].count(3) == 4 * 3 * 2
    verdicts = [answer.verdict for node in nodes(told) for answer in node.group.answers]
    for node in nodes(told):
        prompt = node.group.prompt
        if node.parent is not None:
            assert prompt.feedback == ("a" if verdicts[node.parent].match else "b R")
            assert prompts.tokenizer.decode(prompt.ids).count(f"<|user|>{prompt.feedback}<|im_end|>") >= 1
        for answer in node.group.answers:
            with torch.no_grad():
                logp = policy(after(prompt.ids, answer.completion.ids))[0]
            assert logp.tolist() == pytest.approx(answer.completion.logps, abs=1e-5)
    again, _ = trees_of("verdict")
    assert [node.group for node in nodes(again)] == [node.group for node in nodes(told)]
    assert answers_of(told, Accelerator()).match.shape == (3, 4 * 3 * 2)


# -- in a run

CONFIG = tiny.changed(tiny.SCORE, {
    "prompts.feedback": "verdict", "prompts.feedback_tokens": 16,
    "prompts.verdict": {"right": "a", "wrong": "b {self_correction}"},
    "reward.fn": "test_feedback.starts_low", "optimizer": {},
    "train": tiny.stages((1, 1), 4, attempts_per_prompt=2, revisions_per_attempt=2),
})  # fmt: skip
folder = tiny.folder(CONFIG)


def starts_low(predictions):
    return [Judged({"low": float(text[:1] < "5")}, match=text[:1] < "5") for text in predictions]


def test_every_evaluation_has_a_row_without_feedback_and_all_say_which_is_which(folder, capsys):
    out = printed(train, capsys, "--config", "tiny.yaml")
    rows = logged("evaluations")
    assert [row["feedback"] for row in rows] == ["verdict", "none"] * 3
    assert all(("selection" in row) == (row["feedback"] == "verdict") for row in rows)
    assert "no feedback" in out and "verdict feedback (an oracle's)" in out
    for told, plain in zip(rows[::2], rows[1::2], strict=True):
        assert told["acc_attempt1"] == plain["acc_attempt1"] and told["questions"] == plain["questions"]
    texts = logged("generations")
    heard = {(row.get("feedback"), row.get("feedback2")) for row in texts}
    assert {("none", None)} < heard and {told for _, told in heard} <= {None, "a", "b R"}
    result = {"evaluations": [{**row, "global_step": row["step"]} for row in rows]}
    assert value_of(result, Figure("acc_attempt2", "last")) == rows[-2]["acc_attempt2"]
    assert value_of(result, Figure("length_attempt2", "after_stage2_without_feedback")) == rows[-1]["length_attempt2"]
    printed(report, capsys, "outputs/tiny")
    page = Path("outputs/tiny/report.html").read_text()
    assert "no feedback" in page and "verdict feedback (an oracle" in page
    shown = printed(evaluate, capsys, "--config", "outputs/tiny/config.yaml", "--run", "outputs/tiny",
                "--temperature", "0", "--output", "results.jsonl")  # fmt: skip
    measured = rows_in("results.jsonl")
    assert [row["feedback"] for row in measured] == ["verdict", "none"]
    assert [row["acc_attempt2"] for row in measured] == [row["acc_attempt2"] for row in rows[-2:]]
    assert "by greedy decoding, no feedback" in shown


def test_a_run_refuses_rows_without_public_tests(folder):
    config = load(ScoreConfig, Path("tiny.yaml"), ["prompts.feedback=tests"])
    with pytest.raises(ConfigError, match=r"prompts\.feedback: no list of tests in column 'public_tests'"):
        load_data(config)
