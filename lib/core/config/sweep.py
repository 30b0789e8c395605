"""The config of sweep.py: commands in stages, and their variants over seeds."""

import re
import shlex
from collections.abc import Iterator
from string import Formatter
from typing import Annotated

from pydantic import Field

from lib.core.conditions import read_condition
from lib.core.config.section import Conflicts, Count, CountOrZero, Fraction, Name
from lib.core.config.shared import Outputs
from lib.core.registry import did_you_mean

PLACEHOLDERS = ("seed", "variant", "threads", "dir", "run")


class SweepConfig(Outputs):
    """sweep.py"""

    stages: Annotated[dict[Annotated[str, Field(pattern=r"^[a-z]\w*$")], Name], Field(min_length=1)]
    # {name: command}, run in this order; the last stage is measured. A command that begins with a .py file is run by
    # this Python. In it, {seed}, {variant} and {threads} are those of the run, {dir} is the stage's own folder, {run}
    # makes that the script's run directory, and an earlier stage's name in braces is its folder. Double other braces.
    variants: Annotated[
        dict[Annotated[str, Field(pattern=r"^\w[\w.-]*$")], list[Name] | dict[str, list[Name]]], Field(min_length=1)
    ] = {"default": []}
    # words to append to the last stage's command, or {stage: words}; stages that no variant changes run once per seed
    seeds: Count | Annotated[list[CountOrZero], Field(min_length=1)] = 5
    # a list of seeds, or their number: 5 is seeds 0 to 4
    threads: Annotated[list[Count], Field(min_length=1)] = [1]  # OMP_NUM_THREADS; seed n uses entry n mod length
    parallel: Count | None = None  # number of commands run at once; null: as many as have cores for their threads
    figures: dict[str, Name] = {}
    # for a last stage that is not a script of this repository: {moment.key: regular expression with one group}; the
    # figure is the last match in its screen output
    level: Fraction | None = None
    # an accuracy; the table tells how many tokens a run samples in training before an evaluation first reaches it
    require: list[str] = []  # conditions that every run must meet (lib/core/conditions.py)

    @property
    def all_seeds(self) -> list[int]:
        """Returns all seeds, in order."""
        return list(range(self.seeds)) if isinstance(self.seeds, int) else self.seeds

    def extra_words(self, variant: str, stage: str) -> list[str]:
        """Returns the words that a variant appends to the command of a stage."""
        words = self.variants[variant]
        if isinstance(words, list):
            words = {list(self.stages)[-1]: words}
        return words.get(stage, [])

    def _conflicts(self) -> Conflicts:
        yield from self._conflicts_of_stages()
        yield from self._conflicts_of_figures()
        if len(set(self.all_seeds)) < len(self.all_seeds):
            yield ("seeds",), "a seed stands there twice: remove one of the two"
        for text in self.require:
            try:
                read_condition(text)
            except ValueError as error:
                yield ("require",), str(error)

    def _conflicts_of_stages(self) -> Conflicts:
        names = list(PLACEHOLDERS)
        for stage, command in self.stages.items():
            try:
                shlex.split(command)
            except ValueError as error:
                yield ("stages",), f"{stage}: {error}: close the quotation in its command"
            if stage in PLACEHOLDERS:
                yield ("stages",), f"'{stage}' already means something in a command: give the stage another name"
            texts = [command, *(word for variant in self.variants for word in self.extra_words(variant, stage))]
            yield from ((("stages", "variants"), f"{stage}: {wrong}") for wrong in _placeholder_mistakes(texts, names))
            names.append(stage)
        for variant, words in self.variants.items():
            if variant == "shared":
                yield ("variants",), "the folder 'shared' is for what no variant changes: give the variant another name"
            for stage in words if isinstance(words, dict) else ():
                if stage not in self.stages:
                    hint = did_you_mean(stage, self.stages) or f"; known: {', '.join(self.stages)}"
                    yield ("variants", "stages"), f"{variant}: there is no stage '{stage}'{hint}"

    def _conflicts_of_figures(self) -> Conflicts:
        for name, pattern in self.figures.items():
            try:
                groups = re.compile(pattern).groups
            except re.error as error:
                yield ("figures",), f"{name}: '{pattern}' is no regular expression ({error}): correct it"
            else:
                if groups != 1 or not re.fullmatch(r"[A-Za-z]\w*\.[A-Za-z_]\w*", name):
                    yield ("figures",), f"{name}: expected moment.key, and one pair of brackets around the number"


def _placeholder_mistakes(texts: list[str], valid: list[str]) -> Iterator[str]:
    for text in texts:
        try:
            names = {name for _, name, _, _ in Formatter().parse(text) if name is not None}
        except ValueError as error:
            yield f"'{text}': {str(error).lower()}; double a brace to keep it"
            continue
        for name in sorted(names - set(valid)):
            hint = did_you_mean(name, valid) or f"; known here: {', '.join(valid)}"
            yield f"'{{{name}}}' is no placeholder{hint}; double a brace to keep it"
