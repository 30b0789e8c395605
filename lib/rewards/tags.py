"""Rewards that pay for the declared format beside the answer: malformed never earns what well-formed does."""

from lib.core.registry import register_reward
from lib.text.parsing import tag_blocks


@register_reward("format_and_match", pays_format=True)
def format_and_match(predictions, well_formed, right) -> list[dict[str, float]]:
    """Pays 0.3 for the declared format, 0.5 for a match, and 0.1 each for exactly one closed think and answer pair.

    A malformed text earns 0.2 at most, a well-formed one 0.3 at least, and with both pairs and the right answer 1.
    """
    return [
        {
            "think": 0.1 * (len(tag_blocks(prediction, "think")) == 1),
            "answer": 0.1 * (len(tag_blocks(prediction, "answer")) == 1),
            "format": 0.3 * is_well_formed,
            "match": 0.5 * is_right,
        }
        for prediction, is_well_formed, is_right in zip(predictions, well_formed, right, strict=True)
    ]


@register_reward("strict_format_and_match", pays_format=True)
def strict_format_and_match(well_formed, right) -> list[dict[str, float]]:
    """Pays 0.5 for the declared format and 0.5 for a match; a malformed text earns nothing."""
    return [
        {"format": 0.5 * is_well_formed, "match": 0.5 * is_right}
        for is_well_formed, is_right in zip(well_formed, right, strict=True)
    ]
