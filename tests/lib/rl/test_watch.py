"""The watch on rows: synthetic ones whose alarms a reader can foretell, and recorded ones of good and bad runs."""

import json
import math
import random
import re
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import fewer

from lib.rl.checks import CHECKS, evidence, sft_checks
from lib.rl.evaluation import Answers, selected
from lib.rl.watch import Watch

SERIES = Path(__file__).parent / "watch_series.jsonl"
HEALTHY = {
    "prompts": 32, "well_formed_attempt1": 0.99, "well_formed_attempt2": 0.99, "malformed_paid_attempt1": 0.0,
    "malformed_paid_attempt2": 0.0, "acc_attempt1": 0.4, "acc_attempt2": 0.7, "reward_attempt1": 0.4,
    "reward_attempt2": 0.7, "length_attempt1": 13.0, "length_attempt2": 13.0, "truncated_attempt1": 0.02,
    "truncated_attempt2": 0.02, "truncated": 0.02, "kl_attempt1": 0.05, "kl_attempt2": 0.09, "entropy": 0.12,
    "loss": 0.05, "grad_norm": 0.1, "answer_changed": 0.5, "zero_gradient": 0.0, "idle": 0.0,
}  # fmt: skip
SHARES = ("well_formed", "malformed_paid", "paid_outside", "acc", "truncated", "answer_changed")


def row(step, stage=1, draw=None, **values):
    """A healthy row but for `values`; `draw` makes shares those of 32 answers and lets the other numbers swing."""
    numbers = HEALTHY | values
    if draw:
        for key, value in numbers.items():
            if key.startswith(SHARES):
                numbers[key] = sum(draw.random() < value for _ in range(32)) / 32
            elif key.startswith(("kl", "entropy", "grad_norm", "loss")):
                numbers[key] = value * math.exp(0.3 * draw.gauss(0, 1))
    return {"stage": stage, "step": step, "global_step": step, "steps": 100, **numbers}


def alarms_of(watch, rows):
    return [alarm for row in rows for alarm in watch.step(row)]


def begun(alarms):
    return [(alarm.alarm, alarm.step) for alarm in alarms if alarm.event == "begins"]


def ramp(step, start, length, low, high):
    """`low` up to step `start`, `high` from `length` steps later on, a line between them."""
    return low + (high - low) * min(1.0, max(0.0, (step - start) / length))


def watch():
    return Watch(CHECKS)


# -- quiet


@pytest.mark.parametrize("seed", range(20))
def test_no_alarm_in_what_only_swings(seed):
    draw = random.Random(seed)
    rows = [row(step, stage, draw) for stage in (1, 2) for step in range(1, 121)]
    assert alarms_of(watch(), rows) == []


def test_no_alarm_where_a_weak_base_learns():
    """Right .15, cut off .44 and careless at first; all of it gets better, fast in the first steps."""
    for seed in range(5):
        draw, rows = random.Random(seed), []
        for step in range(1, 121):
            rows.append(
                row(
                    step, 1, draw,
                    acc_attempt1=ramp(step, 0, 60, 0.15, 0.3), acc_attempt2=ramp(step, 0, 60, 0.12, 0.7),
                    truncated_attempt1=ramp(step, 0, 30, 0.44, 0.02), truncated_attempt2=ramp(step, 0, 30, 0.44, 0.02),
                    length_attempt1=ramp(step, 0, 30, 18, 13), length_attempt2=ramp(step, 0, 30, 18, 13),
                    well_formed_attempt1=ramp(step, 0, 30, 0.5, 0.97), kl_attempt2=ramp(step, 0, 80, 0, 0.25),
                    entropy=0.1 + 1.2 * math.exp(-step / 6), answer_changed=0.8,
                )
            )  # fmt: skip
        assert alarms_of(watch(), rows) == []


