"""Teachers for distillation (`distill:`): a second model or the initial policy, and whether they can teach.

Both know tokens by the ids of the policy: a teacher with other tokens is refused before its weights are loaded.
"""

from typing import Any

from torch import nn

from engine import TeacherStates
from lib.core.config import Distill, Model
from lib.core.errors import ConfigError
from lib.model.loading import load_base, load_skeleton
from lib.model.policy import Inputs, Policy

SHOWN_DIFFERENCES = 3  # tokens named in an error


class ModelTeacher:
    """A second model in this process, through plain transformers."""

    def __init__(self, settings: Model, policy: Policy):
        model, _ = load_base(settings, "plain")
        self.model, self.policy = Policy(model.requires_grad_(False), policy.temperature), policy
        self.takes_branches = self.model.supports_masks

    def reads(self, inputs: Inputs) -> TeacherStates:
        """Returns its next-token distributions at the scored places, at the policy's temperature."""
        return TeacherStates(self.model.hidden_states(inputs), self.model.head_at(self.policy.temperature))


class InitialPolicy:
    """A copy of the policy's weights at the start, which teaches."""

    def __init__(self, policy: Policy):
        self.policy = policy
        self.weights, self.alpha = policy.snapshot(), policy.alpha
        self.takes_branches = True  # its inputs are packed as the policy's

    def reads(self, inputs: Inputs) -> TeacherStates:
        """Returns its next-token distributions at the scored places, at the policy's temperature."""
        with self.policy.with_adapter(self.weights, self.alpha):
            return TeacherStates(self.policy.hidden_states(inputs), self.policy.head)

    def state_dict(self) -> dict:
        """Returns the snapshot."""
        return {"weights": self.weights, "alpha": self.alpha}

    def load_state_dict(self, state: dict) -> None:
        """Sets the snapshot."""
        self.weights, self.alpha = state["weights"], state["alpha"]


OTHERWISE = "take a teacher of the policy's family, or learn from its texts (collect_rollouts.py, then sft_train.py)"
AnyTeacher = ModelTeacher | InitialPolicy


def load_teacher(settings: Model | None, policy: Policy, tokenizer: Any) -> AnyTeacher:
    """Loads the second model of `distill`, or takes the initial policy. Raises ConfigError as `teacher_skeleton`."""
    if settings and teacher_skeleton(settings, tokenizer):
        return ModelTeacher(settings, policy)
    return InitialPolicy(policy)


def teacher_skeleton(settings: Model, tokenizer: Any) -> nn.Module:
    """Returns the teacher's architecture, without weights. Raises ConfigError if its tokens are not the policy's."""
    skeleton, theirs = load_skeleton(settings)
    refuse_other_tokens(tokenizer, theirs, settings.name)
    return skeleton


def refuse_other_tokens(ours: Any, theirs: Any, name: str) -> None:
    """Raises ConfigError unless every token of a tokenizer has the same id in that of the teacher `name`."""
    mine, there = ours.get_vocab(), theirs.get_vocab()
    others = sorted((token for token in mine if there.get(token) != mine[token]), key=mine.__getitem__)
    if others:
        shown = ", ".join(
            f"{token!r} (id {mine[token]}, there {there.get(token, 'none')})" for token in others[:SHOWN_DIFFERENCES]
        )
        raise ConfigError(
            f"distill.model: '{name}' has another tokenizer: {len(others):,} of the policy's {len(mine):,} tokens "
            f"differ, such as {shown}; token by token only models with one tokenizer compare: {OTHERWISE}"
        )


def describe_teacher(settings: Distill) -> str:
    """Describes the teacher and how much it counts, for the start-up message and --dry-run."""
    who = settings.model.full_name if settings.model else "the initial policy"
    reward = f"rewards times {settings.reward_weight:g}" if settings.reward_weight else "no reward"
    return f"distillation: {settings.direction} KL to {who}, next to {reward}"
