"""Checks that a token has one log-prob: by sampling, by scoring, and by the model's own forward, before training.

Sampling and scoring both go ways of their own around a model's forward: a slab of keys and values, layers written out,
merged adapters, padded batches, branches, a head that never keeps its logits. An architecture that one of them does not
fit would train on wrong numbers without a word.
"""

import contextlib
import inspect
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from engine import Completion, Decoding, Turn
from lib.core.errors import ConfigError, first_line, is_out_of_memory
from lib.generators import native
from lib.model.policy import Inputs, Policy
from lib.rewards.judge import Verdict
from lib.rl.batching import micro_batches, sequences
from lib.rl.prompts import Prompt
from lib.rl.tree import Answer, Group, memory_explained, nodes

LIMIT = 0.1  # nats: the mean over the tokens of an answer; in bfloat16 a sound model stays below a fifth of it
BUDGETS = (8, 12)  # new tokens after the long prompt and after the short one: rows leave while others continue
COPIES = 2
MOST_PROBED = 32  # tokens of a prompt on which each family of adapters is tried
MOVED = 0.02  # scale of the numbers that replace the adapter's zeros, so that it takes part
NOTHING = frozenset([-1])  # no answer ends early
FOREIGN = (ArithmeticError, AssertionError, AttributeError, LookupError, NameError, RuntimeError, TypeError, ValueError)


class Gaps(NamedTuple):
    """Differences from the log-probs of the model's own forward: the mean absolute one, of the worst answer."""

    sampled: float
    scored: float


@torch.no_grad()
def probe_adapters(policy: Policy, prompt: list[int]) -> None:
    """Moves one family of adapters after the other; raises ConfigError for one that changes no log-prob of a prompt.

    So it is if a model does not run the layers that a family hooks. Raises it too if a family has an effect while off.
    """
    shelf = policy.shelf
    if shelf is None:
        return
    text = prompt[:MOST_PROBED]
    device = policy.device
    inputs = Inputs(
        torch.tensor([text], device=device), torch.arange(len(text), device=device)[None],
        torch.arange(len(text) - 1, device=device), torch.tensor(text[1:], device=device),
    )  # fmt: skip
    draw, base = torch.Generator().manual_seed(0), policy.reference(inputs)[0]
    for name, adapters in shelf.families.items():
        before, parameters = policy(inputs)[0], list(adapters.parameters())
        kept = [parameter.clone() for parameter in parameters]
        for parameter in parameters:
            parameter += torch.randn(parameter.shape, generator=draw).to(device)
        after, off = policy(inputs)[0], policy.reference(inputs)[0]
        for parameter, value in zip(parameters, kept, strict=True):
            parameter.copy_(value)
        if torch.equal(before, after) or not torch.equal(off, base):
            what = "changes nothing" if torch.equal(before, after) else "has an effect while it is off"
            kind = policy.language_model.config.model_type
            raise ConfigError(f"model.adapters.{name}: in a model of type {kind} it {what}; set it to null")