@pytest.mark.parametrize(("batch", "copies", "right", "outside"), [(32, 8, 0.05, 0.08), (16, 4, 0.03, 0.05)])
def test_no_alarm_where_few_are_right_and_some_of_those_always_lacked_the_form(batch, copies, right, outside):
    """A share of the right answers is one of few answers there: its chance lows are no level."""
    for seed in range(10):
        draw, rows = random.Random(seed), []
        for step in range(1, 101):
            solved = [[draw.random() < outside for _ in range(copies) if draw.random() < right] for _ in range(batch)]
            paid = [lacks for each in solved for lacks in each]
            numbers = {"stage": 1, "step": step, "prompts": batch, "prompts_solved": sum(map(bool, solved))}
            share = {"paid_outside_boxed": sum(paid) / len(paid)} if paid else {}
            rows.append(numbers | {"acc": len(paid) / batch / copies} | share)
        assert alarms_of(watch(), rows) == []


def test_no_alarm_where_chats_stop_and_only_hard_prompts_are_asked_again():
    """Prompts are learned, .4 -> .99, but for a fifth that never is: behind a wrong attempt 1 hardly any is solved."""
    for seed in range(10):
        draw, rows = random.Random(seed), []
        for step in range(1, 81):
            first, second, standing = [], [], []
            for _ in range(16):
                solves = 0.0 if draw.random() < 0.2 else ramp(step, 0, 50, 0.4, 0.99)
                for _ in range(4):
                    first.append(draw.random() < solves)
                    again = [] if first[-1] else [draw.random() < solves for _ in range(2)]
                    second += again
                    standing.append(first[-1] or sum(again) / 2)
            shares = {"acc_attempt1": sum(first) / 64, "acc_standing": sum(standing) / 64}
            shares |= {"acc_attempt2": sum(second) / len(second)} if second else {}
            rows.append({"stage": 2, "step": step, "prompts": 16, **shares})
        assert alarms_of(watch(), rows) == []
        fallen = [{**row, "step": row["step"] + 20, "acc_standing": 0.0} for row in rows[-20:]]
        assert ("accuracy_died.acc_standing", 82) in begun(alarms_of(watch(), rows + fallen))


def test_a_new_stage_moves_everything():
    rows = [row(step) for step in range(1, 61)]
    moved = {"acc_attempt1": 0.05, "acc_attempt2": 0.05, "length_attempt1": 40.0, "kl_attempt2": 0.9, "entropy": 0.9}
    assert alarms_of(watch(), rows + [row(step, 2, **moved) for step in range(1, 61)]) == []


# -- what goes wrong


@pytest.mark.parametrize("seed", range(5))
def test_malformed_text_that_is_paid_is_named_within_15_steps_and_is_a_collapse(seed):
    draw, begins = random.Random(seed), 60
    rows = [
        row(
            step, 2, draw,
            malformed_paid_attempt1=ramp(step, begins, 30, 0.0, 0.5),
            well_formed_attempt1=ramp(step, begins, 30, 0.99, 0.4),
        )
        for step in range(1, 91)
    ]  # fmt: skip
    alarms = alarms_of(watch(), rows)
    found = dict(begun(alarms))
    assert set(found) == {"malformed_is_paid.malformed_paid_attempt1", "malformed.well_formed_attempt1"}
    assert [alarm.alarm[:9] for alarm in alarms if alarm.severity == "collapse"] == ["malformed"]
    assert begins < min(found.values()) and max(found.values()) <= begins + 15


@pytest.mark.parametrize(("level", "end"), [(0.0, 0.5), (0.07, 0.6), (0.13, 0.8), (0.22, 0.9)])
def test_leaving_the_form_that_most_answers_had_is_a_collapse_within_15_steps(level, end):
    """Even where a fifth of the right answers never had it; where half of them lacked it, that is no news."""
    for seed in range(3):
        rows, begins = [], 40
        for start, final in ((level, end), (0.5, 0.9), (level, level)):
            draw = random.Random(seed)
            shares = [ramp(step, begins, 30, start, final) for step in range(1, 81)]
            rows.append([row(step, 2, draw, paid_outside_answer_attempt1=each) for step, each in enumerate(shares, 1)])
        ((name, step),) = begun(alarms_of(watch(), rows[0]))
        assert name == "left_form_answer.paid_outside_answer_attempt1" and begins < step <= begins + 15
        assert alarms_of(watch(), rows[1]) == alarms_of(watch(), rows[2]) == []


