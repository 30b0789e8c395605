"""Where in a decoder adapters go: the linear layers of each block by what they do, fused ones in parts."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

# What a layer does, by the last parts of its name. Of fused layers: how many of q, k, v or gate, up come before.
ROLES = {
    "q": {"self_attn.q_proj": 0, "self_attn.qkv_proj": 0, "attn.c_attn": 0},
    "k": {"self_attn.k_proj": 0, "self_attn.qkv_proj": 1, "attn.c_attn": 1},
    "v": {"self_attn.v_proj": 0, "self_attn.qkv_proj": 2, "attn.c_attn": 2},
    "o": {"self_attn.o_proj": 0, "self_attn.out_proj": 0, "attn.c_proj": 0},
    "gate": {"mlp.gate_proj": 0, "mlp.gate_up_proj": 0, "mlp.c_fc": 0},
    "up": {"mlp.up_proj": 0, "mlp.gate_up_proj": 1},
    "down": {"mlp.down_proj": 0, "mlp.c_proj": 0},
}
FUSED = {"qkv_proj": "qkv", "c_attn": "qkv", "gate_up_proj": "up"}


@dataclass(frozen=True)
class Sizes:
    """The widths of a decoder."""

    heads: int
    key_heads: int
    head: int

    @classmethod
    def of(cls, model: nn.Module) -> "Sizes":
        """Reads them from the config of a causal language model."""
        config: Any = model.config.get_text_config()
        heads = config.num_attention_heads
        key_heads = getattr(config, "num_key_value_heads", None) or heads
        head = getattr(config, "head_dim", None) or config.hidden_size // heads
        return cls(heads, key_heads, head)


@dataclass(frozen=True)
class Site:
    """A layer, or the part of a fused one, that does one thing in one block."""

    name: str  # of the module
    module: nn.Module  # with the wrapper of its LoRA, if it has one
    start: int  # its first output
    width: int  # its outputs
    inputs: int
    is_whole: bool  # the layer does nothing else


def sites(model: nn.Module, role: str) -> list[Site]:
    """Returns the layers of `model` that do `role`, one of ROLES, in the order of its blocks."""
    return [
        _part(model, name, module, suffix, before)
        for name, module in linear_layers(model)
        for suffix, before in ROLES[role].items()
        if name == suffix or name.endswith(f".{suffix}")
    ]


def linear_layers(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Yields the linear layers of a model by name, each with the wrapper of its LoRA and without what is inside it."""
    wrapped = ""
    for name, module in list(model.named_modules()):
        if wrapped and name.startswith(wrapped):
            continue
        if outputs_of(module):
            wrapped = f"{name}."
            yield name, module


def base_of(module: nn.Module) -> nn.Module:
    """Returns the frozen layer inside the wrapper of a LoRA."""
    return module.get_base_layer() if hasattr(module, "get_base_layer") else module


def outputs_of(module: nn.Module) -> int:
    """Returns the outputs of a linear layer, GPT-2's transposed kind included; 0 of any other module."""
    base = base_of(module)
    return getattr(base, "out_features", 0) or getattr(base, "nf", 0)


def is_transposed(module: nn.Module) -> bool:
    """True if a linear layer is of GPT-2's kind, with a column of its weight for each output."""
    return hasattr(base_of(module), "nf")


def _part(model: nn.Module, name: str, module: nn.Module, suffix: str, before: int) -> Site:
    base = base_of(module)
    outputs, inputs = outputs_of(module), getattr(base, "in_features", 0) or base.nx
    kind = FUSED.get(suffix.rpartition(".")[2])
    if kind is None:
        return Site(name, module, 0, outputs, inputs, is_whole=True)
    if kind == "up":
        return Site(name, module, before * outputs // 2, outputs // 2, inputs, is_whole=False)
    sizes = Sizes.of(model)
    query, keys = sizes.heads * sizes.head, sizes.key_heads * sizes.head
    start = (0, query, query + keys)[before]
    return Site(name, module, start, query if before == 0 else keys, inputs, is_whole=False)


def norms(model: nn.Module) -> list[tuple[str, nn.Module]]:
    """Returns the norms of a model by name: modules without others inside, with a gain of one dimension."""
    return [
        (name, module)
        for name, module in model.named_modules()
        if "norm" in type(module).__name__.lower()
        and isinstance(getattr(module, "weight", None), torch.Tensor)
        and module.weight.dim() == 1
    ]
