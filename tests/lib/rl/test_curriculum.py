"""Which prompts a step draws: by pass rate, past what teaches nothing, easy ones first, again from a buffer."""

import json
import math
import random
from collections import Counter
from statistics import fmean
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from helpers.arms import SAMPLERS, regret, simulate

from engine import Completion
from lib.core.config import CurriculumSettings, EasyPool, ReplaySettings, TemperatureSchedule, Weighting
from lib.core.errors import ConfigError
from lib.rewards.judge import Verdict
from lib.rl.curriculum import (
    UNSEEN,
    Curriculum,
    PromptOutcome,
    Sampler,
    WeightedSampler,
    outcomes_of,
    share_at,
    temperature_at,
)
from lib.rl.prompts import Choice, Prompt
from lib.rl.replay import ReplayBuffer
from lib.rl.tree import Answer, Group, nodes

ROWS = [{"question": str(i), "kind": "easy" if i < 4 else "hard"} for i in range(20)]


def again(thing, fresh):
    """`fresh`, in the state of `thing`, which has gone through a file."""
    fresh.load_state_dict(json.loads(json.dumps(thing.state_dict())))
    return fresh


# -- by pass rate


def test_the_curriculum_goes_on_where_its_state_was_taken():
    sampler, dice = WeightedSampler(12, 0, Weighting()), random.Random(0)
    for _ in range(5):
        for row in sampler.take(4):
            sampler.note(row, dice.random(), dice.choice([True, False, None]))
    again = WeightedSampler(12, 0, Weighting())
    again.load_state_dict(json.loads(json.dumps(sampler.state_dict())))
    batches = [sampler.take(5) for _ in range(20)]
    assert batches == [again.take(5) for _ in range(20)]
    assert all(len(set(batch)) == 5 for batch in batches) and sampler.epochs == 10
    assert batches != [WeightedSampler(12, 1, Weighting()).take(5) for _ in range(20)]


@pytest.fixture
def remembering(monkeypatch):
    """A pass rate is that of the last outcome, for ever."""
    monkeypatch.setattr("lib.rl.curriculum.MEMORY", 0.0)
    monkeypatch.setattr("lib.rl.curriculum.FORGET_AFTER", 1e9)


def test_the_curriculum_draws_by_what_a_group_is_likely_to_teach(remembering):
    sampler = WeightedSampler(4, 3, Weighting(floor=0.1))
    assert [sampler.weight(row) for row in range(4)] == [1.0] * 4  # nothing is known
    for row, rate in enumerate((0.0, 0.5, 0.75, 1.0)):
        sampler.note(row, rate, opponent_is_right=None)
    assert [sampler.weight(row) for row in range(4)] == pytest.approx([0.1, 1.0, 0.1 + 0.9 * 0.75, 0.1])
    sampler.note(0, None, opponent_is_right=True), sampler.note(2, None, opponent_is_right=True)
    assert [sampler.weight(0), sampler.weight(2)] == pytest.approx([0.2, 0.775 * 1.25])
    sampler.note(2, None, opponent_is_right=False)
    weights = [sampler.weight(row) for row in range(4)]
    drawn = Counter(row for _ in range(4000) for row in sampler.take(1))
    for row, weight in enumerate(weights):
        assert drawn[row] / 4000 == pytest.approx(weight / sum(weights), abs=0.03)  # four standard deviations
    assert sorted(sampler.take(4)) == [0, 1, 2, 3]
    assert Counter(sampler.take(9)).most_common(1)[0][1] == 3  # more than there are: all, again and again


def test_a_weight_of_nothing_waits(remembering):
    sampler = WeightedSampler(20, 3, Weighting(floor=0.0))
    for row in range(15):
        sampler.note(row, 0.0, opponent_is_right=True)
    assert all(row >= 15 for _ in range(300) for row in sampler.take(5))
    assert sorted(sampler.take(20)) == list(range(20)) and sorted(sampler.take(6))[1:] == list(range(15, 20))


