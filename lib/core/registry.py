"""Named callables that YAML can pick: they refuse duplicates, explain unknown names, and accept dotted paths."""

import contextlib
import difflib
import importlib
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lib.core.errors import ConfigError, Left, Overdue, RewardError, UserError


def did_you_mean(name: str, names: Iterable[str], otherwise: str = "") -> str:
    """Returns `"; did you mean 'learning_rate'?"`, or `otherwise` (such as a full stop) if no known name is close."""
    close = difflib.get_close_matches(str(name), list(names), n=1, cutoff=0.6)
    return f"; did you mean '{close[0]}'?" if close else otherwise


@contextlib.contextmanager
def blamed_on(whose: str, about: str = "", expected: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Turns any exception in its block into a RewardError, except `expected` ones, UserErrors, signals and time limits.

    This includes SystemExit: a reward that calls sys.exit(0) must not look like a finished run.
    """
    try:
        yield
    except BaseException as error:
        if isinstance(error, (UserError, KeyboardInterrupt, Left, Overdue, *expected)):
            raise
        message = next(line for line in traceback.format_exception_only(error) if not line.startswith(" "))
        message = message.strip().partition("\n")[0][:200]
        raise RewardError(f"{whose} raised {message} ({place_of(error)}){about}") from error


def place_of(error: BaseException) -> str:
    """Returns the file and line that raised an error, or its caller's if that is in an installed package."""
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, SyntaxError) and Path(error.filename or "").is_file():  # of a module, which no frame shows
        frames.append(traceback.FrameSummary(error.filename, error.lineno, ""))
    return place_in(frames)


def place_in(frames: list[traceback.FrameSummary]) -> str:
    """Returns file and line of the innermost frame that is neither in an installed package nor in this module."""
    ours = (__file__, contextlib.__file__)
    inside = [frame for frame in frames if frame.filename not in ours] or frames
    installed = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib"))
    in_project = [frame for frame in inside if not frame.filename.startswith((*installed, "<frozen"))] or inside
    path = Path(in_project[-1].filename)
    return f"{path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}:{in_project[-1].lineno}"


def _name_of(function: Callable) -> str:
    return f"{function.__module__}.{getattr(function, '__qualname__', type(function).__qualname__)}"


@dataclass(frozen=True)
class Hooks:
    """Functions registered with a reward for other moments (lib/rewards/__init__.py), and what the reward pays."""

    prepare: Callable[[], str] | None = None
    check: Callable[..., None] | None = None
    begin: Callable[[str, dict], None] | None = None
    explain: Callable[..., list[dict[str, Any]]] | None = None
    pays_format: bool = False  # True: needs a format with an <answer> block


class Registry:
    """Callables by name. `kind` is the word used in messages ("reward", "extractor")."""

    def __init__(self, kind: str):
        self.kind = kind
        self._entries: dict[str, Callable] = {}
        self._hooks: dict[str, Hooks] = {}

    def register(self, name: str, **hooks: Any) -> Callable[[Callable], Any]:
        """Returns a decorator: `@register_reward("code", begin=begin)`. It raises ConfigError if the name is taken.

        Keywords are the fields of `Hooks`.
        """
        hooked = Hooks(**hooks)

        def add(function: Callable) -> Any:
            takers = [_name_of(self._entries.get(name, function)), _name_of(function)]
            if takers[0] != takers[1]:
                raise ConfigError(f"{self.kind} '{name}' is registered twice, by {' and by '.join(takers)}: rename one")
            self._entries[name], self._hooks[name] = function, hooked
            return function

        return add

    def hooks(self, name: str) -> Hooks:
        """Returns the hooks of the callable that `get` returns for this name, which may be a dotted path."""
        function = self.get(name)
        registered = name if name in self._entries else next((n for n, f in self._entries.items() if f is function), "")
        return self._hooks.get(registered, Hooks())

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._entries))

    def get(self, name: str) -> Callable:
        """Returns the callable registered as `name`, or the one at the dotted path `package.module.function`.

        Raises ConfigError with the known names, or with what failed to import; RewardError if the module raises.
        """
        if name in self._entries:
            return self._entries[name]
        if "." in name:
            return self._import(name)
        if not self._entries:
            raise ConfigError(f"{self.kind}: got '{name}', expected a dotted path: write MODULE.{name}")
        raise ConfigError(
            f"unknown {self.kind} '{name}'{did_you_mean(name, self, '.')} Known: {', '.join(self)}; "
            f"a dotted path such as my_rewards.{self.kind} works too"
        )

    def _import(self, path: str) -> Callable:
        module_name, _, attribute = path.rpartition(".")
        here = str(Path.cwd())
        if here not in sys.path:  # so that user modules are found as with `python -m`
            sys.path.insert(0, here)
        try:
            with blamed_on(f"{self.kind} '{path}'", " when its module was imported", (ModuleNotFoundError,)):
                module = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            raise ConfigError(
                f"{self.kind} '{path}': no module '{error.name}' here; run from the folder that holds it, or install it"
            ) from error
        function = getattr(module, attribute, None)
        if not callable(function):
            names = [name for name in vars(module) if callable(getattr(module, name)) and not name.startswith("_")]
            near = did_you_mean(attribute, names) or f"; it has {', '.join(names) or 'none'}"
            raise ConfigError(f"{self.kind} '{path}': module '{module_name}' has no callable '{attribute}'{near}")
        return function


@dataclass(frozen=True)
class Judged:
    """The verdict of a reward on one prediction, if it is more than a number."""

    components: dict[str, float]  # named parts, whose sum is the reward
    match: bool | None = None  # whether a well-formed text counts as right, in place of extractor and matcher
    about: str = ""  # a line for the log
    scored: bool = True  # False: the prediction could not be judged, and is left out of the loss
    malformed: str | None = None  # why the text is malformed, "" if it is not, in place of the check of the format


rewards = Registry("reward")
extractors = Registry("extractor")
matchers = Registry("match")
tools = Registry("tool")
workers = Registry("sandbox.worker")
register_reward = rewards.register
register_extractor = extractors.register
register_matcher = matchers.register
register_tool = tools.register

LENIENT = {"gsm8k_hash": "last_number", "math_final_answer": "last_formula"}  # for targets: its name for predictions


def extractor_of_predictions(name: str) -> Callable[[str], str]:
    """Returns an extractor by name. Raises ConfigError, also if it takes an answer from anywhere in a text."""
    if name in LENIENT:
        raise ConfigError(
            f"'{name}' takes what looks like an answer from anywhere in a text, so it reads targets only: write "
            f"target_extractor: {name}, and say by format: think_answer, answer or boxed where predictions have their "
            f"answer; for the earlier leniency, write answer_extractor: {LENIENT[name]}"
        )
    return extractors.get(name)
