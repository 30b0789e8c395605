"""Trained vectors before each prompt (Lester et al. 2021, arXiv 2104.08691).

They are tokens with ids after the vocabulary, so that whatever reads ids (packing, positions, caches, copies of a
prompt) treats them as it treats any other token.
"""

import torch
from torch import nn

from lib.model.adapters.contract import Adapter

SPREAD = 0.01  # standard deviation at first


class SoftPrompt(Adapter):
    """The embeddings of `tokens` ids after a vocabulary. Off, these ids must not occur; there is nothing to blend."""

    def __init__(self, model: nn.Module, tokens: int, generator: torch.Generator):
        super().__init__()
        embedding = model.get_input_embeddings()
        self.vectors = nn.Parameter(torch.randn(tokens, embedding.weight.shape[1], generator=generator) * SPREAD)
        self._initial = self.vectors.detach().clone()
        self.is_frozen = False  # then no gradient reaches the vectors, whose optimizer state waits
        self._first = len(embedding.weight)
        self._embedding = (embedding,)
        self._ids: torch.Tensor | None = None

    @property
    def ids(self) -> list[int]:
        """Returns the ids of the prompt, [] while it is off."""
        return list(range(self._first, self._first + len(self.vectors))) if self.is_on else []

    def attach(self) -> None:
        """Hooks the embedding."""
        embedding = self._embedding[0]
        self._handles = [
            embedding.register_forward_pre_hook(self._before),
            embedding.register_forward_hook(self._after),
        ]

    def _before(self, _module: nn.Module, args: tuple) -> tuple | None:
        self._ids = args[0]
        return (args[0].clamp(max=self._first - 1), *args[1:])

    def _after(self, _module: nn.Module, _args: tuple, y: torch.Tensor) -> torch.Tensor | None:
        ids, self._ids = self._ids, None
        at = ids - self._first
        if not self.is_on or not bool((at >= 0).any()):
            return None
        vectors = self.vectors.detach() if self.is_frozen else self.vectors
        return torch.where((at >= 0)[..., None], vectors[at.clamp(min=0)].to(y.dtype), y)

    def drift(self) -> torch.Tensor:
        """Returns how far each number is from its first value."""
        return (self.vectors.detach() - self._initial.to(self.vectors.device)).flatten()
