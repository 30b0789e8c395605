"""`multiturn`: only what stands at the end of a chat is paid, and every attempt before it earns that.

Why: it is the plain way to train several turns, the baseline that every recipe must beat (PAG's "Direct", arXiv
2506.10406; SCoRe, section 4: it tends to a first attempt that is never changed). Prompts: `prompts.self_correction`,
with or without feedback. Paid: each attempt earns the reward of the last attempt of its chat, times `train.discount`
to the power of the attempts before that; the mean, where several chats go through it. Trained: all attempts, and
reviews, which earn what attempts do.
"""

from statistics import fmean

from lib.rl.recipes.contract import CorrectionRecipe, StepAnswers
from lib.rl.tree import Node


class MultiTurn(CorrectionRecipe):
    """Pays the end of a chat to all of its attempts."""

    def paid(self, node: Node, step: StepAnswers, stage: int) -> list[float | None]:
        """Returns the rewards of a group's answers."""
        return [self._of(chats, step) for chats in (step.chats[number] for number in node.numbers)]

    def _of(self, chats: list[list[int]], step: StepAnswers) -> float | None:
        if not all(step.answers[chat[-1]].verdict.scored for chat in chats):
            return None
        return fmean(self.train.discount ** (len(chat) - 1) * step.rewards[chat[-1]] for chat in chats)
