"""`prompts.feedback: teacher`: a model behind a server says what is wrong with an attempt.

It sees question and attempt, and no right answer. What it says passes the rules for hints (lib/rl/hints.py): no code,
nothing that gives the answer away, or it is dropped; where nothing is left, or no one answers, the user says what is
said without feedback.
"""

import contextlib
from collections.abc import Iterator, Sequence

from judge.parsing import without_special_tokens
from lib.core.config import Prompts
from lib.generators.protocol import Reply, Request
from lib.generators.remote import Remote, remote_of
from lib.generators.reply_cache import seed_of
from lib.rl.feedback.contract import Feedback, Surroundings, Written
from lib.rl.hints import clean, leaks
from lib.rl.prompts import filled

SECTION = "prompts.teacher"  # of the config


class TellCritique(Feedback):
    """Shows the policy a teacher's critique of its attempt."""

    def __init__(self, prompts: Prompts):
        self.settings, self.self_correction = prompts.teacher, prompts.self_correction
        self.remote: Remote | None = None

    @contextlib.contextmanager
    def open(self, around: Surroundings) -> Iterator[None]:
        """Connects to the server until the context ends; its replies are kept, so that a resumed run asks nothing."""
        self.around = around
        with remote_of(SECTION, around.config, around.kept(SECTION), around.warn) as self.remote:
            yield

    def after(self, written: Sequence[Written]) -> list[str]:
        """Returns the user's message after each answer."""
        outcomes = self.remote.answers(self.remote.ask([self._request(answer) for answer in written]))
        cleaned = [clean(outcome.text).text if isinstance(outcome, Reply) else "" for outcome in outcomes]
        asked = [i for i, critique in enumerate(cleaned) if critique]
        found = leaks([cleaned[i] for i in asked], [written[i].prompt for i in asked], self.around.judge)
        leaking = {i for i, leak in zip(asked, found, strict=True) if leak}
        return [self._told("" if i in leaking else critique) for i, critique in enumerate(cleaned)]

    def _request(self, answer: Written) -> Request:
        settings = self.settings
        attempt = without_special_tokens(answer.text)  # the teacher may have the same ones
        values = {"question": answer.prompt.question, "attempt": attempt}
        messages = [{"role": "user", "content": filled(settings.request, values, f"{SECTION}.request")}]
        seed = seed_of(self.around.config.seed, "critique", messages)
        most = settings.max_new_tokens + self.remote.server.thinking.budget_tokens
        return Request(messages, most, settings.temperature, seed)

    def _told(self, critique: str) -> str:
        if not critique:
            return self.self_correction
        said = {"self_correction": self.self_correction, "critique": critique}
        return filled(self.settings.said, said, f"{SECTION}.said")