def test_the_collapse_on_record_is_noticed_without_any_word_on_format():
    """Length 13 -> 9, KL .09 -> .95, entropy .09 -> .30 over twenty steps, as it was when nothing said so."""
    rows = [
        {
            "stage": 2, "step": step, "length_attempt1": ramp(step, 90, 20, 13, 9),
            "kl_attempt2": 0.09 * (0.95 / 0.09) ** ramp(step, 90, 20, 0, 1),
            "entropy": 0.09 * (0.3 / 0.09) ** ramp(step, 90, 20, 0, 1),
        }
        for step in range(1, 116)
    ]  # fmt: skip
    found = dict(begun(alarms_of(watch(), rows)))
    assert set(found) == {"length_shrank.length_attempt1", "kl_jumped.kl_attempt2", "entropy_grew.entropy"}
    assert min(found.values()) <= 110 and max(found.values()) <= 115


@pytest.mark.parametrize(
    "name, values",
    [
        ("accuracy_died.acc_attempt1", {"acc_attempt1": 0.0}),
        ("kl_exploded.kl_attempt1", {"kl_attempt1": 5.0}),
        ("entropy_exploded.entropy", {"entropy": 4.0}),
        ("no_gradient.zero_gradient", {"zero_gradient": 1.0}),
    ],
)
def test_divergence_is_a_collapse_within_three_steps_even_after_the_first_one(name, values):
    alarms = alarms_of(watch(), [row(1), *(row(step, **values) for step in (2, 3, 4))])
    assert [(alarm.alarm, alarm.severity) for alarm in alarms] == [(name, "collapse")]
    assert alarms[0].step <= 4


@pytest.mark.parametrize(
    "name, values",
    [
        ("truncated.truncated_attempt2", {"truncated_attempt2": 0.5}),
        ("length_jumped.length_attempt1", {"length_attempt1": 30.0}),
        ("length_shrank.length_attempt1", {"length_attempt1": 8.0}),
        ("entropy_grew.entropy", {"entropy": 0.4}),
        ("entropy_vanished.entropy", {"entropy": 0.001}),
        ("kl_jumped.kl_attempt2", {"kl_attempt2": 0.8}),
        ("gradient_exploded.grad_norm", {"grad_norm": 80.0}),
        ("loss_exploded.loss", {"loss": 90.0}),
        ("accuracy_fell.acc_attempt2", {"acc_attempt2": 0.3}),
        ("malformed.well_formed_attempt2", {"well_formed_attempt2": 0.6}),
        ("copies.answer_changed", {"answer_changed": 0.01}),
        ("equal_rewards.idle", {"idle": 1.0}),
    ],
)
def test_each_warning_begins_once_ends_once_and_says_what_it_saw(name, values):
    rows = [row(step) for step in range(1, 31)] + [row(step, **values) for step in range(31, 52)]
    one = watch()
    begin, *more = alarms_of(one, rows)
    assert (begin.alarm, begin.event, begin.severity, more) == (name, "begins", "warning", [])
    (key,) = values
    unit = " %" if begin.text.partition(" since ")[0].endswith(" %") else ""
    before = HEALTHY[key] * (100 if unit else 1)
    assert re.search(rf"(rose|fell) from {before:.3g}{unit} to [\d.]+{unit} since ", begin.text) and "; " in begin.text
    assert name == "equal_rewards.idle" or "since step 31" in begin.text
    end, *more = alarms_of(one, [row(step) for step in range(52, 100)])
    assert (end.alarm, end.event, more) == (name, "ends", [])
    assert re.search(rf", back at [\d.]+{unit}$", end.text)
    assert not one._on and len(one.closing()) == 1 and f"until stage 1 step {end.step}" in one.closing()[0]


def test_a_run_that_copies_from_the_first_step_on_has_not_fallen_from_anything():
    (begin,) = alarms_of(watch(), [row(step, answer_changed=0.01) for step in range(1, 52)])
    assert begin.alarm == "copies.answer_changed" and "nearly all wrong ones, is 1 %; " in begin.text


def test_a_policy_that_is_certain_and_mostly_right_is_healthy():
    rows = [row(step) for step in range(1, 31)] + [
        row(step, entropy=0.0037, acc_attempt2=right) for step in range(31, 60) for right in [0.84 + 0.04 * (step % 4)]
    ]
    assert alarms_of(watch(), rows) == []


