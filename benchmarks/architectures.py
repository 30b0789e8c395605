"""Which types of causal language models can be trained: what the probe at the start of a run says of each.

    OMP_NUM_THREADS=1 python benchmarks/architectures.py              # a table in Markdown, in a minute or two
    OMP_NUM_THREADS=1 python benchmarks/architectures.py qwen3 mamba  # of these alone

Every type that transformers can build from its config class is built with random weights, two layers and a vocabulary
of 60, gets an adapter, and is probed as a run is at its start. Gaps are in nats: means over the tokens of an answer,
of that answer where they are largest, against the log-probs of the model's own forward, in float32.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from helpers.architectures import TYPES, built, probed

from lib.core.errors import ConfigError


def main() -> None:
    """Prints a row for each type as soon as it is known, and a summary of a few lines at the end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("types", nargs="*", default=TYPES)
    print("| type | sampled | scored | |\n|---|---|---|---|")
    rows = {}
    for kind in parser.parse_args().types:
        rows[kind] = result(kind)
        print(f"| {kind} | {' | '.join(rows[kind])} |", flush=True)
    for line in in_few_lines(rows):
        print(f"\n{line}")


def in_few_lines(rows: dict[str, tuple[str, str, str]]) -> list[str]:
    """Groups the types that agree by the size of their gap, and the others by their message."""
    groups: dict[str, list[str]] = {}
    for kind, (sampled, scored, why) in rows.items():
        size = max([sampled, scored], key=lambda gap: float(gap or 0))
        group = why.replace(kind, "X") if why else f"agree to {'1e-5' if float(size) <= 1e-5 else size} nats"
        groups.setdefault(group, []).append(kind)
    return [f"{group} ({len(kinds)}): {', '.join(kinds)}" for group, kinds in groups.items()]


def result(kind: str) -> tuple[str, str, str]:
    """Returns both gaps, or why there are none."""
    try:
        model = built(kind)
    except Exception as error:  # whatever transformers raises at a config that is too small for it
        return "", "", f"not built: {first_line(error)}"
    try:
        gaps = probed(kind, model)
    except ConfigError as error:
        return "", "", f"refused: {first_line(error)}"
    return f"{gaps.sampled:.0e}", f"{gaps.scored:.0e}", ""


def first_line(error: Exception) -> str:
    """Returns the first line of an error's message, fit for a table cell."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].replace("|", "/")[:200]


if __name__ == "__main__":
    from transformers.utils import logging

    logging.set_verbosity_error()
    main()
