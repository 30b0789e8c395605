"""Reviews: turns of the policy between two attempts, which are no attempts, in everything that a run does."""

from pathlib import Path

import pytest
import torch
from accelerate import Accelerator
from conftest import after
from helpers.judges import judge_by
from helpers.tiny import logged, printed, rows_in
from test_feedback import folder as folder
from test_sequential import TREES

import evaluate
import report
import train
from engine import Completion
from lib.core.config import Generation, Prompts, ScoreConfig, ScoreTrain, load
from lib.core.errors import ConfigError
from lib.rewards.judge import Verdict
from lib.rl.batching import micro_batches, sequences
from lib.rl.corrections import CorrectionPrompts
from lib.rl.credit import advantages_of, credit_of, peers_of, scaled_by_role
from lib.rl.evaluation import answers_of, summarise
from lib.rl.prompts import Prompt
from lib.rl.recipes.choice import recipe_of
from lib.rl.recipes.contract import StepAnswers
from lib.rl.reviews import Review
from lib.rl.sequential import success_at_k
from lib.rl.tree import Answer, Group, Sampling, nodes, sample

ALONE = Accelerator()
SELF = (
    "prompts.feedback=self", "prompts.self.ask=c",
    "prompts.self.max_new_tokens=5", "train.attempts=3",
)  # fmt: skip
PHRASES = (("right", "The answer is right"), ("wrong", "The answer is wrong"))
KNOWN = {True: Verdict(1.0, {"x": 1.0}, True, "7"), False: Verdict(0.0, {"x": 0.0}, False, "8")}


def said(text, finished=True, phrases=PHRASES, about=True):
    return Review("check", KNOWN[about], phrases).verdict(Completion([1], [0.0], finished), text)


# -- what a review says


def test_a_check_is_right_if_it_judges_as_the_judge_does():
    for about in (True, False):
        for text, judgement in {"So the answer is right.": "right", "THE ANSWER IS WRONG!": "wrong"}.items():
            verdict = said(text, about=about)
            assert verdict.answer == judgement and verdict.match == ((judgement == "right") == about)
            assert verdict.reward == verdict.match == verdict.components["judgement"]
    nothing = ["The answer is right, I hope", "", "The answer is right or wrong", "notThe answer is right"]
    for text in nothing:  # what stands in the middle, or is cut off, is no judgement
        assert (said(text).answer, said(text).match, said(text).well_formed) == ("", False, False)
    assert said("The answer is right", finished=False).answer == ""
    both = said("The answer is right. The answer is wrong")
    assert both.answer == "wrong"  # its end counts
    assert (
        not Review("check", KNOWN[True]._replace(scored=False), PHRASES).verdict(Completion([], [], True), "x").scored
    )


def test_a_reflection_judges_nothing():
    verdict = said("The answer is right", phrases=())
    assert verdict.scored and verdict.well_formed and not verdict.match and not verdict.components


def test_phrases_that_one_text_could_end_in_are_refused(folder):
    for own in ("prompts.self.right=correct", "prompts.self.right=WRONG."):
        with pytest.raises(ConfigError, match="make them differ at the end"):
            load(ScoreConfig, Path("tiny.yaml"), [*SELF, own, "prompts.self.wrong=incorrect" if "correct" in own else
                                                 "prompts.self.wrong=wrong"])  # fmt: skip
    with pytest.raises(ConfigError, match="no one would judge"):
        load(ScoreConfig, Path("tiny.yaml"), [*SELF, "prompts.stop=self", "prompts.self.right=null"])
    with pytest.raises(ConfigError, match="set history: full"):
        load(ScoreConfig, Path("tiny.yaml"), [*SELF, "prompts.history=answer_only"])


# -- in the tree


