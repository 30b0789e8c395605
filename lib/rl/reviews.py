"""What the policy writes about an attempt before the next one: a check, which judges it, or a reflection.

A review is a node of the tree like an attempt, sampled and trained like one, but it is no answer to the task: the judge
of the task never sees it, and no count of attempts has it.
"""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lib.core.config import ATTEMPT, Prompts
from lib.rewards.judge import Verdict

if TYPE_CHECKING:  # it imports torch
    from engine import Completion

RIGHT, WRONG = "right", "wrong"  # what a check says of an attempt
_ENDING = re.compile(r"[\s.!*_\"']+\Z")


@dataclass(frozen=True)
class Review:
    """What is asked about an attempt. A check ends with a phrase that says whether the attempt is right."""

    role: str  # check or reflection
    about: Verdict  # on the attempt
    phrases: tuple[tuple[str, str], ...] = ()  # (RIGHT or WRONG, the phrase that says so); none in a reflection

    def verdict(self, completion: "Completion", text: str) -> Verdict:
        """Returns the verdict on what was written: a check is right if it judges the attempt as the judge did.

        A reflection judges nothing, and has nothing that could be right. Of an attempt that the judge could not judge,
        no check can be.
        """
        if not self.phrases:
            return Verdict(0.0, {}, False, "")
        claim = self.judgement(completion, text)
        match = bool(claim) and (claim == RIGHT) == self.about.match
        malformed = "" if claim else "no judgement at its end"
        return Verdict(float(match), {"judgement": float(match)}, match, claim, self.about.scored, malformed=malformed)

    def judgement(self, completion: "Completion", text: str) -> str:
        """Returns RIGHT or WRONG, as the phrase at the end of a text says; "" where none stands there, or no end."""
        end = _ENDING.sub("", text).casefold()
        for claim, phrase in self.phrases if completion.finished else ():
            wanted = _ENDING.sub("", phrase).casefold()
            before = end[: -len(wanted)][-1:]
            if end.endswith(wanted) and not (before.isalnum() and wanted[0].isalnum()):
                return claim
        return ""


def role_of(review: Review | None) -> str:
    """Returns the role of a completion: attempt, check or reflection."""
    return ATTEMPT if review is None else review.role


def review_of(prompts: Prompts, about: Verdict) -> Review:
    """Returns the review of an attempt that a config asks for."""
    settings = prompts.self
    phrases = ((RIGHT, settings.right), (WRONG, settings.wrong)) if settings.right else ()
    return Review(prompts.reviewed_by, about, phrases)
