"""On-policy distillation, in the configs of both RL scripts: who teaches, what it sees, and how much it counts."""

from typing import Literal

from lib.core.config.section import Conflicts, CountOrZero, Name, Positive, Section, Weight
from lib.core.config.shared import ModelWeights

TEACHERS = ("model", "itself")


class Itself(Section):
    """The policy as it was at some step, as a teacher that sees more (OPSD 2601.18734, SDPO 2601.20802)."""

    every_steps: CountOrZero = 0  # steps after which the present policy becomes the teacher; 0: always the initial one


class Distill(Section):
    """A teacher for every token that the policy writes: the KL between the two, given what the policy itself wrote.

    Either `model` or `itself` teaches. The KL is over the whole vocabulary (docs/selfplay.md).
    """

    model: ModelWeights | None = None
    # a second model in this process, with the policy's tokenizer; through plain transformers, otherwise loaded as the
    # policy is
    itself: Itself | None = None  # the policy, frozen
    shown: Name | None = None
    # what the teacher reads in place of the question; null: the question. It may name {question}, any column of the
    # row, {sibling}, another answer to it that is right, and {feedback}, what the reward explains of this very answer;
    # an answer for which one of them is missing is not distilled
    direction: Literal["reverse", "forward"] = "reverse"
    # reverse: KL(policy || teacher), which drops what the teacher would not write; forward: KL(teacher || policy),
    # which raises what the policy hardly ever writes, too, as where a hint tells it something new
    weight: Positive = 1.0  # of the KL, in nats per token, added to the advantages
    reward_weight: Weight = 1.0  # factor of the advantages; 0: rewards are measured, but train nothing
    clip: Positive | None = None
    # nats; a token with a larger KL counts as if it had this one, in the direction of its own gradient, so that no few
    # tokens dominate; null: none is limited

    def _conflicts(self) -> Conflicts:
        if sum(getattr(self, name) is not None for name in TEACHERS) != 1:
            yield TEACHERS, "one teacher: give one of the two, and set the other to null"
