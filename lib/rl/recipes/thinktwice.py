"""`thinktwice`: solving and reviewing are learned side by side, each paid by whether it is right (arXiv 2604.01591).

Why: to review a solution is a task of its own; taught as one, without any sign whether the solution was right, it also
makes first attempts better. Prompts: `prompts.self_correction` holds the instruction to review, which is the same after
right and wrong solutions: no feedback. One solution of each prompt is reviewed (`train.followed_attempts: 1`), by
`train.revisions_per_attempt` reviews that are compared with each other. Paid: 1 for a right answer, else 0, to each
attempt its own. Trained: all of them. The paper takes an optimizer step for each of the two phases; here they are the
two levels of one tree, and share a step.
"""

from lib.rl.recipes.contract import CorrectionRecipe, StepAnswers
from lib.rl.tree import Node


class ThinkTwice(CorrectionRecipe):
    """Pays each attempt whether it is right."""

    def paid(self, node: Node, step: StepAnswers, stage: int) -> list[float | None]:
        """Returns the rewards of a group's answers."""
        return [float(answer.verdict.match) for answer in node.group.answers]
