"""What every kind of feedback is."""

from collections.abc import Sequence

from lib.rl.prompts import JudgedAnswer

MOST_SHOWN = 2000  # characters of a test or its outcome that are read; `prompts.feedback_tokens` decides what is kept


class Feedback:
    """Says what the user answers to attempts."""

    ask = ""  # the request for a review, which is the same after all attempts, and never cut

    def after(self, answers: Sequence[JudgedAnswer]) -> list[str]:
        """Returns the user's message after each answer; control tokens and length are the renderer's concern."""
        raise NotImplementedError
