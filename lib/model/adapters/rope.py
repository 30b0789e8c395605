"""A factor of all rotary frequencies."""

import torch
from torch import nn

from lib.model.adapters.contract import Adapter, Factor, Unfit


class RopeFrequency(Adapter):
    """Turns positions by s times their angles; s is within bounds, and 1 at first."""

    def __init__(self, model: nn.Module, bounds: tuple[float, float]):
        super().__init__()
        rotary = getattr(model.base_model, "rotary_emb", None)
        if not isinstance(getattr(rotary, "inv_freq", None), torch.Tensor):
            raise Unfit(f"a model of type {model.config.model_type} has no one set of rotary frequencies")
        self.factor = Factor(1, 1, bounds)
        self._rotary = (rotary,)  # in a tuple, or it would be a module of this one
        self._refuse_other_layouts(model)

    def attach(self) -> None:
        """Hooks the cosines and sines."""
        self._handles = [self._rotary[0].register_forward_hook(self._after, with_kwargs=True)]

    def _after(self, module: nn.Module, args: tuple, named: dict, y: tuple) -> tuple | None:
        """Returns cosines and sines (B, T, D) of the angles times s, as transformers computes them."""
        positions = named["position_ids"] if "position_ids" in named else args[1]
        return self._turned(module, positions, y, self.factor(self.blend)) if self.is_on else None

    @staticmethod
    def _turned(rotary: nn.Module, positions: torch.Tensor, y: tuple, factor: torch.Tensor) -> tuple:
        frequencies = rotary.inv_freq[None, :, None].float().expand(len(positions), -1, 1)
        angles = (frequencies @ positions[:, None, :].float()).transpose(1, 2) * factor
        both = torch.cat((angles, angles), dim=-1)
        scale = rotary.attention_scaling
        return (both.cos() * scale).to(y[0].dtype), (both.sin() * scale).to(y[1].dtype)

    @torch.no_grad()
    def _refuse_other_layouts(self, model: nn.Module) -> None:
        """Raises Unfit where this formula is not the model's: frequencies that change with length, other layouts."""
        rotary = self._rotary[0]
        positions = torch.arange(9, device=rotary.inv_freq.device)[None]
        try:
            theirs = rotary(torch.zeros(1, 9, 1, device=positions.device), positions)
        except TypeError as error:
            raise Unfit(f"the rotary embedding of {model.config.model_type} asks for more than positions") from error
        ours = self._turned(rotary, positions, theirs, torch.ones(1, device=positions.device))
        is_fixed = getattr(rotary, "rope_type", "default") not in ("dynamic", "longrope")
        is_known = [a.shape == b.shape and (a.is_meta or torch.equal(a, b)) for a, b in zip(ours, theirs, strict=True)]
        if not is_fixed or not all(is_known):
            raise Unfit(f"the rotary embedding of {model.config.model_type} has another layout")
