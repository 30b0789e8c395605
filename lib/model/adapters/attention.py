"""Factors of what attention compares: its temperature, and gates of the heads of queries and keys.

A rotation keeps lengths, so that a factor before the rotation of positions is one after it. A norm does not, so that
where queries and keys have norms, the factors come after those.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

from lib.core.config import BEHIND_NORMS
from lib.model.adapters.contract import Adapter, Factor, scaled
from lib.model.adapters.gates import multiply_rows, obstacle_of, scaled_part
from lib.model.adapters.sites import Site, Sizes, sites


class Compared:
    """Queries or keys of one block, by heads, where attention gets them. No module: it owns no parameter."""

    def __init__(self, model: nn.Module, site: Site, heads: int):
        attention = model.get_submodule(site.name.rpartition(".")[0])
        name = site.name.rpartition(".")[2].replace("proj", "norm")
        self.norm: nn.Module | None = getattr(attention, name, None) if name in ("q_norm", "k_norm") else None
        self.site, self.heads = site, heads
        self._axis = _axis_of_heads(model, self.norm, heads) if self.norm else -1

    def attach(self, adapter: Adapter, factor: Callable[[], torch.Tensor]) -> Any:
        """Multiplies by what `factor` returns while `adapter` is on: one number (1,) or one for each head (H,)."""
        return (self.norm or self.site.module).register_forward_hook(partial(self._after, adapter, factor))

    def _after(
        self, adapter: Adapter, factor: Callable[[], torch.Tensor], _module: nn.Module, _args: tuple, y: torch.Tensor
    ) -> torch.Tensor | None:
        return self._scaled(y, factor()) if adapter.is_on else None

    def _scaled(self, y: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
        if self._axis == -2:  # (B, T, H, D)
            return scaled(y, factor[:, None])
        if self._axis == -3:  # (B, H, T, D)
            return scaled(y, factor[:, None, None])
        return scaled_part(self.site, y, self._of_outputs(factor))

    def obstacle(self) -> str:
        """Returns why the weight cannot be multiplied: a norm would take the factor out again."""
        return BEHIND_NORMS.reason if self.norm else obstacle_of(self.site)

    def fold(self, factor: torch.Tensor) -> None:
        """Multiplies the rows of the weight."""
        multiply_rows(self.site, self._of_outputs(factor))

    def _of_outputs(self, factor: torch.Tensor) -> torch.Tensor:
        """Returns a factor for each output (W,)."""
        return factor.expand(self.heads).repeat_interleave(self.site.width // self.heads)


class ComparedGate(Adapter):
    """A factor for each head of queries or keys."""

    def __init__(self, compared: Compared, bounds: tuple[float, float]):
        super().__init__()
        self.factor = Factor(compared.heads, 1, bounds)
        self._compared = compared

    def attach(self) -> None:
        """Hooks queries or keys."""
        self._handles = [self._compared.attach(self, self._now)]

    def _now(self) -> torch.Tensor:
        return self.factor(self.blend)

    def obstacle(self) -> str:
        """Returns why the weight cannot be multiplied."""
        return self._compared.obstacle()

    def fold(self) -> None:
        """Multiplies the rows of the weight."""
        self._compared.fold(self._now())


class Temperature(Adapter):
    """A factor of the logits of attention in some blocks, one for all heads or one for each.

    It multiplies queries; or its root queries and keys, which heads share, so that keys take the mean of their roots.
    """

    def __init__(self, blocks: list[tuple[Compared, Compared]], groups: int, target: str, bounds: tuple[float, float]):
        super().__init__()
        self.factor = Factor(groups, 1, bounds)
        self._blocks, self._target = blocks, target

    def attach(self) -> None:
        """Hooks queries, and keys if they take part."""
        for queries, keys in self._blocks:
            self._handles.append(queries.attach(self, self._of_queries))
            if self._target == "logits":
                self._handles.append(keys.attach(self, partial(self._of_keys, keys.heads)))

    def _of_queries(self) -> torch.Tensor:
        factor = self.factor(self.blend)
        return factor.sqrt() if self._target == "logits" else factor

    def _of_keys(self, heads: int) -> torch.Tensor:
        roots = self.factor(self.blend).sqrt()
        return roots if len(roots) == 1 else roots.unflatten(0, (heads, -1)).mean(1)

    def obstacle(self) -> str:
        """Returns why the weights cannot be multiplied."""
        return next((reason for pair in self._blocks for projection in pair if (reason := projection.obstacle())), "")

    def fold(self) -> None:
        """Multiplies the rows of the weights."""
        for queries, keys in self._blocks:
            queries.fold(self._of_queries())
            if self._target == "logits":
                keys.fold(self._of_keys(keys.heads))


def compared(model: nn.Module) -> list[tuple[Compared, Compared]]:
    """Returns the queries and keys of each block."""
    sizes = Sizes.of(model)
    pairs = zip(sites(model, "q"), sites(model, "k"), strict=True)
    return [(Compared(model, q, sizes.heads), Compared(model, k, sizes.key_heads)) for q, k in pairs]


@torch.no_grad()
def _axis_of_heads(model: nn.Module, norm: nn.Module, heads: int) -> int:
    """Returns which axis of a norm's output counts the heads, tried on a short text; -1: they share the last axis."""
    device = next(model.parameters()).device
    if device.type == "meta":  # nothing will be computed, only counted
        return -1
    shapes: list[tuple[int, ...]] = []
    handle = norm.register_forward_hook(lambda _module, _args, y: shapes.append(tuple(y.shape)))
    tokens = 2 * heads + 1  # no other axis has this length, or that of the heads
    try:
        model(input_ids=torch.zeros(1, tokens, dtype=torch.long, device=device), use_cache=False)
    finally:
        handle.remove()
    shape = shapes[0]
    if len(shape) == 3:
        return -1
    return -2 if shape[-2] == heads else -3
