import random

import pytest

from lib.core.config import Eval, ScoreConfig, SelfPlayConfig, SFTTrain
from lib.core.console import TELL_SECONDS, Telling
from lib.rl.plan import Held, Stage, ahead, answers, stage_of, stages_of, told, work_of_score, work_of_selfplay
from lib.rl.supervised import StepPace
from lib.run.pace import ENOUGH, Pace
from lib.text.labels import Example

COMMON = {"run_name": "x", "model": {"name": "m"}, "dataset": {"name": "d"}}


def config_of(settings, **prompts):
    return ScoreConfig(**COMMON, prompts={"self_correction": "R", **prompts}, eval=settings.model_dump())


class Time:
    """A clock that is moved by hand."""

    def __init__(self):
        self.seconds = 0.0

    def __call__(self):
        return self.seconds

    def step(self, pace, *seconds, stage=1, **what):
        """Steps of so many seconds each."""
        for each in seconds:
            self.seconds += each
            pace.step(stage, **what)

    def evaluation(self, pace, seconds, completions):
        self.seconds += seconds
        pace.evaluated(completions)


@pytest.fixture
def time():
    return Time()


@pytest.fixture
def pace(time):
    return Pace(time)


def test_loading_and_evaluations_are_no_steps(time, pace):
    time.seconds += 1000  # loading
    pace.start()
    time.evaluation(pace, 50, completions=100)
    for number in range(1, ENOUGH):
        time.step(pace, 2.0)
        assert pace.left({1: 10}) is None, number
    time.step(pace, 2.0)
    assert pace.left({1: 10}) == 20
    assert pace.left({1: 10}, completions=40) == 20 + 40 * 0.5
    time.evaluation(pace, 30, completions=100)
    time.step(pace, 2.0)
    assert pace.left({1: 10}, completions=40) == 20 + 40 * 0.3
    assert pace.left({1: 0}) == 0
    time.evaluation(pace, 1000, completions=100)  # something else kept it waiting
    assert pace.left({1: 0}, completions=40) == 40 * 0.5


def test_the_first_step_warms_up_and_a_long_wait_is_no_pace(time, pace):
    time.step(pace, 60, 1, 1, 3, 1, 1)  # with a checkpoint every third step
    assert pace.left({1: 10}) == pytest.approx(10 * (1 + 1 + 3 + 1 + 1) / 5)
    time.step(pace, 1000)
    assert pace.left({1: 6}) == pytest.approx(6 * (1 + 1 + 3 + 1 + 1 + 3) / 6)  # no more than three medians
    time.step(pace, 90, 1, 1000, stage=2)
    assert pace.left({2: 10}) == 10 * (1 + 3) / 2
    time.step(pace, *[2] * 40)
    assert pace.left({1: 10}) == 20  # what was long ago is forgotten


def test_a_stage_is_as_quick_as_the_one_before_until_it_has_shown_its_own_pace(time, pace):
    time.step(pace, 9, 2, 2, 2)
    assert pace.left({1: 3, 2: 10}) == 26
    time.step(pace, 9, 5, stage=2)
    assert pace.left({2: 8}) == 16
    time.step(pace, 5, stage=2)
    assert pace.left({2: 7}) == 35


def test_before_the_first_evaluation_its_pace_is_that_of_sampling_in_a_step(time, pace):
    time.step(pace, 4, 4, 4, completions=10, sampling=2.5)
    assert pace.left({1: 1}, completions=8) == 4 + 8 * 0.25
    time.step(pace, 4, completions=10)  # all of it
    assert pace.left({1: 1}, completions=8) == 4 + 8 * 0.4
    time.evaluation(pace, 8, completions=8)
    time.step(pace, 4, completions=10, sampling=2.5)
    assert pace.left({1: 1}, completions=8) == 4 + 8


def test_steps_whose_sizes_are_known_count_by_them(time, pace):
    for size in (100, 100, 100, 200):
        time.step(pace, size / 50, size=size)
    assert pace.left({1: 200 + 400 + 400}) == pytest.approx(20)


