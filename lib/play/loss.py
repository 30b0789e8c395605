"""Describes what a config of self-play comes to: its loss, and what a user should know before the first step."""

from collections.abc import Iterator

from lib.core.config import GspoTrain
from lib.rl.losses import POLICY_LOSSES, PolicyLoss


def policy_loss_of(train: GspoTrain) -> PolicyLoss:
    """Returns the policy loss, with the config's changes to it."""
    return POLICY_LOSSES[train.loss].but(clip=train.clip, advantage=train.advantage, length_norm=train.length_norm)


def notes_on(train: GspoTrain) -> Iterator[str]:
    """Yields a note on each setting that does not do what its name promises."""
    loss = policy_loss_of(train)
    low, high = loss.clip
    if train.minibatches * train.passes == 1:
        yield (
            f"one optimizer step per batch of answers: every ratio is 1, nothing is ever clipped, and {train.loss} is "
            "a plain policy gradient here; train.minibatches of 2 or more, or train.passes, make it what it is"
        )
    elif loss.ratio.startswith("sequence") and max(low, high) > 0.01:
        yield (
            f"train.clip: [{low:g}, {high:g}] will hardly ever clip: the ratio of a sequence is a geometric mean of "
            "the ratios of its tokens and stays close to 1; the paper's values are 3e-4 and 4e-4"
        )
