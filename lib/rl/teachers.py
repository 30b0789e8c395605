"""Teachers for distillation (`distill:`): a second model, a server, or an earlier policy; and whether they can teach.

Each knows the policy's tokens by the policy's ids: a teacher with other tokens is refused, before weights are loaded
where it is a local one, and at its first reply where it is a server.
"""

from typing import Any

from lib.core.config import Distill, Model, RLConfig, Thinking
from lib.core.errors import ConfigError
from lib.generators.openai import address
from lib.generators.protocol import Scores, Scoring
from lib.generators.remote import Remote, check_key
from lib.model.divergence import WholeTeacher
from lib.model.loading import load_base, load_skeleton
from lib.model.policy import Inputs, Policy

SHOWN_DIFFERENCES = 3  # tokens named in an error


class ModelTeacher:
    """A second model in this process, through plain transformers."""

    def __init__(self, settings: Model, policy: Policy):
        model, _ = load_base(settings, "plain")
        self.model, self.policy = Policy(model.requires_grad_(False), policy.temperature), policy
        self.takes_branches = self.model.takes_masks

    def reads(self, inputs: Inputs) -> WholeTeacher:
        """Returns its next-token distributions at the scored places, at the policy's temperature."""
        return WholeTeacher(self.model.hidden_states(inputs), self.model.head_at(self.policy.temperature))


class PastTeacher:
    """The policy as it was: the initial one, or, with `every_steps`, that of some steps ago."""

    def __init__(self, policy: Policy, every_steps: int):
        self.policy, self.every_steps = policy, every_steps
        self.weights, self.alpha = policy.snapshot(), policy.alpha
        self.takes_branches = True  # its inputs are packed as the policy's

    def reads(self, inputs: Inputs) -> WholeTeacher:
        """Returns its next-token distributions at the scored places, at the policy's temperature."""
        with self.policy.with_adapter(self.weights, self.alpha):
            return WholeTeacher(self.policy.hidden_states(inputs), self.policy.head)

    def refresh(self, step: int) -> None:
        """Becomes the present policy, after `step` steps, if that is due."""
        if self.every_steps and step % self.every_steps == 0:
            self.weights, self.alpha = self.policy.snapshot(), self.policy.alpha

    def state_dict(self) -> dict:
        """Returns the snapshot."""
        return {"weights": self.weights, "alpha": self.alpha}

    def load_state_dict(self, state: dict) -> None:
        """Sets the snapshot."""
        self.weights, self.alpha = state["weights"], state["alpha"]


class ServedTeacher:
    """A model behind a server, which tells its most likely tokens; what it does not answer is not distilled."""

    def __init__(self, settings: Distill, remote: Remote, tokenizer: Any):
        self.settings, self.remote, self.tokenizer = settings, remote, tokenizer

    def scores(self, texts: list[tuple[list[int], int]]) -> list[Scores | None]:
        """Returns what it finds likely in each text, from a first place on. Raises ConfigError for other tokens."""
        settings = self.settings
        asked = self.remote.ask([Scoring(ids, start, settings.top_k, settings.offers) for ids, start in texts])
        outcomes = self.remote.answers(asked)
        found = [outcome if isinstance(outcome, Scores) else None for outcome in outcomes]
        for (ids, start), scores in zip(texts, found, strict=True):
            if scores:
                self._refuse_other_spelling(ids[start:], scores)
        return found

    def _refuse_other_spelling(self, ids: list[int], scores: Scores) -> None:
        for token, text in zip(ids, scores.texts, strict=True):
            own, theirs = self.tokenizer.decode([token]).strip(), (text or "").strip()
            if own.isascii() and own.isalnum() and theirs.isascii() and theirs.isalnum() and own != theirs:
                raise ConfigError(
                    f"distill.endpoint: token {token} is {theirs!r} to {self.settings.endpoint.model} and {own!r} to "
                    f"the policy, and token by token only models with one tokenizer compare: {OTHERWISE}"
                )


OTHERWISE = "take a teacher of the policy's family, or learn from its texts (collect_rollouts.py, then sft_train.py)"
LocalTeacher = ModelTeacher | PastTeacher


def local_teacher(settings: Distill, policy: Policy) -> LocalTeacher | None:
    """Loads the teacher of a config, None if it is a server. Raises ConfigError."""
    if settings.model:
        return ModelTeacher(settings.model, policy)
    return PastTeacher(policy, settings.itself.every_steps) if settings.itself else None


def check_teacher(config: RLConfig) -> None:
    """Raises ConfigError for what keeps a teacher from teaching, as far as it shows without weights and requests."""
    if config.distill is None:
        return
    if config.distill.endpoint:
        check_key("distill", config.distill.endpoint, Thinking())
    if config.distill.model:
        (_, own), (_, theirs) = load_skeleton(config.model), load_skeleton(config.distill.model)
        refuse_other_tokens(own, theirs, config.distill.model.name)


def refuse_other_tokens(own: Any, theirs: Any, name: str) -> None:
    """Raises ConfigError unless every token of a tokenizer has the same id in that of the teacher `name`."""
    mine, known = own.get_vocab(), theirs.get_vocab()
    others = sorted((token for token in mine if known.get(token) != mine[token]), key=mine.__getitem__)
    if others:
        shown = ", ".join(
            f"{token!r} (id {mine[token]}, there {known.get(token, 'none')})" for token in others[:SHOWN_DIFFERENCES]
        )
        raise ConfigError(
            f"distill.model: '{name}' has another tokenizer: {len(others):,} of the policy's {len(mine):,} tokens "
            f"differ, such as {shown}; token by token only models with one tokenizer compare: {OTHERWISE}"
        )


def describe_teacher(settings: Distill) -> str:
    """Describes the teacher and how much it counts, for the start-up message and --dry-run."""
    if settings.model:
        who = settings.model.full_name
    elif settings.endpoint:
        who = f"{settings.endpoint.model} at {address(settings.endpoint)}, its {settings.top_k} most likely tokens"
    else:
        every = settings.itself.every_steps
        who = f"the policy as it was, renewed every {every} steps" if every else "the initial policy"
    limit = f", at most {settings.clip:g} nats per token" if settings.clip else ""
    reward = f"rewards times {settings.reward_weight:g}" if settings.reward_weight else "no reward"
    return f"distillation: {settings.direction} KL to {who}, weight {settings.weight:g}{limit}, beside {reward}"
