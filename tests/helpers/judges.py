"""Judges built by hand, of rows that have no column but `target`."""

from lib.core.config import Reward
from lib.rewards.judge import Judge


def judge_by(fn="exact_match", columns=("target",), target="target", **section):
    """The judge of the config's section `reward: {fn: ..., **section}`."""
    return Judge(Reward(fn=fn, **section), columns, target)


def rows(*targets):
    return [{"target": target} for target in targets]
