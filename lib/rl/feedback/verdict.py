"""`prompts.feedback: verdict`: the user tells whether the attempt is right, which at evaluation takes an oracle.

It is the one bit that a reward has (Liu et al. 2025, "try again", arXiv 2507.14295), and nothing of the right answer.
"""

from collections.abc import Sequence

from lib.core.config import Prompts
from lib.rl.feedback.contract import Feedback
from lib.rl.prompts import JudgedAnswer, filled


class TellVerdict(Feedback):
    """Says whether the attempt is right. One that could not be judged is answered as without feedback."""

    def __init__(self, prompts: Prompts):
        values = {"self_correction": prompts.self_correction}
        self.right = filled(prompts.verdict.right, values, "prompts.verdict.right")
        self.wrong = filled(prompts.verdict.wrong, values, "prompts.verdict.wrong")
        self.unknown = prompts.self_correction

    def after(self, answers: Sequence[JudgedAnswer]) -> list[str]:
        """Returns the user's message after each answer."""
        verdicts = [answer.verdict for answer in answers]
        return [
            self.unknown if not verdict.scored else self.right if verdict.match else self.wrong for verdict in verdicts
        ]