def test_a_curriculum_of_sft_is_told_by_its_tokens(time):
    examples = [Example(ids=[0] * (10 if number < 60 else 20), trained=[], ends=frozenset(), is_exact=True)
                for number in range(100)]  # fmt: skip
    pace = StepPace(SFTTrain(shuffle=False, eval_every=10), examples, held_out=8, rows=4)  # an epoch has 25 steps
    pace.pace = Pace(time)
    for step in range(1, 10):
        time.seconds += 0.04 * sum(len(example.ids) for example in examples[4 * step - 4 : 4 * step])
        pace.step(step)
    seconds = 0.04 * 4 * (10 * 6 + 20 * 10 + 10 * 15 + 20 * 10)  # two epochs
    evaluation = 8 * 0.04 * 40 / (3 * 4)  # a third of training
    assert pace.left(9, 50, due=False) == pytest.approx(seconds + 5 * evaluation)
    assert pace.left(10, 50, due=True) == pytest.approx(seconds - 1.6 + 5 * evaluation)
    time.seconds += 3
    pace.evaluated()
    assert pace.left(10, 50, due=False) == pytest.approx(seconds - 1.6 + 4 * 3)
    assert StepPace(SFTTrain(), examples, held_out=0, rows=4).sizes == [1]


def test_it_is_right_by_a_quarter_from_a_tenth_of_a_run_on(time, pace):
    """Noise, checkpoints, a second stage that is a fifth slower, answers that become longer, a wait, evaluations."""
    draw = random.Random(0)
    stages, settings = [Stage(1, 70, 32), Stage(2, 50, 32)], Eval(every_steps=20, max_examples=1000, step_examples=300)
    held = Held(1000, 300)
    moments = []  # each: when, and what was told then
    time.seconds += 45
    pace.start()

    def evaluate(when, growth):
        asked = answers(config_of(settings), when, held)
        time.evaluation(pace, asked * 0.008 * growth, asked)

    evaluate("pretrain", 1.0)
    for stage in stages:
        for step in range(1, stage.steps + 1):
            growth = 1 + 0.1 * step / stage.steps
            seconds = 0.5 * growth * draw.uniform(0.7, 1.3) * (1 if stage.number == 1 else 1.2)
            time.step(pace, seconds + 0.3 * (step % 20 == 1) + 8 * (step == 33), stage=stage.number)
            due = "step" if step % 20 == 0 and step < stage.steps else None
            left = ahead(stages, settings, stage.number, step, due)
            asked = sum(answers(config_of(settings), when, held) for when in left.evaluations)
            moments.append((time.seconds, pace.left(left.steps, asked)))
            if due:
                evaluate(due, growth)
        evaluate("end", 1.1)
    whole = time.seconds
    assert [left is None for _, left in moments[:4]] == [True, True, False, False]
    late = [(at, left) for at, left in moments[2:] if at >= whole / 10]
    assert all(abs(left - (whole - at)) <= 0.25 * (whole - at) for at, left in late)


# -- what is told of an evaluation


def test_an_evaluation_tells_now_and_then_and_a_short_one_nothing(time):
    lines = []
    telling = Telling(lines.append, "eval pretrain, greedy", time)
    for done in range(1, 61):
        time.seconds += TELL_SECONDS / 15
        telling(done, 60)
    assert lines == [
        "eval pretrain, greedy: 15/60 questions, 45s left",
        "eval pretrain, greedy: 30/60 questions, 30s left",
        "eval pretrain, greedy: 45/60 questions, 15s left",
    ]
    quick = Telling(lines.append, "eval step, greedy", time)
    time.seconds += TELL_SECONDS - 0.1
    quick(399, 400)
    assert len(lines) == 3
    time.seconds += 0.1
    quick(39, 400)  # the first ones to end say little about the others
    assert lines[3:] == ["eval step, greedy: 39/400 questions"]


# -- what is planned


def test_the_evaluations_ahead_are_those_that_a_run_makes():
    stages, settings = [Stage(1, 6, 4), Stage(2, 12, 4)], Eval(every_steps=4)
    steps = ["step"]

    def left(*where):
        there = ahead(stages, settings, *where)
        return there.steps, there.evaluations

    assert left() == ({1: 6, 2: 12}, ["pretrain", *steps, "end", *steps, *steps, "end"])
    assert left(1, 4, "step") == ({1: 2, 2: 12}, ["step", "end", *steps, *steps, "end"])
    assert left(1, 4, None) == ({1: 2, 2: 12}, ["end", *steps, *steps, "end"])
    assert left(1, 6, None) == ({1: 0, 2: 12}, ["end", *steps, *steps, "end"])
    assert left(2, 0, None) == ({2: 12}, [*steps, *steps, "end"])
    assert left(2, 12, None) == ({2: 0}, ["end"])
    assert left(3, 12, None) == ({}, [])


