"""A small MLP added to what the model's MLPs write (Houlsby et al. 2019, arXiv 1902.00751)."""

import math

import torch
from torch import nn
from torch.nn.functional import gelu, linear

from lib.model.adapters.contract import Adapter
from lib.model.adapters.sites import Site


class Bottleneck(Adapter):
    """y + exp(a) W2 GELU(W1 y) for outputs y of a layer; W2 and a are 0 at first."""

    def __init__(self, site: Site, width: int, generator: torch.Generator):
        super().__init__()
        bound = 1 / math.sqrt(site.width)  # kaiming_uniform with a = sqrt(5), as of linear layers
        drawn = torch.rand(width, site.width, generator=generator) * 2 * bound - bound
        self.inner = nn.Parameter(drawn)  # W1
        self.outer = nn.Parameter(torch.zeros(site.width, width))  # W2
        self.log_scale = nn.Parameter(torch.zeros(1))
        self._site = site

    def attach(self) -> None:
        """Hooks the layer's output."""
        self._handles = [self._site.module.register_forward_hook(self._after)]

    def _after(self, _module: nn.Module, _args: tuple, y: torch.Tensor) -> torch.Tensor | None:
        if not self.is_on:
            return None
        added = linear(gelu(linear(y.float(), self.inner)), self.outer) * self.log_scale.exp() * self.blend
        return (y.float() + added).to(y.dtype)

    def drift(self) -> torch.Tensor:
        """Returns W2, which alone is 0 where it does nothing."""
        return self.outer.detach().flatten()
