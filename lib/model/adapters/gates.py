"""Factors of what linear layers read or write: IA3, head, channel, residual, projection and input gates."""

import torch
from torch import nn

from lib.model.adapters.contract import Adapter, Factor, Unfit, scaled
from lib.model.adapters.sites import Site, base_of, is_transposed


class OutputGate(Adapter):
    """Multiplies the outputs of a layer, or of its part, in `groups` of equal width."""

    def __init__(self, site: Site, groups: int, bounds: tuple[float, float] | None = None):
        super().__init__()
        if site.width % groups:
            raise Unfit(f"{site.name} has {site.width} outputs, which make no {groups} groups of equal width")
        self.factor = Factor(groups, site.width // groups, bounds)
        self._site = site

    def attach(self) -> None:
        """Hooks the layer's output."""
        self._handles = [self._site.module.register_forward_hook(self._after)]

    def _after(self, _module: nn.Module, _args: tuple, y: torch.Tensor) -> torch.Tensor | None:
        return scaled_part(self._site, y, self.factor(self.blend)) if self.is_on else None

    def obstacle(self) -> str:
        """Returns why the weight cannot be multiplied."""
        return obstacle_of(self._site)

    def fold(self) -> None:
        """Multiplies the rows of the weight, and the bias."""
        multiply_rows(self._site, self.factor(self.blend))


class InputGate(Adapter):
    """Multiplies the inputs of a layer."""

    def __init__(self, site: Site):
        super().__init__()
        self.factor = Factor(site.inputs)
        self._site = site

    def attach(self) -> None:
        """Hooks the layer's input."""
        self._handles = [self._site.module.register_forward_pre_hook(self._before)]

    def _before(self, _module: nn.Module, args: tuple) -> tuple | None:
        return (scaled(args[0], self.factor(self.blend)), *args[1:]) if self.is_on else None

    def obstacle(self) -> str:
        """Returns why the weight cannot be multiplied."""
        return obstacle_of(self._site)

    @torch.no_grad()
    def fold(self) -> None:
        """Multiplies the columns of the weight."""
        weight = _rows(base_of(self._site.module))
        weight.copy_(scaled(weight, self.factor(self.blend)))


def scaled_part(site: Site, y: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
    """Multiplies that part of a layer's outputs y (..., D) which a site writes, by (W,) factors."""
    start, end = site.start, site.start + site.width
    part = scaled(y[..., start:end], factor)
    return part if site.is_whole else torch.cat([y[..., :start], part, y[..., end:]], dim=-1)


def obstacle_of(site: Site) -> str:
    """Returns why the weight of a layer cannot be multiplied; "" if it can."""
    dtype = base_of(site.module).weight.dtype
    return "" if dtype.is_floating_point else f"its base has weights of type {dtype}, which nothing can be folded into"


@torch.no_grad()
def multiply_rows(site: Site, factor: torch.Tensor) -> None:
    """Multiplies what a site writes (W,), by its weight and its bias."""
    start, end, base = site.start, site.start + site.width, base_of(site.module)
    weight = _rows(base)
    weight[start:end] = scaled(weight[start:end], factor[:, None])
    if base.bias is not None:
        base.bias[start:end] = scaled(base.bias[start:end], factor)


def _rows(base: nn.Module) -> torch.Tensor:
    """Returns the weight of a linear layer with a row for each output."""
    return base.weight.t() if is_transposed(base) else base.weight
