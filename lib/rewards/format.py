"""Rewards for `<think>...</think><answer>...</answer>`, beside those for the answer; only predictions are checked."""

import re

from lib.parsing import tag_blocks
from lib.registry import register_reward

_STRICT = re.compile(r"\s*<think>.*</think>\s*<answer>.*</answer>\s*", re.DOTALL)
_TAGS = ("<think>", "</think>", "<answer>", "</answer>")


@register_reward("format_and_match")
def format_and_match(predictions, targets, extractor, match) -> list[dict[str, float]]:
    """0.25 for exactly one closed think pair, 0.25 for exactly one closed answer pair, 0.5 for a match."""
    return [
        {
            "think": 0.25 * (len(tag_blocks(prediction, "think")) == 1),
            "answer": 0.25 * (len(tag_blocks(prediction, "answer")) == 1),
            "match": 0.5 * match(extractor(prediction), extractor(target)),
        }
        for prediction, target in zip(predictions, targets, strict=True)
    ]


@register_reward("strict_format_and_match")
def strict_format_and_match(predictions, targets, extractor, match) -> list[dict[str, float]]:
    """0.5 if a think block and then an answer block, with blanks around them, are the whole output; 0.5 for a match.

    Each of the four tags occurs exactly once.
    """
    return [
        {
            "format": 0.5 * _is_strict(prediction),
            "match": 0.5 * match(extractor(prediction), extractor(target)),
        }
        for prediction, target in zip(predictions, targets, strict=True)
    ]


def _is_strict(text: str) -> bool:
    # Counting first: the pattern alone accepts a second block inside the first one's text.
    return all(text.count(tag) == 1 for tag in _TAGS) and _STRICT.fullmatch(text) is not None