def test_a_tree_with_reviews_is_scored_as_it_was_sampled(make_policy, tokenizer, monkeypatch):
    """Three attempts and two checks; 1e-5 between sampling, one forward each, and the packed forwards of training."""
    monkeypatch.setattr(Review, "judgement", lambda self, completion, text: ["right", "wrong"][sum(completion.ids) % 2])
    policy, judge = make_policy(moved=0.3), judge_by(answer_extractor="identity")
    limits = Generation(max_prompt_length_attempt1=20, max_prompt_length_attempt2=90, max_new_tokens_attempt2=6)
    rows = [{"question": f"{n}+1?", "target": str(n)} for n in range(4)]

    def trees_of(stop, copies=(3, 2, 1, 1, 1), budgets=(6, 4, 6, 4, 6), **more):
        own = {"feedback": "self", "self": {"ask": "a", "max_new_tokens": 4}, **more}
        settings = Prompts(user="{question}", self_correction="R", stop=stop, **own)
        prompts = CorrectionPrompts(tokenizer, settings, limits)
        sampling = Sampling(1.0, budgets, copies, frozenset({tokenizer.eos_token_id}), tokenizer.pad_token_id)
        asked = [prompts.prompt(row) for row in rows]
        return sample(policy, prompts, asked, judge, sampling, torch.Generator().manual_seed(3)), prompts

    trees, prompts = trees_of("never")
    found = nodes(trees)
    names = [node.name for node in found]
    assert [names.count(name) for name in ("attempt1", "check1", "attempt2", "check2", "attempt3")] == [
        4,
        12,
        24,
        24,
        24,
    ]
    assert max(node.turn for node in found) == 5 and max(node.attempt for node in found) == 3
    logps = {}
    verdicts = [answer.verdict for node in found for answer in node.group.answers]
    for node in found:
        prompt = node.group.prompt
        assert (prompt.review is None) == node.is_attempt and prompt.attempt == node.attempt
        assert prompt.turn == node.turn and (prompt.continues or node.turn == 1)
        if prompt.review:
            assert prompt.review.about == verdicts[node.parent]
        if node.turn > 1:
            message = "a" if prompt.review else "R"
            assert prompts.tokenizer.decode(prompt.ids).endswith(f"<|user|>{message}<|im_end|><|assistant|>")
        for number, answer in zip(node.numbers, node.group.answers, strict=True):
            with torch.no_grad():
                logps[number] = policy(after(prompt.ids, answer.completion.ids))[0]
            assert logps[number].tolist() == pytest.approx(answer.completion.logps, abs=1e-5)
    packed = {}
    for batch in micro_batches(
        sequences(found, should_share=lambda *_: True), 200, tokenizer.pad_token_id, policy.device
    ):
        for number, value in zip(batch.answer.tolist(), policy(batch.inputs)[0].tolist(), strict=True):
            packed.setdefault(number, []).append(value)
    assert packed.keys() == logps.keys()
    for number, values in packed.items():
        assert values == pytest.approx(logps[number].tolist(), abs=1e-5)
    plain, _ = trees_of("never", (3, 2, 1), (6, 6, 6), feedback="none")
    assert [[a.completion for a in tree.answers] for tree in plain] == [
        [a.completion for a in tree.answers] for tree in trees
    ]
    assert [node.group for node in nodes(trees_of("never")[0])] == [node.group for node in found]
    stopping = nodes(trees_of("self")[0])
    by_number = {n: a for node in stopping for n, a in zip(node.numbers, node.group.answers, strict=True)}
    parents = {node.parent for node in stopping}
    checks = [n for node in stopping if not node.is_attempt for n in node.numbers]
    assert {by_number[n].verdict.answer for n in checks} == {"right", "wrong"}
    assert all((n in parents) == (by_number[n].verdict.answer == "wrong") for n in checks)


def chat(*texts):
    """A tree of one chat, attempts and checks in turn; "1" is right, and `r` finds right, `w` wrong."""
    following = None
    for place in range(len(texts) - 1, -1, -1):
        text, is_check = texts[place], place % 2 == 1
        verdict = Verdict(float(text == "1"), {}, text == "1", text)
        prompt = Prompt({}, [0], "")
        if is_check:
            about = Verdict(0.0, {}, texts[place - 1] == "1", "")
            review = Review("check", about, (("right", "r"), ("wrong", "w")))
            verdict = review.verdict(Completion([1], [0.0], True), text)
            prompt = Prompt({}, [0], "", review=review)
        following = Group(prompt, [Answer(Completion([1, 2], [0.0, 0.0], True), text, verdict, following)])
    return following