@pytest.mark.parametrize("name, first, second, step", [
    ("copies", 0.4, 0.42, 6), ("corrects", 0.4, 0.7, None), ("all right", 0.95, 0.97, None),
    ("none right", 0.0, 0.02, None),
])  # fmt: skip
def test_answers_without_an_advantage_are_named_in_the_first_steps_of_a_stage(name, first, second, step):
    """Nearly all of them, in three steps after the warm-up; not where something is gained, or nothing can be."""
    rows = [row(step, zero_advantage=0.95, acc_attempt1=first, acc_attempt2=second) for step in range(1, 9)]
    assert begun(alarms_of(watch(), rows)) == ([("no_advantage.zero_advantage", step)] if step else [])
    assert alarms_of(watch(), [row | {"acc_standing": second} for row in rows]) == []  # chats that stop


def test_one_step_is_no_trend():
    spike = {"kl_attempt2": 50.0, "grad_norm": 500.0, "loss": 400.0, "length_attempt1": 90.0, "entropy": 3.0}
    rows = [row(step, **(spike if step == 40 else {})) for step in range(1, 80)]
    assert alarms_of(watch(), rows) == []


def test_numbers_that_are_not_finite_or_not_there_are_passed_over():
    rows = [row(step, loss=math.nan, grad_norm=math.inf) for step in range(1, 30)] + [{"stage": 1, "step": 30}]
    assert alarms_of(watch(), rows) == []


def test_evidence_is_half_of_the_g_statistic():
    assert evidence(0.3, 50, 0.3, 70) == 0
    # 2x2 table 50/50 and 30/70: G = 2 sum O ln(O/E), 8.40 by hand
    assert 2 * evidence(0.5, 100, 0.3, 100) == pytest.approx(8.40, abs=0.005)


# -- held-out answers


def evaluation(step, right, of=200, stage=2):
    return {"stage": stage, "step": step, "selection": {"per_prompt": [1.0] * right + [0.0] * (of - right)}}


def test_held_out_accuracy_below_its_best():
    one = watch()
    alarms = [one.evaluation(evaluation(step, right)) for step, right in ((0, 80), (30, 160), (60, 156), (90, 140))]
    assert alarms[:3] == [[], [], []]  # 2 points of 200 answers are nothing
    (fell,) = alarms[3]
    assert (fell.alarm, fell.severity) == ("held_out_fell", "warning")
    assert "0.8 at stage 2 step 30 -> 0.7, paired interval -0.142 to -0.058" in fell.text
    gone = one.evaluation(evaluation(120, 60))
    assert [(a.alarm, a.event, a.severity) for a in gone] == [
        ("held_out_fell", "ends", "warning"), ("held_out_collapsed", "begins", "collapse")
    ]  # fmt: skip
    assert one.evaluation(evaluation(130, 50)) == []
    (back,) = one.evaluation(evaluation(150, 158))
    assert (back.alarm, back.event) == ("held_out_collapsed", "ends")


def test_rewards_that_rise_while_held_out_answers_get_worse():
    one = watch()
    alarms_of(one, [row(step) for step in range(1, 31)])
    one.evaluation(evaluation(30, 160))
    alarms_of(one, [row(step, 2, reward_attempt1=0.6, reward_attempt2=0.9) for step in range(1, 31)])
    assert [a.alarm for a in one.evaluation(evaluation(30, 130))] == ["held_out_collapsed", "held_out_gamed"]


def test_a_greedy_row_and_one_without_rows_to_choose_by_say_nothing():
    one = watch()
    one.evaluation(evaluation(0, 160))
    assert one.evaluation({"stage": 2, "step": 30, "acc_attempt2": 0.0}) == []
    assert one.evaluation({"stage": 2, "step": 30, "selection": None}) == []


# -- held-out answers of every attempt, against the start of the run and the last stage

LOOKS = 10  # evaluations after the first