def test_the_curriculum_remembers_a_little_and_forgets():
    sampler = WeightedSampler(10, 3, Weighting())
    sampler.note(0, 1.0, None)
    assert sampler.pass_rate(0) == pytest.approx(0.3 * 0.5 + 0.7)
    sampler.note(0, 0.0, None)
    assert sampler.pass_rate(0) == pytest.approx(0.3 * 0.85)
    for _ in range(4):  # epochs
        sampler.take(10)
    assert sampler.pass_rate(0) == pytest.approx(0.5 + (0.3 * 0.85 - 0.5) / math.e)
    sampler.note(0, None, None)
    assert sampler.pass_rate(0) == pytest.approx(0.5 + (0.3 * 0.85 - 0.5) / math.e)  # it could not be judged


def test_the_curriculum_finds_more_groups_that_differ_than_chance():
    """Where a fifth of the prompts is impossible, and where none is; what it once drew oftener taught less."""
    for impossible, gain in ((0.0, 0.0), (0.2, 0.03)):
        shares = [
            [simulate(SAMPLERS[name], impossible, seed)[0] for seed in (0, 1)] for name in ("uniform", "curriculum")
        ]
        assert fmean(shares[1]) > fmean(shares[0]) + gain


def test_samplers_go_on_where_config_or_data_changed():
    plain, curriculum = Sampler(5, 1), WeightedSampler(5, 1, Weighting())
    plain.take(3), curriculum.note(4, 1.0, True)
    larger = Sampler(9, 1)
    larger.load_state_dict(plain.state_dict())
    assert (larger.size, larger.epoch, sorted(larger.take(9))) == (9, 1, list(range(9)))
    larger.load_state_dict(curriculum.state_dict())
    curriculum.load_state_dict(plain.state_dict())
    smaller = WeightedSampler(7, 1, Weighting())
    smaller.load_state_dict(curriculum.state_dict())
    assert smaller.rows == [UNSEEN] * 4 + [(0.3 * 0.5 + 0.7, 0, 1), UNSEEN, UNSEEN] and len(smaller.take(7)) == 7


# -- the buffer


def filled(values, **settings):
    replay = ReplayBuffer(ReplaySettings(**settings), seed=0)
    uids = [replay.add(f"key {i}", i, value) for i, value in enumerate(values)]
    return replay, uids


def column(replay, name):
    return [entry[name] for entry in replay.state_dict()["entries"]]


def test_untried_entries_come_first_and_each_once():
    replay, _ = filled([0.9, 0.1, 0.5, 0.7, 0.3], exploit=1.0, coefficient=0.01)
    assert sorted(replay.sample(1)[0].item for _ in range(5)) == [0, 1, 2, 3, 4]
    assert replay.sample(1)[0].item == 0  # then the best
    assert {entry.item for entry in replay.sample(9)} == {0, 1, 2, 3, 4}  # no more than there are, none twice


def test_the_rule_is_mean_plus_bonus():
    replay, _ = filled([0.5, 0.5, 0.2], exploit=1.0, coefficient=1.0)
    for _ in range(12):
        replay.sample(1)
    draws = column(replay, "draws")
    assert abs(draws[0] - draws[1]) <= 1 and draws[2] < draws[0]  # of equal means, that which was drawn less
    replay, _ = filled([0.5, 0.5, 0.2], exploit=1.0, coefficient=0.0)
    replay.sample(3), replay.credit(1, 0.9)
    assert [replay.sample(1)[0].item for _ in range(4)] == [1] * 4  # without a bonus, the highest mean
    replay, _ = filled([0.9, 0.1, 0.5, 0.3], exploit=1.0, coefficient=1000.0)
    order = [replay.sample(1)[0].item for _ in range(40)]
    assert set(Counter(order).values()) == {10}  # with a large one, in turns
    replay, _ = filled([0.9, 0.1, 0.1, 0.1], exploit=0.0)
    counts = Counter(replay.sample(1)[0].item for _ in range(1000))
    assert all(count == pytest.approx(250, abs=60) for count in counts.values())


