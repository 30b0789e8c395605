"""Weights that have left their start, where an adapter changes nothing yet."""

import torch


def move(parameters, by, seed=1):
    """Adds normal noise of standard deviation `by`, the same for the same seed."""
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in parameters:
            parameter += by * torch.randn(parameter.shape, generator=draw)
