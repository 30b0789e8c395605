"""The work of one training step, as benchmarks/step.py gives it to every contender."""

import json
import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Case:
    """A model and the work of one step. Prompts all have one length."""

    model: str
    prompts: int  # P
    attempts: int  # K1
    revisions: int  # K2; 0: answers of one attempt, and no KL
    length: int  # tokens of the longest completion
    prompt_tokens: int
    trl_rows: int  # completions of a micro-batch, at most
    micro_batch_tokens: int = 4096  # ours
    at_once: int | None = None  # completions that the others decode together; None: all of them
    equal: bool = False  # every completion has the full length; else lengths are spread evenly from 1 on
    dtype: str = "float32"  # of the frozen weights

    @property
    def firsts(self) -> int:
        """Counts the first attempts of a step."""
        return self.prompts * self.attempts

    @property
    def seconds(self) -> int:
        """Counts the second attempts of a step."""
        return self.firsts * self.revisions

    @property
    def completions(self) -> int:
        """Counts the first and second attempts of a step."""
        return self.firsts + self.seconds

    @property
    def tokens(self) -> int:
        """Counts the tokens that a step generates, and then trains."""
        return sum(self.lengths(self.firsts)) + sum(self.lengths(self.seconds))

    def lengths(self, count: int) -> list[int]:
        """Returns the lengths of `count` completions of a step."""
        return [self.length if self.equal else 1 + i * self.length // count for i in range(count)]

    def drawn(self, *counts: int) -> Iterator[int]:
        """Yields the lengths of the `counts` completions of a step in random order; then those of the next step."""
        draw = random.Random(0)
        lengths = [length for count in counts for length in self.lengths(count)]
        while True:
            draw.shuffle(lengths)
            yield from lengths

    def save(self, folder: Path) -> None:
        """Writes the case for the contenders."""
        (folder / "case.json").write_text(json.dumps(asdict(self)), encoding="utf-8")


def saved_case(folder: Path) -> Case:
    """Reads the case that the parent has written."""
    return Case(**json.loads((folder / "case.json").read_text(encoding="utf-8")))