def test_a_draw_finds_what_a_look_at_all_scores_would():
    dice = np.random.default_rng(0)
    replay, uids = filled(dice.random(60).tolist(), exploit=1.0, coefficient=0.3, capacity=60)
    replay.sample(60)  # every entry has been tried
    for step in range(300):
        mean, draws = (np.array(column(replay, name)) for name in ("mean", "draws"))
        scores = mean + 0.3 * np.sqrt(math.log(draws.sum() + 1) / draws)
        best = {column(replay, "uid")[slot] for slot in np.argsort(-scores)[:5]}
        drawn = {entry.uid for entry in replay.sample(5)}
        assert drawn == best
        for uid in drawn:
            replay.credit(uid, dice.random())
        if step % 50 == 0:
            uids.append(replay.add(f"late {step}", step, 2.0))  # in place of the lowest
            assert uids[-1] in {entry.uid for entry in replay.sample(1)}


def test_of_a_full_buffer_the_least_valuable_goes_and_may_come_back():
    replay, uids = filled([0.5, 0.2, 0.8], capacity=3)
    assert uids == [0, 1, 2] and replay.add("key 0", "twice", 0.9) is None and len(replay) == 3
    assert replay.add("new", "new", 0.2) is None  # not more than the lowest
    assert replay.add("new", "new", 0.3) == 3 and replay.find("key 1") is None
    assert replay.add("key 1", 1, 0.25) is None and replay.add("key 1", 1, 0.6) == 4
    assert replay.find("new") is None and {entry.item for entry in replay.sample(3)} == {0, 1, 2}
    for value in (math.nan, math.inf):
        assert replay.add(str(value), 9, value) is None
    replay.credit(0, math.nan), replay.credit(99, 1.0)
    assert sorted(column(replay, "mean")) == [0.5, 0.6, 0.8]
    replay.credit(2, -8.0)
    assert replay.add("better", 10, 0.0) is not None and replay.find("key 2") is None  # its mean has fallen since


def test_means_and_deviations_are_those_of_what_was_noted():
    values = [0.3, 0.9, 0.1, 0.4, 0.7]
    replay, (uid,) = filled(values[:1])
    for value in values[1:]:
        replay.credit(uid, value)
    numbers = replay.numbers()
    assert numbers["value"] == pytest.approx(np.mean(values)) and numbers["deviation"] == pytest.approx(np.std(values))
    replay, (uid,) = filled([1.0])
    for value in [1.0] * 30 + [0.0] * 6:
        replay.credit(uid, value)
    assert replay.numbers()["value"] == pytest.approx((7 / 8) ** 6)  # with a memory of 8, the past fades


@pytest.mark.parametrize("exploit", [0.7, 0.0])
def test_a_buffer_goes_on_where_its_state_was_taken(exploit):
    replay, _ = filled(np.random.default_rng(1).random(50).tolist(), capacity=40, exploit=exploit)
    dice = random.Random(0)

    def go(buffer, dice, rounds):
        drawn = []
        for i in range(rounds):
            for entry in buffer.sample(5):
                drawn.append(entry)
                buffer.credit(entry.uid, dice.random())
            buffer.add(f"{len(drawn)} {i}", i, dice.random())
        return drawn

    go(replay, dice, 10)
    other, state = again(replay, ReplayBuffer(replay.settings, 0)), dice.getstate()
    first = go(replay, dice, 20)
    dice.setstate(state)
    assert go(other, dice, 20) == first and other.state_dict() == replay.state_dict()
    small = again(replay, ReplayBuffer(ReplaySettings(capacity=7), 0))
    assert len(small) == 7 and min(column(small, "mean")) >= sorted(column(replay, "mean"))[-7]


@pytest.mark.parametrize("changes", [False, True], ids=["as they are", "changing places"])
def test_the_bound_loses_less_than_half_of_what_chance_does(changes):
    mine, chance = (fmean(regret(exploit, seed, changes) for seed in range(3)) for exploit in (0.9, 0.0))
    assert mine < (0.6 if changes else 0.5) * chance


