"""What is asked of a model of transformers, whatever its layers are."""

from torch import nn
from torch.distributed.fsdp import FSDPModule


def backbone_of(model: nn.Module) -> nn.Module:
    """Returns a causal language model without its output layer; the model itself where it has no such part."""
    named = getattr(model, model.base_model_prefix, None)  # None if it is the prefix of a larger model
    return getattr(model, "model", model) if named is None else named


def is_sharded(model: nn.Module) -> bool:
    """True if other processes hold parts of a model's weights."""
    return any(isinstance(module, FSDPModule) for module in model.modules())
