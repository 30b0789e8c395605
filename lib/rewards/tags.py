"""Rewards that pay for a think block and an answer block next to the match."""

from lib.core.registry import Judged, register_reward
from lib.text.formats import block_problem, format_problem


@register_reward("format_and_match", pays_format=True)
def format_and_match(predictions, right) -> list[Judged]:
    """Pays 0.25 for one think block, 0.25 for one answer block after it, and 0.5 for a match if both are there.

    A text without both is malformed: in a sum with other rewards it earns nothing. Whether prose may stand around the
    blocks is up to `reward.format`: `answer` allows it before the answer block, `think_answer` nowhere.
    """
    verdicts = []
    for prediction, is_right in zip(predictions, right, strict=True):
        no_think, no_answer = block_problem(prediction, "think"), block_problem(prediction, "answer")
        if not (no_think or no_answer) and prediction.find("<answer>") < prediction.find("</think>"):
            no_answer = "<answer> within or before the <think> block"
        problem = no_think or no_answer
        parts = {
            "think": 0.25 * (not no_think),
            "answer": 0.25 * (not no_answer),
            "match": 0.5 * (is_right and not problem),
        }
        verdicts.append(Judged(parts, malformed=problem or None))
    return verdicts


@register_reward("strict_format_and_match", pays_format=True)
def strict_format_and_match(predictions, right) -> list[Judged]:
    """Pays 0.5 for exactly one think block and one answer block, and 0.5 for a match in them; else nothing."""
    verdicts = []
    for prediction, is_right in zip(predictions, right, strict=True):
        problem = format_problem("think_answer", prediction)
        parts = {"format": 0.5 * (not problem), "match": 0.5 * (is_right and not problem)}
        verdicts.append(Judged(parts, malformed=problem or None))
    return verdicts