def test_an_evaluation_has_rows_to_choose_by_and_a_greedy_one_beside_it():
    settings = Eval(max_examples=50, step_examples=20, samples_per_prompt=4, temperature=1.0, greedy_too=True)
    config = config_of(settings)
    assert answers(config, "pretrain", Held(80, 30)) == (50 + 30) * 4 + 50
    assert answers(config, "pretrain", Held(40, 10)) == (40 + 10) * 4 + 40
    assert answers(config, "step", Held(80, 30)) == (20 + 30) * 4
    assert answers(config_of(Eval()), "end", Held(80, 0)) == 80
    fed_back = config_of(settings, feedback="verdict")  # one more pass, without feedback
    assert answers(fed_back, "pretrain", Held(80, 30)) == (50 + 30) * 4 + 50 + 50 * 4
    assert answers(fed_back, "step", Held(80, 30)) == (20 + 30) * 4 + 20 * 4


def test_the_plan_of_both_attempts_by_hand():
    train = {"stage1_steps": 3, "stage2_steps": 2, "stage1_batch_size": 5, "stage2_batch_size": 7,
             "attempts_per_prompt": 2, "revisions_per_attempt": 3}  # fmt: skip
    budgets = {"max_new_tokens_attempt1": 10, "max_new_tokens_attempt2": 100, "max_prompt_length_attempt1": 100}
    config = ScoreConfig(**COMMON, prompts={"self_correction": "R"}, train=train, generation=budgets)
    line = told(work_of_score(config, ahead(stages_of(config, 99), config.eval), Held(20, 5)))
    assert line == (
        "planned: stage I, 3 steps: 120 completions of at most 9,300 tokens in all; "  # 3 x 5 x (2 + 6)
        "stage II, 2 steps: 112 completions of at most 8,680 tokens in all; "
        "3 evaluations: 150 completions of at most 8,250 tokens in all"
    )
    config = config.model_copy(update={"train": config.train.model_copy(update={"stage1_steps": 0})})
    line = told(work_of_score(config, ahead(stages_of(config, 99), config.eval, 2, 1, None), Held(20, 5)), "left")
    assert line == (
        "left: stage II, 1 step: 56 completions of at most 4,340 tokens in all; "
        "1 evaluation: 50 completions of at most 2,750 tokens in all"
    )


SERVER = {"endpoint": {"base_url": "http://127.0.0.1:9/v1", "model": "m"}}


@pytest.mark.parametrize(
    ("opponent", "teacher", "expected"),
    [
        (None, None, []),
        ({"snapshots": {}}, None, ["opponent: at most 29 completions of at most 290"]),  # 9 rows and 20, once each
        ({"snapshots": {"every_steps": 1}}, None, ["opponent: at most 50 completions of at most 500"]),
        (SERVER | {"max_new_tokens": 7}, None, ["opponent: at most 29 completions of at most 203"]),
        (
            None,
            SERVER | {"hint": {"neither": 0.5}, "max_new_tokens": 20, "solve": {"probability": 0.1}},
            ["teacher, where all fail: about 18 completions of at most 330", "retries under its hints: about 60"],
        ),
    ],
)  # fmt: skip
def test_the_plan_of_self_play_by_hand(opponent, teacher, expected):
    config = SelfPlayConfig(
        **COMMON, opponent=opponent, teacher=teacher,
        generation={"max_new_tokens": 10}, train={"steps": 3, "batch_size": 10, "group_size": 4},
        eval={"samples_per_prompt": 2, "temperature": 1.0},
    )  # fmt: skip
    line = told(work_of_selfplay(config, ahead([stage_of(config, 9)], config.eval), Held(20, 5), rows=9))
    parts = line.removeprefix("planned: ").split("; ")
    assert parts[0] == "3 steps: 120 completions of at most 1,200 tokens in all"
    assert parts[-1] == "2 evaluations: 100 completions of at most 1,000 tokens in all"
    assert len(parts) == 2 + len(expected)
    assert all(part.startswith(start) for part, start in zip(parts[1:-1], expected, strict=True))
