"""The work that a run has left: stages, steps, evaluations, completions and the most tokens."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from lib.core.config import Eval, RLConfig, ScoreConfig, SelfPlayConfig, TrainLoop


@dataclass(frozen=True)
class Stage:
    """One of SCoRe's two stages: I anchors attempt 1 and rewards attempt 2; II rewards both and adds the bonus.

    Self-play has a single stage.
    """

    number: int
    steps: int
    batch_size: int  # prompts per step, over all processes
    before: int = 0  # steps of the stages before it


@dataclass(frozen=True)
class HeldOut:
    """The most held-out rows that an evaluation may use."""

    reported: int
    chosen_by: int


@dataclass(frozen=True)
class Remaining:
    """The steps and evaluations that are left."""

    stages: list[Stage]  # unfinished ones, with the steps that are left
    evaluations: list[str]  # their moments: `pretrain` or another one due now, `step`, `end`

    @property
    def steps(self) -> int:
        """Returns the number of steps left."""
        return sum(stage.steps for stage in self.stages)


@dataclass(frozen=True)
class Work:
    """Completions of one kind."""

    what: str
    completions: int
    tokens: int  # at most, in all

    def __str__(self) -> str:
        return f"{self.what} {self.completions:,} completions of at most {amount(self.tokens)} tokens in all"


def amount(tokens: float) -> str:
    """Formats as `61,440` or `3.9 M`."""
    return f"{tokens:,.0f}" if tokens < 1e5 else f"{tokens / 1e6:,.1f} M"


def counted(number: int, what: str) -> str:
    """Formats as `1 step` or `2 steps`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def stages_of(config: ScoreConfig, rows: int) -> list[Stage]:
    """Returns the stages that have steps; epochs are converted to steps over `rows` training rows."""
    train, before = config.train, 0
    stages = []
    for number in filter(train.has_steps, (1, 2)):
        batch = getattr(train, f"stage{number}_batch_size")
        steps = getattr(train, f"stage{number}_steps")
        if steps is None:
            steps = math.ceil(getattr(train, f"stage{number}_epochs") * rows / batch)
        stages.append(Stage(number, steps, batch, before))
        before += steps
    return [stage for stage in stages if stage.steps]


def stage_of(config: SelfPlayConfig, rows: int) -> Stage:
    """Returns the single stage of self-play; epochs are converted to steps over `rows` training rows."""
    train = config.train
    return Stage(1, train.steps or math.ceil(train.epochs * rows / train.batch_size), train.batch_size)


def work_left(
    stages: list[Stage], settings: Eval, stage: int = 1, step: int = 0, due: str | None = "pretrain"
) -> Remaining:
    """Returns the work left after `step` steps of `stage`: evaluations end each stage, and one may be `due` now."""
    left, moments = [], [due] if due else []
    for planned in stages:
        if planned.number < stage:
            continue
        done = step if planned.number == stage else 0
        left.append(replace(planned, steps=planned.steps - done))
        if settings.every_steps:
            moments += ["step"] * ((planned.steps - 1) // settings.every_steps - done // settings.every_steps)
        moments.append("end")
    return Remaining(left, moments)


def answers(config: RLConfig, when: str, held_out: HeldOut) -> int:
    """Returns the number of answers that an evaluation samples, with those that training selects by."""
    ways = [settings for settings, _ in config.evaluations(when)]
    reported = sum(min(held_out.reported, settings.examples(when)) * settings.samples_per_prompt for settings in ways)
    return reported + held_out.chosen_by * config.eval.samples_per_prompt


def work_of_score(config: ScoreConfig, left: Remaining, held_out: HeldOut) -> Iterator[Work]:
    """Yields the completions of all turns, by stage, and those of the evaluations."""
    train = config.train
    new1, *later = config.budgets
    for stage in left.stages:
        first = stage.steps * stage.batch_size * train.attempts_per_prompt
        followed = stage.steps * stage.batch_size * train.followed
        revised = followed * train.revisions_per_attempt
        name = f"stage {'I' * stage.number}, {counted(stage.steps, 'step')}{_resampled(train)}:"
        yield Work(name, first + revised * len(later), first * new1 + revised * sum(later))
    sampled = sum(answers(config, when, held_out) for when in left.evaluations)
    budgets = config.eval_budgets
    yield Work(f"{counted(len(left.evaluations), 'evaluation')}:", len(budgets) * sampled, sampled * sum(budgets))


def work_of_selfplay(config: SelfPlayConfig, left: Remaining, held_out: HeldOut, rows: int) -> Iterator[Work]:
    """Yields the completions of the policy, the most of opponent and teacher, and those of the evaluations."""
    train, most, turns = config.train, sum(config.budgets), len(config.budgets)
    prompts = sum(stage.steps * stage.batch_size for stage in left.stages)
    policy = prompts * train.group_size
    yield Work(f"{counted(left.steps, 'step')}{_resampled(train)}:", policy * turns, policy * most)
    drawn = prompts * (1 + train.resample_rounds)
    if opponent := config.opponent:
        is_fixed = opponent.server or not opponent.snapshots.every_steps  # then it answers each prompt once per run
        most_replies = min(drawn, rows) if is_fixed else drawn
        most_replies += min(held_out.reported, config.eval.max_examples) if left.evaluations else 0
        yield Work("opponent: at most", most_replies, most_replies * _most_of_opponent(config))
    if teacher := config.teacher:
        hint, thinking = teacher.hint, _thinking(config, "teacher")
        hints = math.ceil(drawn * max(hint.neither, hint.opponent_only))
        solutions = math.ceil(drawn * teacher.solve.probability)
        tokens = hints * teacher.max_new_tokens + solutions * config.generation.max_new_tokens
        yield Work("teacher, where all fail: about", hints + solutions, tokens + (hints + solutions) * thinking)
        retries = hints * train.group_size
        if hint.train != "distill":
            yield Work("retries under its hints: about", retries, retries * most)
    sampled = sum(answers(config, when, held_out) for when in left.evaluations)
    yield Work(f"{counted(len(left.evaluations), 'evaluation')}:", sampled * turns, sampled * most)


def _resampled(train: TrainLoop) -> str:
    rounds = train.resample_rounds
    return f" (up to {1 + rounds} times as much by train.resample_rounds)" if rounds else ""


def _most_of_opponent(config: SelfPlayConfig) -> int:
    """Returns the most tokens of one answer by the opponent."""
    opponent, generation = config.opponent, config.generation
    if opponent.snapshots:
        return generation.most_tokens
    return generation.max_new_tokens + _thinking(config, "opponent")


def _thinking(config: RLConfig, section: str) -> int:
    """Returns the most tokens that the server of a section may think in one answer."""
    return config.server_of(section).thinking.budget_tokens


def work_line(works: Iterable[Work], word: str = "planned") -> str:
    """Formats the works in one line."""
    return f"{word}: {'; '.join(map(str, works))}"
