"""The feedback that a config asks for."""

from collections.abc import Callable

from lib.core.config import Prompts
from lib.rl.feedback.contract import Feedback
from lib.rl.feedback.review import AskReview
from lib.rl.feedback.tests import TellTests
from lib.rl.feedback.tool import TellOutput
from lib.rl.feedback.verdict import TellVerdict

KINDS: dict[str, Callable[[Prompts], Feedback]] = {
    "verdict": TellVerdict,
    "tests": TellTests,
    "tool": TellOutput,
    "self": AskReview,
}


def feedback_of(prompts: Prompts) -> Feedback | None:
    """Returns the feedback that `prompts.feedback` names; None if the user always says `prompts.self_correction`."""
    return None if prompts.feedback == "none" else KINDS[prompts.feedback](prompts)
