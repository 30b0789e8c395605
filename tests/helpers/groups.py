"""Groups of answers as the rows of a tensor, for what computes with flat columns."""

import torch


def by_row(function, values, counts=None, *more):
    """Calls a function of columns (n,) on (..., K), each row a set; all count unless `counts` says otherwise."""
    counts = torch.ones_like(values, dtype=torch.bool) if counts is None else counts
    sets = torch.arange(values.numel()) // values.shape[-1]
    return function(values.flatten(), counts.flatten(), sets, *(column.flatten() for column in more)).view_as(values)
