"""On-policy distillation, in the configs of both RL scripts: who teaches, what it sees, and how much it counts."""

from typing import Literal

from lib.core.config.section import Name, Section, Weight
from lib.core.config.shared import ModelWeights


class Distill(Section):
    """A teacher for every token that the policy writes: the KL between the two, given what the policy itself wrote.

    The KL is over the whole vocabulary (docs/selfplay.md).
    """

    model: ModelWeights | None = None
    # a second model in this process, with the policy's tokenizer; through plain transformers, otherwise loaded as the
    # policy is. null: the initial policy, which must then see more (OPSD 2601.18734, SDPO 2601.20802)
    shown: Name | None = None
    # what the teacher reads in place of the question; null: the question. It may name {question}, any column of the
    # row, {sibling}, another answer to it that is right, and {feedback}, what the reward explains of this very answer;
    # an answer for which one of them is missing is not distilled
    direction: Literal["reverse", "forward"] = "reverse"
    # reverse: KL(policy || teacher), which drops what the teacher would not write; forward: KL(teacher || policy),
    # which raises what the policy hardly ever writes, too, as where a hint tells it something new
    reward_weight: Weight = 1.0
    # factor of the advantages, next to a KL in nats per token; 0: rewards are measured, but train nothing
