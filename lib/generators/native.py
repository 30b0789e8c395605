"""Sampling in this process, from the very model that is trained: engine/sampling.py on a run's clock."""

import engine
from engine import Completion, Decoding, FollowUp, NonFinite, TreePath, Turn, nothing_follows
from lib.core.clock import phase
from lib.core.errors import NumericError
from lib.core.interrupts import give_way
from lib.model.policy import Policy


def generate(
    policy: Policy, turns: dict[TreePath, Turn], decoding: Decoding, follow_up: FollowUp = nothing_follows
) -> dict[TreePath, Completion]:
    """Returns `engine.generate`'s completions. Raises NumericError if logits are not finite, Left after a signal."""
    try:
        return engine.generate(policy, turns, decoding, follow_up, phase=phase, check_interrupt=give_way)
    except NonFinite as error:
        raise NumericError(f"{error}: lower optimizer.learning_rate, then --resume or start again") from error