@torch.no_grad()
def probe(policy: Policy, prompt: list[int], pad_id: int, name: str) -> Gaps:
    """Samples answers to a prompt and to its first half, and compares their log-probs, in nats.

    Leaves the run's random generators untouched. Raises ConfigError beyond LIMIT, or if the model fails; `name` is the
    model's name in the config.
    """
    prompts = [prompt, prompt[: max(1, len(prompt) // 2)]]
    devices = [policy.device] if policy.device.type == "cuda" else []
    with torch.random.fork_rng(devices), policy.with_adapter(_moved(policy)), readable(policy.language_model, name):
        answers = _sampled(policy, prompts, pad_id)
        logps = [[_own_logps(policy, prompt + y.ids, len(y.ids)) for y in group]
                 for prompt, group in zip(prompts, answers, strict=True)]  # fmt: skip
        scored = _scored(policy, prompts, answers, pad_id)
        sampled = [[torch.tensor(y.logps) for y in group] for group in answers]
        gaps = Gaps(_worst(sampled, logps), _worst(scored, logps))
        if not max(gaps) <= LIMIT:  # NaN fails too
            kind = policy.language_model.config.model_type
            raise ConfigError(
                f"model.name: '{name}', of type {kind}, gives the tokens that it samples other log-probs than its own "
                f"forward does: {gaps.sampled:.3g} nats off as sampled, {gaps.scored:.3g} as scored for training, "
                f"expected at most {LIMIT}. Training would follow wrong numbers: use another model, model.backend or "
                "model.attn_implementation"
            )
    return gaps


@contextlib.contextmanager
def readable(model: Any, name: str) -> Iterator[None]:
    """Turns errors in a model's own code into a ConfigError: the architecture cannot be sampled or scored."""
    try:
        yield
    except FOREIGN as error:
        if is_out_of_memory(error):
            raise
        raise ConfigError(
            f"model.name: '{name}', of type {model.config.model_type}, cannot be sampled and scored here "
            f"({type(error).__name__}: {first_line(error)}); use another model, or other targets in "
            "model.adapters"
        ) from error


def _moved(policy: Policy) -> list[torch.Tensor]:
    """Returns the adapter's weights, with matrices of zeros replaced by small random numbers."""
    draw = torch.Generator().manual_seed(0)
    return [
        weight if weight.any() else MOVED * torch.randn(weight.shape, generator=draw).to(weight.dtype)
        for weight in policy.snapshot()
    ]


def _sampled(policy: Policy, prompts: list[list[int]], pad_id: int) -> list[list[Completion]]:
    """Samples COPIES answers to each prompt, as the run does."""
    turns: dict[tuple[int, ...], Turn] = {
        (i,): Turn(ids, budget, COPIES) for i, (ids, budget) in enumerate(zip(prompts, BUDGETS, strict=True))
    }
    decoding = Decoding(
        temperature=policy.temperature,
        stop_ids=NOTHING,
        pad_id=pad_id,
        rows=COPIES * len(turns),
        columns=max(map(len, prompts)) + max(BUDGETS),
    )
    with memory_explained(decoding):
        completions = native.generate(policy, turns, decoding)
    return [[completions[(*path, copy)] for copy in range(COPIES)] for path in turns]


def _scored(policy: Policy, prompts: list[list[int]], answers: list[list[Completion]], pad_id: int):
    """Returns log-probs of the answers' tokens as training scores them: in one batch, with branches if it uses them."""
    verdict = Verdict(0.0, {}, False, "")
    all_nodes = nodes(
        Group(Prompt({}, prompt, ""), [Answer(y, "", verdict) for y in group])
        for prompt, group in zip(prompts, answers, strict=True)
    )
    items = sequences(all_nodes, should_share=lambda _trunk, _branches: policy.masks_are_quick)
    (batch,) = micro_batches(items, sum(len(item.ids) for item in items) * len(items), pad_id, policy.device)
    logp, answer = policy(batch.inputs)[0].cpu(), batch.answer.cpu()
    return [[logp[answer == number] for number in node.numbers] for node in all_nodes]


def _own_logps(policy: Policy, ids: list[int], count: int) -> torch.Tensor:
    """Returns log-probs (count,) of the last `count` tokens by the model's own forward, without padding."""
    model = policy.language_model
    parameters = inspect.signature(model.forward).parameters
    kept = {"logits_to_keep": count + 1} if "logits_to_keep" in parameters else {}
    text = torch.tensor([policy.prefix + ids], device=policy.device)
    logits = model(input_ids=text, use_cache=False, **kept).logits[0, -count - 1 : -1].float()
    log_p = (logits / policy.temperature).log_softmax(-1)
    return log_p.gather(1, text[0, -count:, None])[:, 0].cpu()


def _worst(logps: list[list[torch.Tensor]], reference: list[list[torch.Tensor]]) -> float:
    pairs = [pair for row in zip(logps, reference, strict=True) for pair in zip(*row, strict=True)]
    return float(torch.stack([(mine - theirs).abs().mean() for mine, theirs in pairs]).max())
