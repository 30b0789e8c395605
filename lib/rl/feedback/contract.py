"""What every kind of feedback is."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import NamedTuple

from engine import Completion
from lib.core.config import ScoreConfig
from lib.rewards.judge import Judge, Verdict
from lib.rl.prompts import Prompt

MOST_SHOWN = 2000  # characters of a test or an output that are read; `prompts.feedback_tokens` decides what is kept


class Written(NamedTuple):
    """An answer that was judged, and its prompt."""

    prompt: Prompt
    completion: Completion
    text: str
    verdict: Verdict


class Surroundings(NamedTuple):
    """What a kind of feedback may need that is not in `prompts`."""

    judge: Judge
    config: ScoreConfig
    kept: Callable[[str], Path]  # the file for the replies of a server, by its section of the config
    warn: Callable[[str], None]


class Feedback:
    """Says what the user answers to attempts."""

    def open(self, around: Surroundings) -> AbstractContextManager:
        """Connects to what is outside this process, until the context ends; most kinds need nothing."""
        return nullcontext()

    def after(self, written: Sequence[Written]) -> list[str]:
        """Returns the user's message after each answer; control tokens and length are the renderer's concern."""
        raise NotImplementedError
