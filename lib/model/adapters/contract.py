"""What every adapter of the shelf is."""

import math
from typing import Any

import torch
from torch import nn


class Unfit(ValueError):
    """An adapter that does not fit a model, with the reason."""


class Adapter(nn.Module):
    """A small trainable change at one place of a frozen model, in float32.

    It changes nothing at initialisation, nor while it is off. Its effect is blended: nothing at `blend` 0, all of it at
    1; no parameter is written for that. So every hook returns early unless `is_on`, and multiplies its effect by
    `blend`. `obstacle` and `fold` are needed unless OBSTACLES in combinations.py excludes the family from folding.
    """

    is_on = True  # plain attributes, not state
    blend = 1.0

    def __init__(self) -> None:
        super().__init__()
        self._handles: list[Any] = []  # of the hooks

    def attach(self) -> None:
        """Puts hooks into the model. Called once."""
        raise NotImplementedError

    def detach(self) -> None:
        """Takes the hooks out again."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def obstacle(self) -> str:
        """Returns why the weights of this model cannot have its effect; "" if they can.

        Families whose effect no weights ever have stand in the table of combinations.
        """
        raise NotImplementedError

    def fold(self) -> None:
        """Gives the weights of the model its effect, if there is no obstacle, so that it can be detached."""
        raise NotImplementedError

    def drift(self) -> torch.Tensor:
        """Returns how far it is from doing nothing, number by number."""
        return torch.cat([parameter.detach().flatten() for parameter in self.parameters()])


class Factor(nn.Module):
    """`groups` factors, each for `width` neighbours: 1 + x, or within bounds exp(c tanh(x / c)); x is 0 at first.

    In the bounded form c is the logarithm of the upper bound, or minus that of the lower one for x below 0: slope 1 at
    x = 0 on both sides, and a gradient everywhere.
    """

    def __init__(self, groups: int, width: int = 1, bounds: tuple[float, float] | None = None):
        super().__init__()
        self.move = nn.Parameter(torch.zeros(groups))
        self._width = width
        self._least, self._most = map(math.log, bounds) if bounds else (0.0, 0.0)

    def forward(self, blend: float) -> torch.Tensor:
        """Returns the factors (groups * width,), blended with 1."""
        if not self._most:
            return (1 + blend * self.move).repeat_interleave(self._width)
        most = torch.where(self.move < 0, -self._least, self._most)
        bounded = torch.exp(most * torch.tanh(self.move / most))
        return (1 + blend * (bounded - 1)).repeat_interleave(self._width)


def scaled(x: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
    """Multiplies in float32, and returns the dtype of `x`."""
    return (x.float() * factor).to(x.dtype)
