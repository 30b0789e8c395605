from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from helpers.judges import judge_by
from helpers.leaves import rollouts_of

from lib.core.config import Eval, Prompts
from lib.core.registry import register_extractor
from lib.rl.corrections import CorrectionPrompts
from lib.rl.evaluation import Answers, evaluate, selected, summarise
from lib.rl.tree import Sampling


@register_extractor("first_character")
def first_character(text):
    return text[:1]


def answers(match1, match2, samples=1, **changes):
    n = len(match1)
    columns = {"reward": [match1, match2], "length": [[3] * n, [5] * n],
               "truncated": [[False] * n, [True] + [False] * (n - 1)], "changed": [False] * n, "unscored": [False] * n,
               "well_formed": [[True] * n, [True] * (n - 1) + [False]]}  # fmt: skip
    columns = {name: np.asarray(values, dtype=float) for name, values in {**columns, **changes}.items()}
    return Answers(
        np.arange(n) // samples, np.asarray([match1, match2], dtype=bool),
        components=[{"match": float(match)} for match in match2], **columns,
    )  # fmt: skip


# ten answers: 4 stay right, 1 gets lost, 3 are gained, 2 stay wrong
ONE = [1, 1, 1, 1, 1, 0, 0, 0, 0, 0]
TWO = [1, 1, 1, 1, 0, 1, 1, 1, 0, 0]


def test_a_table_by_hand():
    row = summarise(answers(ONE, TWO, changed=[0] * 4 + [1] * 4 + [0] * 2), temperature=0.5)
    assert (row["n"], row["prompts"], row["temperature"]) == (10, 10, 0.5)
    assert (row["acc_attempt1"], row["acc_attempt2"]) == (0.5, 0.7)
    assert (row["i_to_c"], row["c_to_i"]) == (0.3, 0.1)
    assert row["acc_if_stopped"] == pytest.approx(row["acc_attempt2"] + row["c_to_i"])  # a right answer stays
    assert row["delta"] == pytest.approx(0.2)
    assert row["delta"] == pytest.approx(row["i_to_c"] - row["c_to_i"])
    assert row["answer_changed"] == 0.4
    assert (row["length_attempt1"], row["length_attempt2"], row["truncated_attempt2"]) == (3, 5, 0.1)
    assert row["reward/match_attempt2"] == 0.7
    assert (row["well_formed_attempt1"], row["well_formed_attempt2"]) == (1, 0.9)
    assert row["well_formed_attempt2_ci95"] == pytest.approx([0.5958, 0.9821], abs=1e-4)  # Wilson for 9 of 10
    # Wilson for 5 of 10; Student for the mean of (1, 1, 1, -1, 0 x 6), whose error is 0.2, with t(9) = 2.2622
    assert row["acc_attempt1_ci95"] == pytest.approx([0.2366, 0.7634], abs=1e-4)
    assert row["delta_ci95"] == pytest.approx([0.2 - 2.2622 * 0.2, 0.2 + 2.2622 * 0.2], abs=1e-4)
    assert row["mcnemar_p"] == pytest.approx(2 * (1 + 4) / 16)  # at most 1 of 4 changes


def test_what_is_chosen_by_is_told_prompt_by_prompt():
    choice = selected(answers(ONE, TWO, samples=2))
    assert (choice["n"], choice["prompts"], choice["acc_attempt1"], choice["acc_attempt2"]) == (10, 5, 0.5, 0.7)
    assert choice["per_prompt"] == [1, 1, 0.5, 1, 0]  # of attempt 2: pairs of TWO
    assert choice["acc_attempt2_ci95"] == summarise(answers(ONE, TWO, samples=2), 1.0)["acc_attempt2_ci95"]


def test_which_evaluations_have_a_greedy_one_beside_them():
    both = Eval(temperature=0.7, samples_per_prompt=4, greedy_too=True, max_examples=50, step_examples=20)
    for when in ("pretrain", "adapter", "after_stage1"):
        main, greedy = both.passes(when)
        assert main is both and both.examples(when) == 50
        assert (greedy.temperature, greedy.samples_per_prompt, greedy.max_examples) == (0, 1, 50)
    assert both.passes("step") == [both] and both.examples("step") == 20
    assert len(Eval(temperature=0.7).passes("pretrain")) == len(Eval(greedy_too=True).passes("pretrain")) == 1
    assert Eval(max_examples=50).examples("step") == 50


def test_accuracy_is_the_match_whatever_the_reward():
    row = summarise(answers(ONE, TWO, reward=[[9.0] * 10, TWO]), 0.0)
    assert (row["acc_attempt1"], row["reward_attempt1"]) == (0.5, 9.0)


def test_answers_to_one_prompt_are_one_witness():
    """Four samples of each of ten prompts that always agree are worth ten answers, not forty."""
    repeated = answers(np.repeat(ONE, 4), np.repeat(TWO, 4), samples=4)
    alone, clustered = summarise(answers(ONE, TWO), 1.0), summarise(repeated, 1.0)
    blind = summarise(answers(np.repeat(ONE, 4), np.repeat(TWO, 4)), 1.0)
    assert (clustered["n"], clustered["prompts"]) == (40, 10)

    def width(row, key):
        low, high = row[f"{key}_ci95"]
        return high - low

    assert clustered["delta_ci95"] == pytest.approx(alone["delta_ci95"])
    for key in ("acc_attempt1", "acc_attempt2", "delta", "i_to_c"):
        assert width(clustered, key) > 1.5 * width(blind, key)
    assert clustered["mcnemar_p"] == alone["mcnemar_p"] == 0.625 and blind["mcnemar_p"] < 0.1
    assert clustered["per_question"]["acc_attempt2"] == [4 * right for right in TWO]


