"""What a model must have to be sampled."""

import contextlib
from typing import Any, Protocol

import torch
from torch import nn

from engine.head import Head
from engine.llama import Llama


class SampledPolicy(Protocol):
    """A causal language model with its adapters, as the sampler sees it."""

    llama: Llama | None  # its forward, written out, if its layers are those of the Llama family
    supports_slab: bool  # it can be decoded in a slab (engine/decoder.py); else batch by batch, with its own cache

    @property
    def backbone(self) -> nn.Module:
        """Returns the language model without its output layer."""

    @property
    def device(self) -> torch.device:
        """Returns the device of its weights."""

    @property
    def prefix(self) -> list[int]:
        """Returns the ids that come before each prompt, such as those of a soft prompt."""

    @property
    def supports_padding(self) -> bool:
        """True if padding on the left changes nothing."""

    def head_at(self, temperature: float) -> Head:
        """Returns the frozen output layer, with a temperature folded in."""

    def generation_mode(self) -> contextlib.AbstractContextManager:
        """Makes the model ready to sample, without gradient, inside the context."""

    def next_logits(
        self, ids: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor, cache: Any, temperature: float
    ) -> tuple[torch.Tensor, object]:
        """Returns float32 logits (B, V) after new tokens (B, Q), and the model's own cache, extended by them.

        mask (B, T) is 1 for tokens, those in the cache included, and 0 for padding.
        """
