"""What every section of a config is, and the kinds of numbers in it."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=1)]
CountOrZero = Annotated[int, Field(ge=0)]
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Share = Annotated[float, Field(gt=0, le=1)]
Conflicts = Iterator[tuple[tuple[str, ...], str]]  # the keys involved, and a sentence that ends with the fix


class Section(BaseModel):
    """Base of every block of the YAML: unknown keys are mistakes, values never change after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def _conflicts(self) -> Conflicts:
        """Yields values that do not fit together and have their keys here, or in different sections of this one."""
        return iter(())

    def conflicts(self) -> Conflicts:
        """Yields all values that do not fit together, here and in the sections within."""
        yield from self._conflicts()
        for name, value in self:
            by_path = {name: value}
            if isinstance(value, dict):
                by_path = {f"{name}.{key}": item for key, item in value.items()}
            for path, section in by_path.items():
                if isinstance(section, Section):
                    for keys, message in section.conflicts():
                        yield tuple(f"{path}.{key}" for key in keys), message