def joined(*trees):
    return Group(trees[0].prompt, [answer for tree in trees for answer in tree.answers])


def test_evaluations_count_attempts_alone_and_tell_of_checks():
    trees = [joined(chat("1", "r"), chat("1", "w", "2"), chat("2", "w", "1"), chat("2", "r"))]
    found = answers_of(trees, ALONE, attempts=2)
    assert found.match.astype(int).tolist() == [[1, 1, 0, 0], [1, 0, 1, 0]]
    assert (found.length > 0).sum(axis=0).tolist() == [1, 2, 2, 1]
    row = summarise(found, 0.0)
    assert (row["acc_attempt1"], row["acc_attempt2"], row["i_to_c"], row["c_to_i"]) == (0.5, 0.5, 0.25, 0.25)
    assert (row["acc_check"], row["acc_check_right"], row["acc_check_wrong"]) == (0.5, 0.5, 0.5)
    assert row["attempts"] == 1.5 and row["length_review"] == 2.0
    always = summarise(answers_of([joined(chat("1", "r"), chat("1", "r"), chat("2", "r"))], ALONE, attempts=2), 0.0)
    assert (always["acc_check_right"], always["acc_check_wrong"]) == (1.0, 0.0)
    assert [part["succ"] for part in success_at_k(found, samples=4)] == [0.5, 0.75]
    assert "acc_check" not in summarise(answers_of(TREES, ALONE, attempts=3), 0.0)


# -- who is paid


def share_of_each_verifier(right_of_ten):
    """What four checks of each of ten attempts gain on average: two are honest, one always says right, one wrong.

    Nothing but what is paid, peers_of and scaled as in training.
    """
    trees = []
    for number in range(10):
        is_right = number < right_of_ten
        honest = "r" if is_right else "w"
        first = chat("1" if is_right else "2")
        about = first.answers[0].verdict
        review = Review("check", about, (("right", "r"), ("wrong", "w")))
        y = Completion([1], [0.0], True)
        checks = [Answer(y, text, review.verdict(y, text)) for text in (honest, honest, "r", "w")]
        own = Group(Prompt({}, [0], "", review=review), checks)
        trees.append(Group(first.prompt, [Answer(first.answers[0].completion, "", about, own)]))
    found = nodes(trees)
    rewards = [answer.verdict.reward for node in found for answer in node.group.answers]
    step = StepAnswers(found, rewards)
    recipe = recipe_of(ScoreTrain(recipe="pag"))
    paid = [value for node in found for value in recipe.paid(node, step, 2)]
    counts = [True] * len(paid)
    advantage = advantages_of("leave_one_out", peers_of(found, 2), paid, counts, ALONE)
    advantage = scaled_by_role(credit_of(found, advantage, counts, (0.0, 0.0), ALONE.device), ALONE).advantage.tolist()
    checks = [node.numbers for node in found if not node.is_attempt]
    earned = [[sum(values[numbers[i]] for numbers in checks) / 10 for i in range(4)] for values in (paid, advantage)]
    return earned


@pytest.mark.parametrize("right", [1, 5, 9])
def test_a_verifier_that_always_says_the_same_is_paid_less_than_an_honest_one(right):
    """However many attempts are right: both in what is paid, and in what is learned from it."""
    paid, advantage = share_of_each_verifier(right)
    assert paid == pytest.approx([1.0, 1.0, right / 10, 1 - right / 10])
    assert advantage[0] == advantage[1] > max(advantage[2:])
    assert sum(advantage) == pytest.approx(0, abs=1e-6) and advantage[0] > 0


def test_checks_that_all_say_the_same_of_an_attempt_learn_nothing_from_it():
    trees = [chat("1", "r"), chat("2", "r")]
    for tree in trees:
        group = tree.answers[0].following
        group.answers.extend(group.answers * 3)
    found = nodes(trees)
    paid = [answer.verdict.reward for node in found for answer in node.group.answers]
    advantage = advantages_of("leave_one_out", peers_of(found, 2), paid, [True] * len(paid), ALONE)
    assert paid == [1.0, *[1.0] * 4, 0.0, *[0.0] * 4] and advantage == [0.0] * 10


