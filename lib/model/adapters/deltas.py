"""Changes of a model's own weights: biases (BitFit, Ben Zaken et al. 2021, arXiv 2106.10199), and gains of norms."""

import torch
from torch import nn
from torch.nn.utils import parametrize

from lib.model.adapters.contract import Adapter


class Delta(Adapter):
    """A tensor that is added to a frozen weight or bias of a module, which keeps its own value next to it."""

    def __init__(self, module: nn.Module, name: str):
        super().__init__()
        self.change = nn.Parameter(torch.zeros(getattr(module, name).shape))
        self._at = (module, name)

    def attach(self) -> None:
        """Lets the module see the sum in place of its own tensor."""
        module, name = self._at
        getattr(module, name).requires_grad = False
        parametrize.register_parametrization(module, name, self, unsafe=True)

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        """Returns the sum, in the weight's dtype."""
        return (weight.float() + self.blend * self.change).to(weight.dtype) if self.is_on else weight

    def detach(self) -> None:
        """Lets the module own its tensor again."""
        if parametrize.is_parametrized(*self._at):
            parametrize.remove_parametrizations(*self._at, leave_parametrized=False)

    def obstacle(self) -> str:
        """Returns "": a sum has the effect of a sum."""
        return ""

    @torch.no_grad()
    def fold(self) -> None:
        """Writes the sum into the module's own tensor."""
        parametrize.remove_parametrizations(*self._at, leave_parametrized=True)
