"""What of comparing formulae runs in a process of its own (lib/core/killable.py): math-verify."""


def equal(prediction: str, target: str) -> bool:
    """True if two formulae are equal, to 50 decimal places."""
    from math_verify import LatexExtractionConfig, LatexNormalizationConfig, parse, verify

    # with units on, math-verify drops any final s, t, h, ab, per and more as a unit: 2t would be 2
    normalization = LatexNormalizationConfig(units=False, malformed_operators=True, nits=True)
    reading = [LatexExtractionConfig(normalization_config=normalization)]
    parsed = [parse(f"${text}$", extraction_config=reading, parsing_timeout=None) for text in (target, prediction)]
    return verify(*parsed, float_rounding=50, numeric_precision=50, timeout_seconds=None, allow_set_relation_comp=True)