def answered(dice, first, spoils, repairs, of):
    """Numbers of `of` questions, some of which are easier: attempt 2 spoils right ones, and repairs wrong ones."""
    one = dice.random(of) < first + np.where(np.arange(of) % 2, 0.2, -0.2)
    two = np.where(one, dice.random(of) >= spoils, dice.random(of) < repairs)
    none = np.zeros((2, of))
    return selected(Answers(np.arange(of), np.array([one, two]), none, none, none, none, none[0], none[0], []))


def looks(seed, shares, looks=LOOKS, reported=300, chosen=300, **more):
    """Rows of evaluations, as configs/tiny_sums.yaml has them; `shares` of the time, 0 to 1: as in `answered`."""
    dice = np.random.default_rng(seed)
    for look in range(looks + 1):
        parts = [answered(dice, *shares(look / looks), of) for of in (reported, chosen)]
        place = {"when": "step", "stage": 1 + (2 * look > looks), "step": look}
        yield {**parts[0], **place, "selection": parts[1], **more}


def held_out_alarms(rows):
    one = watch()
    return {alarm.alarm: alarm for row in rows for alarm in one.evaluation(row) if alarm.begins}


HEALTHY_RUNS = {
    "nothing moves": lambda time: (0.75, 0.13, 0.3),
    "attempt 1 learns": lambda time: (0.45 + 0.3 * time, 0.1, 0.3),
    "attempt 2 learns": lambda time: (0.5, 0.23 - 0.2 * time, 0.3 + 0.5 * time),
    "stage I leaves copies behind": lambda time: (0.5, 0.02 + 0.1 * time, 0.02 + 0.4 * time),
}


@pytest.mark.parametrize("name", HEALTHY_RUNS)
def test_no_alarm_in_evaluations_of_healthy_runs(name):
    for seed in range(fewer(10, plain=3)):
        assert held_out_alarms(looks(seed, HEALTHY_RUNS[name])) == {}


def test_a_first_attempt_that_falls_slowly_is_named_before_it_has_lost_a_fifth():
    for seed in range(fewer(20, plain=4)):
        alarms = held_out_alarms(looks(seed, lambda time: (0.75 - 0.2 * time, 0.13, 0.3)))
        alarm = alarms["accuracy_lost.acc_attempt1"]
        assert alarm.step < LOOKS and alarm.severity == "warning"
        assert "in attempt 1 held-out accuracy 0.7" in alarm.text


def test_right_answers_that_are_spoiled_more_and_more_are_named():
    """.10 to .25 of all answers, whether or not as many more are repaired."""
    for seed in range(fewer(20, plain=4)):
        for repairs in (0, 0.15):
            rows = looks(seed, lambda time, more=repairs: (0.75, (0.1 + 0.15 * time) / 0.75, 0.4 + 4 * more * time))
            assert "answers_spoiled.c_to_i" in held_out_alarms(rows)


def test_a_stage_that_loses_what_the_one_before_had_is_named_at_its_end():
    """No evaluation in between, 50 questions to choose by and 250 others: .45 and .52, and then .37."""
    rows = looks(1, lambda time: ((0.45, 0.6, 0.3)[int(2 * time)], 0.1, 0.1), 2, 250, 50)
    alarm = held_out_alarms(rows)["accuracy_lost.acc_attempt1"]
    assert alarm.step == 2 and "at stage 1 step 1 -> 0." in alarm.text


def test_wrong_answers_that_are_repeated():
    def alarms(before, after, when="step", right=0.4):
        rows = looks(1, lambda time: (0.4, 0, 0), 1, when=when, acc_attempt1=right)
        rates = [{"repeat_rate": rate, "repeat_rate_ci95": [rate - 0.03, 1.0]} for rate in (before, after)]
        return [*held_out_alarms([row | rate for row, rate in zip(rows, rates, strict=True)])]

    assert alarms(0.5, 0.97) == alarms(0.95, 0.97, "after_stage1") == ["answers_repeated.repeat_rate"]
    assert alarms(0.95, 0.97) == []  # as the base, so far
    assert alarms(0.5, 0.85) == alarms(0.5, 0.97, right=0.95) == []  # few are wrong, and those may be beyond help


# -- state


