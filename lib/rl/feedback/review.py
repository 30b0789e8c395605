"""`prompts.feedback: self`: the user asks for the policy's own review of an attempt, and then for the next attempt.

A check ends with the policy's judgement, which `prompts.stop: self` obeys and which no oracle is asked for (PAG, arXiv
2506.10406); a reflection judges nothing (Reflect, Retry, Reward, arXiv 2505.24726). The review itself is a node of the
tree (lib/rl/reviews.py); what is said here is the same after all attempts, and tells nothing of them.
"""

from collections.abc import Sequence

from lib.core.config import Prompts
from lib.rl.feedback.contract import Feedback
from lib.rl.prompts import JudgedAnswer, filled


class AskReview(Feedback):
    """Asks for a review after an attempt, and for an attempt after a review."""

    def __init__(self, prompts: Prompts):
        self.then = prompts.self_correction
        self.ask = filled(prompts.self.ask, {"self_correction": self.then}, "prompts.self.ask")

    def after(self, answers: Sequence[JudgedAnswer]) -> list[str]:
        """Returns the user's message after each answer."""
        return [self.then if answer.prompt.review else self.ask for answer in answers]
