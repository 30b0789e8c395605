"""`ufo`: "try again" until it is right, the sooner the better, and nothing twice (unary feedback, arXiv 2507.14295).

Why: after training on single turns most failures repeat the same answer when asked again. Prompts: chats stop at a
right attempt (`prompts.stop: verdict`), so `prompts.self_correction` is the unary feedback: it is only ever read after
a wrong one. Paid: each attempt earns the reward of the last attempt of its chat times `train.discount` to the power of
the attempts before that, the mean where several chats go through it; less REPEAT_PENALTY for a later attempt
that answers nothing new: what its chat had before, in whatever spelling, or nothing at all, which would otherwise earn
more than a repeat. Trained: all attempts, and reviews, which earn the same but for that.
"""

from statistics import fmean

from lib.rl.recipes.contract import CorrectionRecipe, StepAnswers
from lib.rl.tree import Node

REPEAT_PENALTY = 0.1


class Ufo(CorrectionRecipe):
    """Pays the end of a chat, decayed by turn, to all of its attempts, less for those that answer nothing new."""

    def paid(self, node: Node, step: StepAnswers, stage: int) -> list[float | None]:
        """Returns the rewards of a group's answers."""
        return [self._of(number, step, node.is_attempt) for number in node.numbers]

    def _of(self, number: int, step: StepAnswers, is_attempt: bool) -> float | None:
        chats, verdict = step.chats[number], step.answers[number].verdict
        if not all(step.answers[chat[-1]].verdict.scored for chat in chats):
            return None
        previous = [step.answers[earlier].verdict for earlier in step.before[number]]
        is_nothing_new = is_attempt and bool(previous) and (verdict.is_blank or verdict.repeats(previous))
        ended = fmean(self.train.discount ** (len(chat) - 1) * step.rewards[chat[-1]] for chat in chats)
        return ended - REPEAT_PENALTY * is_nothing_new
