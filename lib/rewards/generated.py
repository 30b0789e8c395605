"""Answers to generated tasks: the reward `reasoning_gym`, by the task's own scorer (lib/text/generated.py)."""

from collections.abc import Sequence

from lib.core.errors import ConfigError
from lib.core.registry import Judged, register_reward
from lib.text.generated import generated_score, scorer_problem


def _check(rows: Sequence[dict], places: Sequence[object]) -> None:
    """Raises ConfigError where a task's scorer pays any text, or one constant always, or not its own answer."""
    if rows and (problem := scorer_problem(rows)):
        raise ConfigError(f"dataset: {places[0]}: {problem}: choose another task")


@register_reward("reasoning_gym", check=_check)
def reasoning_gym(prediction_answers, entry, *, partial=False) -> list[Judged]:
    """Pays what the task's own scorer gives the answer in the declared place: 1, or with `partial` parts of it too.

    Off by default: most scorers give some hundredths to any text, and more to one that contains the answer.
    """
    scores = [
        generated_score(made, answer) if answer.strip() else 0.0
        for made, answer in zip(entry, prediction_answers, strict=True)
    ]
    return [Judged({"score": score if partial else float(score == 1)}, score == 1) for score in scores]
