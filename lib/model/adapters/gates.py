"""Factors of what linear layers read or write: IA3, head, channel, residual, projection and input gates."""

import torch
from torch import nn

from lib.model.adapters.contract import Adapter, Factor, Refused, scaled
from lib.model.adapters.places import Place, base_of


class OutputGate(Adapter):
    """Multiplies the outputs of a layer, or of its part, in `groups` of equal width."""

    def __init__(self, place: Place, groups: int, bounds: tuple[float, float] | None = None):
        super().__init__()
        if place.width % groups:
            raise Refused(f"{place.name} has {place.width} outputs, which make no {groups} groups of equal width")
        self.factor = Factor(groups, place.width // groups, bounds)
        self._place = place

    def attach(self) -> None:
        """Hooks the layer's output."""
        self._place.module.register_forward_hook(self._after)

    def _after(self, _module: nn.Module, _args: tuple, y: torch.Tensor) -> torch.Tensor | None:
        if not self.is_on:
            return None
        start, end = self._place.start, self._place.start + self._place.width
        part = scaled(y[..., start:end], self.factor(self.blend))
        return part if self._place.is_whole else torch.cat([y[..., :start], part, y[..., end:]], dim=-1)

    @torch.no_grad()
    def fold(self) -> None:
        """Multiplies the rows of the weight, and the bias."""
        start, end = self._place.start, self._place.start + self._place.width
        base, factor = base_of(self._place.module), self.factor(self.blend)
        rows(base)[start:end] = scaled(rows(base)[start:end], factor[:, None])
        if base.bias is not None:
            base.bias[start:end] = scaled(base.bias[start:end], factor)


class InputGate(Adapter):
    """Multiplies the inputs of a layer."""

    def __init__(self, place: Place):
        super().__init__()
        self.factor = Factor(place.inputs)
        self._place = place

    def attach(self) -> None:
        """Hooks the layer's input."""
        self._place.module.register_forward_pre_hook(self._before)

    def _before(self, _module: nn.Module, args: tuple) -> tuple | None:
        return (scaled(args[0], self.factor(self.blend)), *args[1:]) if self.is_on else None

    @torch.no_grad()
    def fold(self) -> None:
        """Multiplies the columns of the weight."""
        weight = rows(base_of(self._place.module))
        weight.copy_(scaled(weight, self.factor(self.blend)))


def rows(base: nn.Module) -> torch.Tensor:
    """Returns the weight of a linear layer with a row for each output. Raises Refused for weights of 4 bits."""
    weight = base.weight
    if not weight.dtype.is_floating_point:
        raise Refused(f"its base has weights of type {weight.dtype}, which nothing can be folded into")
    return weight.t() if hasattr(base, "nf") else weight  # GPT-2's kind is transposed