def test_a_revision_is_held_against_a_fresh_draw_by_hand():
    """Of six wrong first attempts two are revised well; others to their questions are right 1/2, 1/2, 1, 0, 0, 0."""
    one, two = [1, 0, 0] + [0, 1, 1] + [1, 1, 1] + [0, 0, 0], [0, 1, 0] + [0, 1, 0] + [1, 1, 0] + [1, 0, 0]
    row = summarise(answers(one, two, samples=3), 1.0)
    assert row["revised_after_wrong"] == row["fresh_after_wrong"] == pytest.approx(2 / 6)
    assert row["revised_minus_fresh"] == pytest.approx(0)
    # three questions differ by 0, -1 and 1 answers of six: the error is 3 ** 0.5 / 6, with t(2) = 4.3027: 1.2421, and
    # no difference of shares is beyond 1
    assert row["revised_minus_fresh_ci95"] == [-1, 1]
    for others in (summarise(answers(one, two, samples=3), 0.0), summarise(answers(one, two), 1.0)):
        assert not [key for key in others if "fresh" in key]  # greedy ones are all the same, and single ones alone
    longer = answers(one, two, samples=3)
    third = {name: np.vstack([getattr(longer, name), getattr(longer, name)[:1]])
             for name in ("reward", "length", "truncated", "well_formed")}  # fmt: skip
    longer = summarise(replace(longer, match=np.vstack([longer.match, np.ones((1, 12), dtype=bool)]), **third), 1.0)
    assert longer["delta"] == pytest.approx(6 / 12)  # the third attempts are all right, at the price of another draw
    assert longer["revised_after_wrong"] == row["revised_after_wrong"]


@pytest.mark.parametrize("p", [0.2, 0.5, 0.9])
def test_a_fresh_draw_has_no_bias(p):
    """Enumerated: of three first attempts, n p (1 - p) is what the others of the wrong ones sum up to in the mean."""
    expected = 0.0
    for drawn in product((0, 1), repeat=3):
        chance = np.prod([p if right else 1 - p for right in drawn])
        other = [0, 1, 0]  # a second question, so that there is an interval; its two wrong ones have 1/2 each
        row = summarise(answers([*drawn, *other], [0] * 6, samples=3), 1.0)
        wrong = 5 - sum(drawn)
        expected += chance * (row["fresh_after_wrong"] * wrong - 1 if sum(drawn) < 3 else 0)
    assert expected == pytest.approx(3 * p * (1 - p))


# -- with a model


@pytest.fixture(scope="module")
def setting(make_policy, tokenizer, limits):
    prompts = CorrectionPrompts(tokenizer, Prompts(user="{question}", self_correction="R"), limits)
    policy = make_policy(moved=0.3)
    rows = [{"question": f"{a}+1=?", "answer": str(a)} for a in range(8)]
    judge = judge_by(
        columns=["question", "answer"], target="answer", answer_extractor="first_character", accept_cut=True
    )

    def run(temperature=1.0, samples=1, max_examples=8, seed=0, rows=rows):
        ends = frozenset([tokenizer.eos_token_id])
        sampling = Sampling(temperature, (4, 6), copies=(samples, 1), stop_ids=ends, pad_id=0, batch_size=3)
        part = rows[:max_examples]
        found, trees = evaluate(policy, prompts, part, judge, sampling, seed, Accelerator(cpu=True))
        return summarise(found, temperature), rollouts_of(trees)

    return run


def test_an_evaluation_draws_from_its_own_generator(setting):
    torch.manual_seed(3)
    before = torch.get_rng_state()
    row, rollouts = setting()
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(4)
    again, _ = setting()
    assert again == row
    other = setting(seed=1)[1]
    assert [r.text1 for r in other] != [r.text1 for r in rollouts]


def test_an_evaluation_counts_what_it_read(setting):
    row, rollouts = setting(samples=5, max_examples=3)
    assert (row["n"], row["prompts"], len(rollouts)) == (15, 3, 15)
    match1 = np.array([r.text1[:1] == r.row["answer"] for r in rollouts], dtype=float)
    match2 = np.array([r.text2[:1] == r.row["answer"] for r in rollouts], dtype=float)
    assert (row["acc_attempt1"], row["acc_attempt2"]) == (match1.mean(), match2.mean())
    assert row["delta"] == pytest.approx(row["i_to_c"] - row["c_to_i"])
    assert row["answer_changed"] == np.mean([r.text1[:1] != r.text2[:1] for r in rollouts])
    assert row["length_attempt2"] == np.mean([len(r.y2.ids) for r in rollouts])


def test_rows_that_ask_the_same_are_one_question(setting):
    """Rows may differ in what is not asked; `n` counts answers, `prompts` questions."""
    same = [{"question": f"{a}+1=?", "answer": str(a), "source": source} for source in "xy" for a in range(3)]
    row, _ = setting(samples=2, rows=same)
    assert (row["n"], row["prompts"], row["per_question"]["n"]) == (12, 3, [4, 4, 4])


def test_a_greedy_evaluation_knows_no_seed(setting):
    assert setting(temperature=0.0, seed=0) == setting(temperature=0.0, seed=1)
