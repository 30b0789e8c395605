"""`prompts.feedback: tests`: the user tells which public test a program fails first (RLEF, arXiv 2410.02089).

Public tests are run apart from the hidden ones, which the reward runs: what is said cannot depend on a hidden test, nor
on a row's solution, since neither is known where it is made.
"""

from collections.abc import Sequence

from lib.core.config import Prompts
from lib.rewards.programs import Failure, first_failures
from lib.rl.feedback.contract import MOST_SHOWN, Feedback
from lib.rl.prompts import JudgedAnswer, filled


class TellTests(Feedback):
    """Shows the first public test that fails. A program without a verdict is answered as without feedback."""

    def __init__(self, prompts: Prompts):
        self.settings, self.self_correction = prompts.tests, prompts.self_correction

    def after(self, answers: Sequence[JudgedAnswer]) -> list[str]:
        """Returns the user's message after each answer."""
        rows, texts = [answer.prompt.row for answer in answers], [answer.text for answer in answers]
        return [self._told(failure) for failure in first_failures(texts, rows, MOST_SHOWN)]

    def _told(self, failure: Failure | None) -> str:
        values = {"self_correction": self.self_correction}
        if failure is None:
            return filled(self.settings.passed, values, "prompts.tests.passed")
        if failure.verdict == "infra_error":
            return self.self_correction
        return filled(self.settings.failed, {**failure._asdict(), **values}, "prompts.tests.failed")