def test_a_resumed_watch_goes_on_to_the_same_alarms(tmp_path):
    draw = random.Random(3)
    rows = [row(step, 1, draw) for step in range(1, 41)]
    rows += [row(step, 1, draw, malformed_paid_attempt2=0.5, entropy=0.5, idle=1.0) for step in range(41, 70)]
    rows += [row(step, 2, draw) for step in range(1, 40)]
    straight = watch()
    expected = [alarms + straight.evaluation(evaluation(row["step"], 100 + row["step"])) for row in rows
                for alarms in [straight.step(row)]]  # fmt: skip
    assert sum(map(len, expected)) > 4
    resumed, found = watch(), []
    for i, each in enumerate(rows):
        found.append(resumed.step(each) + resumed.evaluation(evaluation(each["step"], 100 + each["step"])))
        if i % 7 == 0:
            torch.save(resumed.state_dict(), tmp_path / "state")
            json.dumps(resumed.state_dict())
            resumed = watch()
            resumed.load_state_dict(torch.load(tmp_path / "state", weights_only=True))
    assert found == expected
    assert resumed.closing() == straight.closing() and resumed.state_dict() == straight.state_dict()


def test_a_resumed_watch_compares_with_the_same_start():
    """And a checkpoint may become the best until attempt 1 is below its interval there."""
    straight, resumed = watch(), watch()
    rows = [*looks(1, lambda time: (0.75 - 0.2 * time, 0.13, 0.3))]
    for row in rows:
        assert resumed.evaluation(row) == straight.evaluation(row)
        is_kept = row["selection"]["acc_attempt1"] >= rows[0]["selection"]["acc_attempt1_ci95"][0]
        assert resumed.keeps_attempt1(row) == is_kept
        state, resumed = resumed.state_dict(), watch()
        resumed.load_state_dict(state)
    assert "accuracy_lost.acc_attempt1" in straight._on and not is_kept


def test_accuracy_is_not_compared_with_what_could_not_be_the_best():
    """A run would go back to a checkpoint that is not that one, and be evaluated below it again and again."""
    shares = [(0.6, 0.0, 0.05), (0.3, 0.0, 0.86), (0.3, 0.0, 0.6), (0.6, 0.0, 0.05)]  # attempt 2: .62 .90 .72 .62
    begun = held_out_alarms(looks(3, lambda time: shares[round(3 * time)], looks=3))
    assert "accuracy_lost.acc_attempt1" in begun and not [name for name in begun if name.startswith("held_out")]


def test_evaluations_of_other_attempts_or_questions_are_a_new_start():
    before, now = looks(1, lambda time: (0.75 - 0.4 * time, 0.1, 0.3), looks=1)
    counts = now["per_question"]
    third = counts | {"acc_attempt3": counts["acc_attempt2"]}
    for other in ({"questions": "b"}, {"questions": "a", "per_question": third}, {"questions": "a"}):
        names = held_out_alarms([before | {"questions": "a"}, now | other])
        assert any(name.startswith("accuracy_lost") for name in names) == (other == {"questions": "a"})


def test_a_state_is_a_copy():
    one = watch()
    alarms_of(one, [row(step) for step in range(1, 20)])
    state = one.state_dict()
    text = json.dumps(state)
    alarms_of(one, [row(step, kl_attempt1=9.0) for step in range(20, 30)])
    assert json.dumps(state) == text


def test_a_return_to_the_best_ends_what_was_on_and_forgets_the_steps_but_not_the_best():
    one = watch()
    alarms_of(one, [row(step) for step in range(1, 31)])
    one.evaluation(evaluation(30, 160))
    alarms_of(one, [row(step, kl_attempt1=9.0) for step in range(31, 34)])
    assert [*one._on] == ["kl_exploded.kl_attempt1"]
    (end,) = one.forget("by going back to stage1/best")
    assert (end.event, end.step) == ("ends", 33) and "by going back to stage1/best" in end.text
    assert alarms_of(one, [row(step) for step in range(34, 60)]) == [] and not one._on
    assert [a.alarm for a in one.evaluation(evaluation(60, 100))] == ["held_out_collapsed"]


def test_times_are_no_part_of_the_state():
    one, other = watch(), watch()
    for step in range(1, 30):
        one.step(row(step, seconds_generate=step, tokens_per_second=1.0))
        other.step(row(step, seconds_generate=2.0 * step, tokens_per_second=3.0))
    assert one.state_dict() == other.state_dict()


