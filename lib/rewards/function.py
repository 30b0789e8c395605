"""Calls a reward: checks its parameters, options and return value, and names the sample that makes it raise."""

import inspect
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

from lib.core import registry
from lib.core.errors import ConfigError, RewardError
from lib.core.registry import Judged, blamed_on, did_you_mean

SUPPLIED = (  # what a judge gives to a reward, besides the columns
    "predictions", "completions", "well_formed", "right", "targets", "prediction_answers", "target_answers", "match",
    "prompts", "rows",
)  # fmt: skip
_SEARCH_SECONDS = 10.0  # to find the sample for which a reward raises


class RewardFunction:
    """A registered reward with its options."""

    def __init__(self, name: str, columns: Sequence[str], options: Mapping[str, Any]):
        self.name, self.columns, self.options = name, columns, dict(options)
        self.function, self.hooks = registry.rewards.get(name), registry.rewards.hooks(name)
        self._read_signature()

    def __call__(self, lists: dict[str, Any], columns: Mapping[str, Any], texts: list[str]) -> list[Judged]:
        """Returns the reward's judgement of each prediction. Raises ConfigError, RewardError."""
        absent = [name for name in self.required if name not in lists]
        if absent:
            raise ConfigError(f"reward '{self.name}' needs {', '.join(absent)}, which this batch lacks")
        taken = (self.named | set(columns) if self._takes_all else self.named) - set(self._defaults)
        # lists of its own, which it may change
        arguments = {name: part if callable(part) else list(part) for name, part in lists.items() if name in taken}
        count = len(texts)
        try:
            with blamed_on(f"reward '{self.name}'"):
                returned = self.function(**(arguments | self.options))
        except RewardError as error:
            raise RewardError(f"{error} {self._first_broken(arguments, texts)}") from error.__cause__
        if not isinstance(returned, list) or len(returned) != count:
            got = f"{len(returned)} values" if isinstance(returned, list) else f"a {type(returned).__name__}"
            raise (RewardError if texts else ConfigError)(  # about nothing: to check reward.options
                f"reward '{self.name}' returned {got} for {count} predictions: expected a list with one "
                "number, or one dict of numbers, for each"
            )
        return [self._judged(value, index, texts[index]) for index, value in enumerate(returned)]

    def begin(self, text: str, row: dict) -> None:
        """Calls the reward's `begin` with a prediction and its row, if it has one."""
        if self.hooks.begin:
            with blamed_on(f"reward '{self.name}'", f" in its begin() for {text[:80]!r}"):
                self.hooks.begin(text, row)

    def check(self, rows: Sequence[Mapping[str, Any]], places: Sequence[Any]) -> None:
        """Calls the reward's `check` with all rows, if it has one."""
        if check := self.hooks.check:
            takes = {"places": places} if "places" in inspect.signature(check).parameters else {}
            with blamed_on(f"reward '{self.name}'", " in its check()"):
                check(rows, **takes)

    def option_mistakes(self, key: str) -> list[str]:
        """Returns the mistakes in the reward's options, which stand at `key` of the config."""
        defaults, mistakes = self._defaults, []
        for name, value in self.options.items():
            if name not in defaults:
                near = did_you_mean(name, defaults) or f"; it has {', '.join(defaults) or 'none'}"
                mistakes.append(f"{key}.{name}: reward '{self.name}' has no such option{near}")
            elif not _is_alike(value, defaults[name]):
                like = f"a {type(defaults[name]).__name__} such as {defaults[name]!r}"
                mistakes.append(f"{key}.{name}: got {value!r}, expected {like}")
        return mistakes

    def _read_signature(self) -> None:
        """Sets which parameters the function has: options, those without a default, `**kwargs` for every column."""
        parameters = [p for p in inspect.signature(self.function).parameters.values() if p.kind is not p.VAR_POSITIONAL]
        optional = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is not p.empty]
        self._defaults = {option.name: option.default for option in optional if option.name not in SUPPLIED}
        self._takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters)
        self.named = named = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
        self.required = required = [p.name for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
        available = {*SUPPLIED, *self.columns}
        if "extractor" in required and "extractor" not in available:
            raise ConfigError(
                f"reward '{self.name}' needs `extractor`, which would read a malformed text too: take `right`, "
                "a bool for each prediction, or `prediction_answers` and `target_answers` (lib/rewards/__init__.py)"
            )
        missing = [f"'{name}'{did_you_mean(name, available)}" for name in required if name not in named & available]
        if missing:
            raise ConfigError(
                f"reward '{self.name}' needs by name {', '.join(missing)} (nothing of that name can be "
                f"given to it; available: {', '.join(sorted(available))})"
            )

    def _first_broken(self, arguments: dict[str, Any], texts: list[str]) -> str:
        """Names the first sample for which a reward that raised raises again when called with it alone."""
        index, end = 0, time.monotonic() + _SEARCH_SECONDS
        while len(texts) > 1 and index < len(texts) and time.monotonic() < end:
            one = {name: part if callable(part) else part[index : index + 1] for name, part in arguments.items()}
            try:
                with blamed_on("it"):
                    self.function(**(one | self.options))
            except RewardError:
                break
            index += 1
        if not texts:
            return "when it was asked about nothing, to check reward.options"
        if index == len(texts) or time.monotonic() >= end:
            return f"for {len(texts)} samples together"
        return f"for sample {index} of {len(texts)} ({texts[index][:80]!r})"

    def _judged(self, value: Any, index: int, text: str) -> Judged:
        if isinstance(value, Judged):
            if value.match not in (None, True, False):
                raise RewardError(f"reward '{self.name}' returned {value} for sample {index}: match must be a bool")
            return replace(value, components=self._components(value.components, index, text))
        return Judged(self._components(value, index, text))

    def _components(self, value: Any, index: int, text: str) -> dict[str, float]:
        parts = value if isinstance(value, Mapping) else {self.name: value}
        for name, part in parts.items():
            where = f"for sample {index}" + (f", component '{name}'" if parts is value else "") + f" ({text[:80]!r})"
            size: Any = abs(part) if isinstance(part, Real) else None
            if size is None or not size <= sys.float_info.max:  # NaN, and integers beyond the range of floats, too
                raise RewardError(f"reward '{self.name}' returned {part!r} {where}: expected a finite number")
        return {name: float(part) for name, part in parts.items()}


def _is_alike(value: Any, default: Any) -> bool:
    """True if an option's value has the type of its default; an integer passes for a float, anything for None."""
    if isinstance(default, float):
        return isinstance(value, Real) and not isinstance(value, bool)
    return default is None or type(value) is type(default)
