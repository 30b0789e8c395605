"""Measures what a model's own forward does around its output layer: factors and a soft-cap.

Every architecture has a name of its own for them (`logit_scale`, `logits_scaling`, by which one multiplies and another
divides, `lm_head_multiplier`, `output_logit_soft_cap`, ...), so no list of names is ever whole.
"""

from typing import Any, NamedTuple

import torch
from torch import nn

from engine import Head, backbone_of
from lib.core.errors import ConfigError

SMALL, LARGE = 2.0**-10, 2.0**12  # logits that no soft-cap changes, and one that every soft-cap saturates
CLOSE = 0.02  # relative tolerance, above the rounding error of bfloat16


class HeadTransform(NamedTuple):
    """logits = softcap * tanh(after * (W (before * h) + bias) / softcap), or without the cap."""

    before: float = 1.0
    after: float = 1.0
    softcap: float | None = None

    def head(self, output: nn.Module) -> Head:
        """Returns the head of an output layer (V, d), with these factors and this soft-cap, at temperature 1."""
        bias = getattr(output, "bias", None)
        if bias is not None and self.before != 1.0:
            bias = bias / self.before
        return Head(output.weight, bias, self.before * self.after, self.softcap)


@torch.no_grad()
def measure(model: nn.Module) -> HeadTransform:
    """Measures the factors and the soft-cap around the output layer of a causal language model.

    Runs its forward over two tokens, with known numbers in place of the hidden states and of the output layer's result.
    Raises ConfigError where there is no output layer, or where factors and a soft-cap do not explain the logits.
    """
    output, backbone = model.get_output_embeddings(), backbone_of(model)
    kind = model.config.model_type
    if output is None or backbone is model:
        raise ConfigError(f"model.name: a model of type {kind} has no output layer on a backbone; use a decoder")
    device, (vocabulary, width) = output.weight.device, output.weight.shape
    half = vocabulary // 2
    curve = torch.linspace(-40, 40, vocabulary - half - 1)
    raw = torch.cat([SMALL * _ramp(half), curve, torch.tensor([LARGE])]).double().to(device)
    hidden = _ramp(width).to(device, model.dtype)
    inputs: list[torch.Tensor] = []
    replaced: list[bool] = []

    def give_hidden(_module: nn.Module, _arguments: tuple, result: Any) -> Any:
        replaced.append(True)
        states = hidden.expand(1, 2, -1)
        if isinstance(result, tuple):
            return (states, *result[1:])
        result["last_hidden_state"] = states
        return result

    def note_input(_module: nn.Module, arguments: tuple) -> tuple[torch.Tensor]:
        inputs.append(arguments[0])
        return (arguments[0].to(output.weight.dtype),)

    def give_raw(_module: nn.Module, _arguments: tuple, result: torch.Tensor) -> torch.Tensor:
        return raw.expand(*result.shape[:-1], -1).clone()

    hooks = [
        backbone.register_forward_hook(give_hidden), output.register_forward_pre_hook(note_input),
        output.register_forward_hook(give_raw),
    ]  # fmt: skip
    try:
        logits = model(input_ids=torch.tensor([[0, 1]], device=device), use_cache=False).logits[0, -1].double()
    finally:
        for hook in hooks:
            hook.remove()
    around = None
    if inputs and logits.shape == raw.shape:
        # if the backbone's own forward was not called, `before` cannot be measured: only lib/rl/probe.py can tell
        before = _factor(hidden, inputs[-1].flatten(0, -2)[-1]) if replaced else 1.0
        around = before and _bend(raw, logits, half, before)
    if not around:
        raise ConfigError(
            f"model.name: a model of type {kind} does more to its hidden states or logits than multiplying and "
            "capping them, and log-probs are computed from hidden states here; use another model"
        )
    return around


def _ramp(count: int) -> torch.Tensor:
    """Returns numbers from 1 to 2, exact in bfloat16: multiplied and rounded, they show the factor in their mean."""
    return 1 + torch.arange(count) % 64 / 64


def _factor(numbers: torch.Tensor, multiplied: torch.Tensor) -> float | None:
    """Returns the factor by which all numbers (n,) were multiplied, up to rounding; None if there is no single one."""
    if numbers.shape != multiplied.shape:
        return None
    ratios = multiplied.double() / numbers.double()
    factor = float(ratios.mean())
    if not factor or not bool(((ratios - factor).abs() <= CLOSE * abs(factor)).all()):  # or not finite
        return None
    return float(f"{factor:.12g}")


def _bend(raw: torch.Tensor, logits: torch.Tensor, small: int, before: float) -> HeadTransform | None:
    """Returns the factor and the soft-cap that turn raw logits (V,) into logits (V,); None if none do.

    The first `small` raw logits are small enough that a soft-cap is linear there, the last one saturates it.
    """
    after, softcap = _factor(raw[:small], logits[:small]), None
    if after is None:
        return None
    if abs(logits[-1]) < abs(after * raw[-1]) / 2:
        softcap = float(logits[-1].abs())
        after = _factor(raw[:small], softcap * (logits[:small] / softcap).atanh())
        if after is None:
            return None
    expected = after * raw
    if softcap:
        expected = softcap * (expected / softcap).tanh()
    return HeadTransform(before, after, softcap) if torch.allclose(logits, expected, rtol=CLOSE, atol=0) else None
