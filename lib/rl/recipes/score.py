"""`score`: what the second attempt gains is paid, and the first is kept from failing for it (SCoRe, arXiv 2409.12917).

Why: paid by outcome alone, models learn to get attempt 1 right and to leave it so. Prompts: `prompts.self_correction`,
with or without feedback. Paid, eq. 3 and 4: stage I rewards attempt 2 alone, while a KL holds attempt 1; stage II
rewards both, each by its own reward (gamma = 0), times `train.discount` for each attempt before it, and credits the
bonus, alpha times what attempt 2 has gained, to attempt 2 only: credited to attempt 1 too (`train.bonus_to: both`) it
rewards failing first. With several revisions of an attempt 1, attempt 2's baseline is over the others, which removes r1
from the bonus exactly (`baseline: leave_one_out`). A further attempt is to the one before it as attempt 2 is to attempt
1. Trained: all attempts that the policy wrote, but not its reviews.
"""

from statistics import fmean

from lib.rl.recipes.contract import CorrectionRecipe, StepAnswers
from lib.rl.tree import Node


class Score(CorrectionRecipe):
    """Pays each attempt its own reward, and later ones a bonus for what they gain."""

    def paid(self, node: Node, step: StepAnswers, stage: int) -> list[float | None]:
        """Returns the rewards of a group's answers."""
        train = self.train
        rewards = [step.rewards[number] for number in node.numbers]
        if not node.is_attempt:
            return [None for _ in rewards]
        if stage == 1 and node.attempt == 1:
            return [0.0 for _ in rewards]
        earned = [train.discount ** (node.attempt - 1) * reward for reward in rewards]
        if stage == 1:
            return [*earned]
        if train.bonus_to == "both":
            gains = [self._gained_after(number, node, step) for number in node.numbers]
            earned = [reward + train.alpha * gain for reward, gain in zip(earned, gains, strict=True)]
        if node.attempt == 1:
            return [*earned]
        gains = [step.gained(number, train.bonus_on) if train.alpha > 0 else 0.0 for number in node.numbers]
        return [
            None if gain is None else reward + train.alpha * gain for reward, gain in zip(earned, gains, strict=True)
        ]

    def _gained_after(self, number: int, node: Node, step: StepAnswers) -> float:
        """Returns the mean gain of the next attempts over an attempt, over its chats; 0 where a chat ends."""
        on = self.train.bonus_on
        # attempts count from 1 and chats from 0, so chat[node.attempt] is the next one
        gains = [step.gained(chat[node.attempt], on) if chat[node.attempt :] else 0.0 for chat in step.chats[number]]
        judged = [gain for gain in gains if gain is not None]
        return fmean(judged) if judged else 0.0