# -- all together


def outcome(choice, pass_rate):
    return PromptOutcome(choice, str(choice.row), pass_rate, pass_rate, float(0 < pass_rate < 1))


def test_without_settings_rows_come_as_from_a_sampler():
    curriculum, sampler = Curriculum(CurriculumSettings(), ROWS, 7), Sampler(len(ROWS), 7)
    for step in range(10):
        assert curriculum.take(6, step) == [Choice(row) for row in sampler.take(6)]
        curriculum.note([outcome(Choice(3), 0.5)])
    assert curriculum.numbers() == {"epoch": 3.0} and not curriculum.chooses


def test_easy_rows_come_by_their_share_and_not_otherwise():
    pool = EasyPool(column="kind", values=["easy"], share=[(0, 0.75), (100, 0.25), (200, 0.0)])
    curriculum = Curriculum(CurriculumSettings(easy_pool=pool), ROWS, 0)
    for start, share in ((0, 0.75), (100, 0.25), (200, 0.0)):
        drawn = [choice for step in range(start, start + 100) for choice in curriculum.take(5, step)]
        easy = [choice for choice in drawn if choice.source == "easy"]
        assert {choice.row < 4 for choice in easy} <= {True} and len(drawn) == 500
        assert all(choice.row >= 4 for choice in drawn if choice.source == "data")
        assert len(easy) / 500 == pytest.approx(share, abs=0.07)
    for column, values, words in (("kin", ["easy"], "no column 'kin'"), ("kind", ["none"], "0 of 20"),
                                  ("kind", ["easy", "hard"], "20 of 20")):  # fmt: skip
        with pytest.raises(ConfigError, match=words):
            Curriculum(CurriculumSettings(easy_pool=EasyPool(column=column, values=values)), ROWS, 0)


def test_the_shares_of_easy_prompts_are_those_of_the_table():
    pool = EasyPool(column="kind", values=["easy"])
    table = {0: 1.0, 49: 1.0, 50: 0.9, 299: 0.55, 300: 0.53, 650: 0.47, 1300: 0.32, 2650: 0.06, 2999: 0.02, 9999: 0.01}
    assert {step: share_at(pool, step) for step in table} == table
    line = EasyPool(column="kind", values=["easy"], share=[(0, 1.0), (10, 0.5)], interpolate=True)
    assert [share_at(line, step) for step in (0, 5, 10, 99)] == [1.0, 0.75, 0.5, 0.5] and share_at(None, 3) == 0
    for share in ([], [(1, 0.5)], [(0, 0.5), (0, 0.2)], [(0, 0.5), (9, 0.2), (4, 0.1)]):
        with pytest.raises(ValueError, match="ascending"):
            EasyPool(column="kind", values=["easy"], share=share)


def test_the_temperature_falls_and_rises_for_single_steps():
    schedule = TemperatureSchedule(end=0.4, steps=10, high_every=5)
    found = [round(temperature_at(1.0, schedule, step), 2) for step in range(21)]
    assert found[:11] == [1.0, 0.94, 0.88, 0.82, 0.76, 0.7, 0.64, 0.58, 0.52, 0.46, 1.0]
    assert found[11:] == [0.4, 0.4, 0.4, 0.4, 1.0, 0.4, 0.4, 0.4, 0.4, 1.0]
    assert temperature_at(0.9, None, 7) == 0.9
    assert temperature_at(1.0, TemperatureSchedule(end=0.4, steps=10), 10) == 0.4