# -- supervised fine-tuning


def sft_row(step, **values):
    return {"step": step, "steps": 100, **{"loss": 1.2, "mean_token_accuracy": 0.6, "grad_norm": 0.8}, **values}


@pytest.mark.parametrize(
    "name, values",
    [
        ("loss_exploded.loss", {"loss": 12.0}),
        ("tokens_died.mean_token_accuracy", {"mean_token_accuracy": 0.01}),
        ("no_gradient.grad_norm", {"grad_norm": 0.0}),
    ],
)
def test_divergence_of_fine_tuning_is_a_collapse_within_three_steps(name, values):
    alarms = alarms_of(Watch(sft_checks(math.log(150_000))), [sft_row(1), sft_row(2, **values), sft_row(3, **values)])
    assert [(alarm.alarm, alarm.severity, alarm.step) for alarm in alarms] == [(name, "collapse", 3)]


def test_a_loss_far_above_its_start_is_noticed_where_it_creeps():
    rows = [sft_row(step, loss=ramp(step, 40, 30, 1.2, 3.0)) for step in range(1, 90)]
    assert [name for name, _ in begun(alarms_of(Watch(sft_checks(12.0)), rows))] == ["loss_exploded.loss"]


def test_harder_rows_after_lessons_are_no_alarm():
    """As in configs/tiny_base.yaml: the loss falls from ln(88) to the floor, then careless chats raise it."""
    rows = [sft_row(step, loss=ramp(step, 0, 200, 4.9, 0.1) + ramp(step, 500, 1, 0, 0.5)) for step in range(1, 801)]
    assert alarms_of(Watch(sft_checks(math.log(88))), rows) == []


def test_rows_that_are_learned_by_heart():
    one, found = Watch(sft_checks(12.0)), []
    for part in range(6):
        train, held_out = 1.2 - 0.15 * part, 1.3 - 0.1 * part if part < 3 else 0.8 + 0.2 * part
        alarms_of(one, [sft_row(10 * part + step, loss=train) for step in range(1, 11)])
        found += one.evaluation({"when": "step", "step": 10 * part + 10, "loss": held_out})
    assert [(a.alarm, a.severity, a.step) for a in found] == [("held_out_loss", "warning", 50)]
    assert "1.1 at stage 1 step 30 -> 1.6" in found[0].text and "train.epochs" in found[0].text


# -- what was recorded


def series():
    runs = {}
    for line in SERIES.read_text().splitlines():
        each = json.loads(line)
        runs.setdefault(each.pop("run"), []).append(each)
    return runs


@pytest.mark.parametrize("name", [name for name in series() if name.startswith("healthy")])
def test_a_healthy_run_on_record_is_quiet(name):
    rows = series()[name]
    checks = sft_checks(math.log(88)) if "sft" in name else CHECKS
    assert len(rows) > 50 and alarms_of(Watch(checks), rows) == []


def test_the_gamed_run_on_record_is_told_as_in_its_folder():
    """32 prompts a step, as its config has it; the excerpt's metrics leave that column out."""
    folder = Path(__file__).parents[2] / "collapsed"
    rows = [json.loads(line) | {"prompts": 32} for line in (folder / "metrics.jsonl").read_text().splitlines()]
    (alarm,) = alarms_of(Watch(), rows)
    recorded = json.loads((folder / "alarms.jsonl").read_text())
    assert recorded == asdict(alarm) | {name: recorded[name] for name in ("schema", "time", "action")}
    assert alarm.text.startswith(
        "in attempt 1 the share of paid answers that lack an <answer> block, which most had at first, rose from 5.1 % "
        "to 21.5 % since step 29; set reward.format: answer"
    )


@pytest.mark.parametrize("name", [name for name in series() if name.startswith("diverged")])
def test_a_diverged_run_on_record_is_a_collapse_within_three_steps(name):
    checks = sft_checks(math.log(88)) if "sft" in name else CHECKS
    first = alarms_of(Watch(checks), series()[name])[0]
    assert first.severity == "collapse" and first.step <= 3