def test_a_check_is_not_paid_for_what_comes_of_it():
    """To find a right attempt wrong earns nothing, even if the revision is right; nor does a bonus reach the check."""
    found = nodes([joined(chat("1", "w", "1"), chat("2", "w", "1"), chat("2", "r"))])
    step = StepAnswers(found, [a.verdict.reward for node in found for a in node.group.answers])
    recipe = recipe_of(ScoreTrain(recipe="pag", alpha=3.0))
    paid = {node.name: [] for node in found}
    for node in found:
        paid[node.name] += recipe.paid(node, step, 2)
    assert paid == {"attempt1": [1.0, 0.0, 0.0], "check1": [0.0, 1.0, 0.0], "attempt2": [1.0, 1.0 + 3.0]}


# -- in a run


@pytest.mark.parametrize("recipe", ["pag", "reflect", "score"])
def test_a_run_with_reviews_tells_of_them_everywhere(recipe, folder, monkeypatch, capsys):
    judges = recipe != "reflect"
    own = {"pag": ("prompts.stop=self",), "reflect": ("prompts.stop=verdict", "prompts.self.right=null"), "score": ()}
    options = ("--config", "tiny.yaml", *SELF, *own[recipe], f"train.recipe={recipe}", "train.stage1_steps=null"
               if recipe != "score" else "train.stage1_steps=1", "tracking.tokens=all")  # fmt: skip
    says = ["right", "wrong"] if judges else [""]
    monkeypatch.setattr(Review, "judgement", lambda self, completion, text: says[sum(completion.ids) % len(says)])
    shown = printed(train, capsys, *options, "--dry-run")
    role = "check" if judges else "reflection"
    assert f">>> {role} of attempt 1, at most 5 tokens <<<" in shown and "<|user|>R" in shown
    assert "= 8 + 16 + 16 + 16 + 16 completions" in shown
    printed(train, capsys, *options)
    metrics = logged("metrics")
    for row in metrics:
        assert {"acc_attempt1", f"length_{role}1", f"beta_{role}1"} <= row.keys()
        assert (f"kl_{role}1" in row) == (recipe != "score")  # there they are context
        assert (f"acc_{role}1" in row) == judges and row["tokens"] > 0
    if recipe == "score":
        assert metrics[0]["beta_check1"] == metrics[0]["beta_attempt2"] < metrics[0]["beta_attempt1"]
    rows = logged("evaluations")
    assert [row["feedback"] for row in rows] == ["self", "none"] * (len(rows) // 2)
    for told, plain in zip(rows[::2], rows[1::2], strict=True):
        assert "acc_attempt3" in told and "acc_attempt3" in plain and "acc_attempt4" not in told
        assert ("acc_check" in told) == judges and "acc_check" not in plain
        assert told["acc_attempt1"] == plain["acc_attempt1"]
    texts = logged("generations")
    reviewed = [row for row in texts if f"{role}1" in row and row["when"] == "train"]
    assert reviewed and all(
        {f"{role}_length1", f"{role}_advantage1", f"{role}_tokens1"} <= row.keys() for row in reviewed
    )
    if recipe == "reflect":
        assert not any(row["advantage1"] or row["advantage2"] for row in reviewed)
    elif recipe == "score":
        assert not any(row["check_advantage1"] for row in reviewed)
    printed(report, capsys, "outputs/tiny")
    page = Path("outputs/tiny/report.html").read_text()
    assert ("Its own checks" in page) == judges
    measured = printed(evaluate, capsys, "--config", "outputs/tiny/config.yaml", "--run", "outputs/tiny",
                   "--temperature", "0", "--output", "results.jsonl")  # fmt: skip
    again = rows_in("results.jsonl")
    assert [row["acc_attempt3"] for row in again] == [row["acc_attempt3"] for row in rows[-2:]]
    assert "its own review" in measured
