"""`reflect`: after a failure the policy says what went wrong and tries again; what it said is paid for the retry.

Why: Reflect, Retry, Reward (arXiv 2505.24726) pays the reflection alone, for whether it helps, and not the answers:
what is learned is to find one's errors, not these answers, and attempts are meant to stay. Prompts:
`prompts.feedback: self` asks for the reflection, with `prompts.self.right: null`, since nothing is judged in it;
`prompts.stop: verdict`: only failures are retried. Paid: a reflection earns 1 if the attempt after it is right, else
0, the mean if there are several; reflections on one failure are compared with each other. Trained: reflections;
attempts, which all earn nothing, are held by the KL alone.

Departures: the paper samples one retry of each failure; here `train.revisions_per_attempt` reflections, each with one.
And it lets attempts go: with a KL on reflections alone, what these learn spoiled the attempts of two runs in five
(LOG.md). `train.beta1: 0` lets all go, reflections too; no setting has the paper's.
"""

from statistics import fmean

from lib.rl.recipes.contract import CorrectionRecipe, StepAnswers
from lib.rl.tree import Answer, Node


class Reflect(CorrectionRecipe):
    """Pays reflections for the attempts after them."""

    pays_attempts = False

    def paid(self, node: Node, step: StepAnswers, stage: int) -> list[float | None]:
        """Returns the rewards of a group's answers: 0 for attempts."""
        if node.is_attempt:
            return [0.0 for _ in node.numbers]
        return [self._of([step.answers[chat[node.attempt]] for chat in step.chats[number]]) for number in node.numbers]

    def _of(self, retries: list[Answer]) -> float | None:
        if not all(retry.verdict.scored for retry in retries):
            return None
        return fmean(float(retry.verdict.match) for retry in retries)
