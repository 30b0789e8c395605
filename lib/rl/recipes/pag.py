"""`pag`: the policy checks its own answer, and revises it only where it finds it wrong (PAG, arXiv 2506.10406).

Why: asked to correct without a reason to, models learn to leave every answer as it is, or to spoil right ones. Here the
one policy has two roles, solver and verifier; it revises by its own verdict, which needs no one at inference. Prompts:
`prompts.feedback: self` asks for the check, and `prompts.stop: self` ends a chat that the check finds right. Paid, each
turn by itself: attempts their own reward, and later ones `train.alpha` times what they gain over the one before; checks
1 for a right judgement, whatever comes of it. So to find every answer wrong, for the sake of revisions, or every one
right earns a check no more than the share of answers of which it is true; and after one attempt, checks that all say
the same have no advantage over each other. Trained: attempts and checks; advantages are divided by the standard
deviation of those of their role, so that neither drowns the other.

Departures: the paper estimates advantages by PPO's value model, here checks of one attempt are compared with each
other; it also subtracts the mean of a role, which the baseline has taken already.
"""

from lib.rl.recipes.contract import CorrectionRecipe, StepAnswers
from lib.rl.tree import Node


class Pag(CorrectionRecipe):
    """Pays attempts for their answers, and checks for their judgements."""

    scales_roles = True

    def paid(self, node: Node, step: StepAnswers, stage: int) -> list[float | None]:
        """Returns the rewards of a group's answers."""
        base = [step.rewards[number] for number in node.numbers]
        if not node.is_attempt or node.attempt == 1 or self.train.alpha == 0:
            return [*base]
        gains = [step.gained(number, self.train.bonus_on) for number in node.numbers]
        return [
            None if gain is None else reward + self.train.alpha * gain for reward, gain in zip(base, gains, strict=True)
        ]
