import pytest

from lib.core.config import Eval, ScoreConfig, SelfPlayConfig
from lib.core.console import PRINT_SECONDS, ProgressPrinter
from lib.rl.plan import (
    HeldOut,
    Stage,
    answers,
    stage_of,
    stages_of,
    work_left,
    work_line,
    work_of_score,
    work_of_selfplay,
)

COMMON = {"run_name": "x", "model": {"name": "m"}, "dataset": {"name": "d"}}


def config_of(settings, **prompts):
    return ScoreConfig(**COMMON, prompts={"self_correction": "R", **prompts}, eval=settings.model_dump())


class Time:
    """A clock that is moved by hand."""

    def __init__(self):
        self.seconds = 0.0

    def __call__(self):
        return self.seconds


@pytest.fixture
def time():
    return Time()


# -- what is told of an evaluation


def test_an_evaluation_tells_now_and_then_and_a_short_one_nothing(time):
    lines = []
    printer = ProgressPrinter(lines.append, "eval pretrain, greedy", time)
    for done in range(1, 61):
        time.seconds += PRINT_SECONDS / 15
        printer(done, 60)
    assert lines == [
        "eval pretrain, greedy: 15/60 questions",
        "eval pretrain, greedy: 30/60 questions",
        "eval pretrain, greedy: 45/60 questions",
    ]
    quick = ProgressPrinter(lines.append, "eval step, greedy", time)
    time.seconds += PRINT_SECONDS - 0.1
    quick(399, 400)
    assert len(lines) == 3
    time.seconds += 0.1
    quick(39, 400)
    assert lines[3:] == ["eval step, greedy: 39/400 questions"]


# -- what is planned


def test_the_evaluations_ahead_are_those_that_a_run_makes():
    stages, settings = [Stage(1, 6, 4), Stage(2, 12, 4)], Eval(every_steps=4)
    steps = ["step"]

    def left(*where):
        there = work_left(stages, settings, *where)
        return {stage.number: stage.steps for stage in there.stages}, there.evaluations

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
    assert answers(config, "pretrain", HeldOut(80, 30)) == (50 + 30) * 4 + 50
    assert answers(config, "pretrain", HeldOut(40, 10)) == (40 + 10) * 4 + 40
    assert answers(config, "step", HeldOut(80, 30)) == (20 + 30) * 4
    assert answers(config_of(Eval()), "end", HeldOut(80, 0)) == 80
    fed_back = config_of(settings, feedback="verdict")  # one more pass, without feedback
    assert answers(fed_back, "pretrain", HeldOut(80, 30)) == (50 + 30) * 4 + 50 + 50 * 4
    assert answers(fed_back, "step", HeldOut(80, 30)) == (20 + 30) * 4 + 20 * 4


def test_the_plan_of_both_attempts_by_hand():
    train = {"stage1_steps": 3, "stage2_steps": 2, "stage1_batch_size": 5, "stage2_batch_size": 7,
             "attempts_per_prompt": 2, "revisions_per_attempt": 3}  # fmt: skip
    budgets = {"max_new_tokens_attempt1": 10, "max_new_tokens_attempt2": 100, "max_prompt_length_attempt1": 100}
    config = ScoreConfig(**COMMON, prompts={"self_correction": "R"}, train=train, generation=budgets)
    line = work_line(work_of_score(config, work_left(stages_of(config, 99), config.eval), HeldOut(20, 5)))
    assert line == (
        "planned: stage I, 3 steps: 120 completions of at most 9,300 tokens in all; "  # 3 x 5 x (2 + 6)
        "stage II, 2 steps: 112 completions of at most 8,680 tokens in all; "
        "3 evaluations: 150 completions of at most 8,250 tokens in all"
    )
    config = config.model_copy(update={"train": config.train.model_copy(update={"stage1_steps": 0})})
    left = work_left(stages_of(config, 99), config.eval, 2, 1, None)
    line = work_line(work_of_score(config, left, HeldOut(20, 5)), "left")
    assert line == (
        "left: stage II, 1 step: 56 completions of at most 4,340 tokens in all; "
        "1 evaluation: 50 completions of at most 2,750 tokens in all"
    )


SERVER = {"server": "far"}


@pytest.mark.parametrize(
    ("opponent", "teacher", "expected"),
    [
        (None, None, []),
        ({"snapshots": {}}, None, ["opponent: at most 29 completions of at most 290"]),  # 9 rows and 20, once each
        ({"snapshots": {"every_steps": 1}}, None, ["opponent: at most 50 completions of at most 500"]),
        (SERVER, None, ["opponent: at most 29 completions of at most 290"]),
        (
            None,
            SERVER | {"hint": {"neither": 0.5}, "max_new_tokens": 20, "solve": {"probability": 0.1}},
            ["teacher, where all fail: about 18 completions of at most 330", "retries under its hints: about 60"],
        ),
    ],
)  # fmt: skip
def test_the_plan_of_self_play_by_hand(opponent, teacher, expected):
    config = SelfPlayConfig(
        **COMMON, servers={"far": {"model": "m"}}, opponent=opponent, teacher=teacher,
        generation={"max_new_tokens": 10}, train={"steps": 3, "batch_size": 10, "group_size": 4},
        eval={"samples_per_prompt": 2, "temperature": 1.0},
    )  # fmt: skip
    line = work_line(work_of_selfplay(config, work_left([stage_of(config, 9)], config.eval), HeldOut(20, 5), rows=9))
    parts = line.removeprefix("planned: ").split("; ")
    assert parts[0] == "3 steps: 120 completions of at most 1,200 tokens in all"
    assert parts[-1] == "2 evaluations: 100 completions of at most 1,000 tokens in all"
    assert len(parts) == 2 + len(expected)
    assert all(part.startswith(start) for part, start in zip(parts[1:-1], expected, strict=True))