@pytest.mark.parametrize("value", ["learnability", "reward", "advantage"])
def test_what_is_worth_it_comes_again(value):
    settings = CurriculumSettings(replay=ReplaySettings(share=0.5, warmup=3, value=value, exploit=1.0))
    curriculum = Curriculum(settings, ROWS, 0)
    rates = {3: 0.0, 5: 0.5, 6: 1.0, 7: 0.25, 8: 0.75}
    assert {choice.source for choice in curriculum.take(8, 0)} == {"data"}
    curriculum.note(outcome(Choice(row), rate) for row, rate in rates.items())
    worth = {5, 7, 8} | ({6} if value == "reward" else set())  # what was never right, or teaches nothing, is not
    drawn = [choice for step in range(40) for choice in curriculum.take(8, step)]
    again = [choice for choice in drawn if choice.source == "replay"]
    assert {choice.row for choice in again} == worth and len(again) == 40 * min(4, len(worth))
    curriculum.note([outcome(again[0], 0.5), outcome(Choice(again[0].row), 0.5)])
    numbers = curriculum.numbers()
    assert numbers["replay/entries"] == len(worth) and numbers["curriculum/replay"] == 0.5
    assert numbers["curriculum/teaching_replay"] == 1.0


def test_what_differs_is_told_by_the_group_that_differs_most(make_policy):
    """Of first attempts that are all wrong and revisions that are all right there is nothing to learn."""

    def tree(first, *revisions, is_context=False):
        prompt = Prompt({}, [1, 2], "?", choice=Choice(7))
        following = [Group(prompt, [answer(right) for right in texts]) for texts in revisions]
        firsts = [answer(right, group) for right, group in zip(first, following, strict=True)]
        return Group(prompt, firsts, is_context)

    def answer(right, following=None):
        verdict = Verdict(float(right), {}, right, str(right))
        return Answer(Completion([3, int(right)], [0.0, 0.0], True), "", verdict, following)

    def outcomes(*trees, advantage=0.0):
        found = nodes(trees)
        count = found[-1].numbers.stop
        return outcomes_of(list(trees), SimpleNamespace(nodes=found, advantage=torch.full((count,), advantage)))

    (whole,) = outcomes(tree([False, False], [True, True], [True, True]))
    assert whole.pass_rate in (0.0, 1.0)
    (whole,) = outcomes(tree([False, False], [True, True], [True, False]), advantage=-0.5)
    assert (whole.pass_rate, whole.advantage, whole.choice.row) == (0.5, 0.5, 7)
    (whole,) = outcomes(tree([True, False], [True, True], [True, True], is_context=True))
    assert whole.pass_rate == 1.0  # the base's answers are none of ours


@pytest.mark.parametrize("main", [{}, {"weighting": {}}], ids=str)
def test_a_curriculum_goes_on_where_its_state_was_taken(main):
    pool = {"column": "kind", "values": ["easy"], "share": [(0, 0.5), (5, 0.2)]}
    replay = {"share": 0.4, "warmup": 2, "capacity": 6}
    settings = CurriculumSettings(**main, easy_pool=pool, replay=replay)

    def go(curriculum, dice, steps):
        drawn = []
        for step in steps:
            choices = curriculum.take(7, step)
            curriculum.note([outcome(choice, dice.choice([0.0, 0.5, 0.75, 1.0])) for choice in choices])
            drawn.append((choices, curriculum.numbers()))
        return drawn

    curriculum, dice = Curriculum(settings, ROWS, 0), random.Random(0)
    go(curriculum, dice, range(6))
    other, state = again(curriculum, Curriculum(settings, ROWS, 0)), dice.getstate()
    straight = go(curriculum, dice, range(6, 12))
    dice.setstate(state)
    assert go(other, dice, range(6, 12)) == straight
    fewer = again(curriculum, Curriculum(CurriculumSettings(replay=replay), ROWS[:5], 0))  # rows are gone: a new buffer
    assert len(fewer.take(5, 0)) == 5 and all(choice.row < 5 for choice in fewer.take(9, 1))


def test_what_cannot_go_together_is_refused():
    (keys, message), *_ = CurriculumSettings(replay={"capacity": 9, "warmup": 10}).conflicts()
    assert keys == ("replay.capacity", "replay.warmup") and "never holds 10" in message
