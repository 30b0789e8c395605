"""The forward of the Llama family, written out: what transformers' layers compute, in fewer and leaner operations.

The modules of transformers and peft stay the owners of every weight; this only walks over them. Training and decoding
differ in how a layer attends, which the caller gives. What is gained: a LoRA layer is one node of the graph instead of
nine, norms and rotations keep nothing that can be had from their inputs, the last layer computes nothing but the
positions that are asked for, and no mask, cache or output object is made on the way. tests/test_llama.py holds it
against the models' own forward, benchmarks/step.py measures it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.functional import linear, rms_norm, scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

FAMILY = ("llama", "mistral", "qwen2", "qwen3")  # model types of transformers with these very layers

# (layer, queries (B, T, H, D), keys (B, T, KV, D), values (B, T, KV, D)) -> (B, T, H, D)
Attend = Callable[[int, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


class Llama:
    """The forward of one model, its adapter included: on, off, or merged into the weights, as it is at each call."""

    def __init__(self, model: nn.Module):
        self._backbone = getattr(model, model.base_model_prefix)
        self._layers = list(self._backbone.layers)

    @classmethod
    def of(cls, model: nn.Module) -> "Llama | None":
        """The forward of a causal language model of transformers; None if its layers are of another kind."""
        is_known = model.config.model_type in FAMILY and type(model).__module__.startswith("transformers.")
        is_frozen = not any(p.requires_grad for name, p in model.named_parameters() if "lora_" not in name)
        return cls(model) if is_known and is_frozen and all(map(_is_plain, model.modules())) else None

    def merged(self) -> "Llama | Merged":
        """For decoding: the adapter merged into copies of the weights where that is exact, which float32 alone is."""
        tensors = [parameter for layer in self._layers for parameter in layer.parameters()]
        return Merged(self._backbone) if all(each.dtype == torch.float32 for each in tensors) else self

    def __call__(
        self, ids: torch.Tensor, positions: torch.Tensor, attend: Attend, chosen: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Hidden states (B, T, d) of token ids (B, T) at `positions` (B, T).

        `chosen` (N,): those positions of the flattened (B, T) alone, as (N, d).
        """
        x = self._backbone.embed_tokens(ids)
        cos, sin = self._backbone.rotary_emb(x, positions)
        half = cos.shape[-1] // 2  # the other half is the same
        rotation = cos[:, :, None, :half], sin[:, :, None, :half]
        for index, layer in enumerate(self._layers):
            wanted = chosen if index == len(self._layers) - 1 else None
            arguments = (layer, index, x, rotation, attend, wanted)
            saves = torch.is_grad_enabled() and layer.training and getattr(layer, "gradient_checkpointing", False)
            x = checkpoint(_layer, *arguments, use_reentrant=False) if saves else _layer(*arguments)
        return _norm(self._backbone.norm, x)


@dataclass(frozen=True)
class _Layer:
    """The weights of a layer, those with one input in one matrix."""

    norm1: torch.Tensor  # (d,)
    qkv: torch.Tensor  # ((H + 2 KV) D, d)
    qkv_bias: torch.Tensor | None
    qk_norm: torch.Tensor | None  # (H + KV, D)
    out: torch.Tensor  # (d, H D)
    out_bias: torch.Tensor | None
    norm2: torch.Tensor  # (d,)
    gate_up: torch.Tensor  # (2 m, d)
    gate_up_bias: torch.Tensor | None
    down: torch.Tensor  # (d, m)
    down_bias: torch.Tensor | None


class Merged:
    """The forward without gradient and with few calls, which is what small matrices cost: for decoding, float32."""

    def __init__(self, backbone: nn.Module):
        self._backbone = backbone
        self._epsilon = backbone.config.rms_norm_eps
        self._layers = [_packed(layer) for layer in backbone.layers]
        attention = backbone.layers[0].self_attn
        self._dim = attention.head_dim
        self._heads = backbone.config.num_attention_heads
        self._kv_heads = backbone.config.num_key_value_heads
        self._act = backbone.layers[0].mlp.act_fn

    def __call__(self, ids: torch.Tensor, positions: torch.Tensor, attend: Attend) -> torch.Tensor:
        """Hidden states (B, T, d) of token ids (B, T) at `positions` (B, T)."""
        x = self._backbone.embed_tokens(ids)
        cos, sin = self._backbone.rotary_emb(x, positions)
        cos, sin = (part[:, :, None, : self._dim // 2] for part in (cos, sin))
        rotated = self._heads + self._kv_heads
        for index, layer in enumerate(self._layers):
            h = rms_norm(x, x.shape[-1:], layer.norm1, self._epsilon)
            qkv = linear(h, layer.qkv, layer.qkv_bias).unflatten(-1, (-1, self._dim))  # (B, T, H + 2 KV, D)
            qk = qkv[:, :, :rotated]
            if layer.qk_norm is not None:
                qk = rms_norm(qk, (self._dim,), None, self._epsilon).mul_(layer.qk_norm)
            qk = _turn(qk, cos, sin, 1)
            mixed = attend(index, qk[:, :, : self._heads], qk[:, :, self._heads :], qkv[:, :, rotated:]).flatten(2)
            x = linear(mixed, layer.out, layer.out_bias).add_(x)
            h = rms_norm(x, x.shape[-1:], layer.norm2, self._epsilon)
            gate, up = linear(h, layer.gate_up, layer.gate_up_bias).chunk(2, dim=-1)
            x = linear(self._act(gate).mul_(up), layer.down, layer.down_bias).add_(x)
        return rms_norm(x, x.shape[-1:], self._backbone.norm.weight, self._epsilon)


def _packed(layer: nn.Module) -> _Layer:
    attention, mlp = layer.self_attn, layer.mlp
    qkv, qkv_bias = _stacked(attention.q_proj, attention.k_proj, attention.v_proj)
    gate_up, gate_up_bias = _stacked(mlp.gate_proj, mlp.up_proj)
    out, out_bias = _stacked(attention.o_proj)
    down, down_bias = _stacked(mlp.down_proj)
    qk_norm = None
    if hasattr(attention, "q_norm"):
        heads = attention.config.num_attention_heads, attention.config.num_key_value_heads
        norms = (attention.q_norm.weight, attention.k_norm.weight)
        qk_norm = torch.cat([norm.expand(count, -1) for norm, count in zip(norms, heads, strict=True)])
    norm1, norm2 = layer.input_layernorm.weight, layer.post_attention_layernorm.weight
    return _Layer(
        norm1, qkv, qkv_bias, qk_norm, out, out_bias, norm2, gate_up, gate_up_bias, down, down_bias
    )  # fmt: skip


def _stacked(*modules: nn.Module) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Weight and bias of linear layers with one input as those of one layer, adapters merged in where they are on."""
    bases = [module.get_base_layer() if hasattr(module, "lora_A") else module for module in modules]
    weights = [base.weight for base in bases]
    packed = weights[0].new_empty(sum(map(len, weights)), weights[0].shape[1])
    for part, weight, module in zip(packed.split([*map(len, weights)]), weights, modules, strict=True):
        if hasattr(module, "lora_A") and not module.disable_adapters:
            (name,) = module.lora_A
            torch.addmm(
                weight, module.lora_B[name].weight, module.lora_A[name].weight, alpha=module.scaling[name], out=part
            )
        else:
            part.copy_(weight)
    biases = [base.bias for base in bases]
    if all(bias is None for bias in biases):
        return packed, None
    zeros = [weight.new_zeros(len(weight)) for weight in weights]
    return packed, torch.cat([zero if bias is None else bias for zero, bias in zip(zeros, biases, strict=True)])


def attend_within(mask: torch.Tensor | None) -> Attend:
    """Attention of texts to themselves: causal, or where `mask` (B, 1, T, T) is true."""
    bias = None if mask is None else torch.zeros(mask.shape, device=mask.device).masked_fill_(~mask, float("-inf"))

    def attend(_layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        groups = query.shape[2] // key.shape[2]
        if mask is not None and query.is_cuda:  # no quick kernel there takes both a mask and grouped heads
            key, value = (part.repeat_interleave(groups, dim=2) for part in (key, value))
        heads_first = (part.transpose(1, 2) for part in (query, key, value))
        added = bias if bias is None else bias.to(query.dtype)
        mixed = scaled_dot_product_attention(*heads_first, attn_mask=added, is_causal=bias is None, enable_gqa=True)
        return mixed.transpose(1, 2)

    return attend


def _layer(
    layer: nn.Module, index: int, x: torch.Tensor, rotation: tuple, attend: Attend, chosen: torch.Tensor | None
) -> torch.Tensor:
    attention, mlp = layer.self_attn, layer.mlp
    shape = (*x.shape[:2], -1, attention.head_dim)
    h = _norm(layer.input_layernorm, x)
    projections = _linears(h, attention.q_proj, attention.k_proj, attention.v_proj)
    query, key, value = (part.view(shape) for part in projections)
    if hasattr(attention, "q_norm"):
        query, key = _norm(attention.q_norm, query), _norm(attention.k_norm, key)
    mixed = attend(index, _rotated(query, rotation), _rotated(key, rotation), value).flatten(2)
    if chosen is not None:
        x, mixed = (part.flatten(0, 1).index_select(0, chosen) for part in (x, mixed))
    x = x + _linears(mixed, attention.o_proj)[0]
    h = _norm(layer.post_attention_layernorm, x)
    gate, up = _linears(h, mlp.gate_proj, mlp.up_proj)
    return x + _linears(mlp.act_fn(gate) * up, mlp.down_proj)[0]


def _is_plain(module: nn.Module) -> bool:
    """Whether `_linears` computes what the module does, if it is an adapted layer at all."""
    if not hasattr(module, "lora_A"):
        return True
    from peft.tuners.lora import Linear

    return (
        type(module) is Linear
        and type(module.get_base_layer()) is nn.Linear
        and len(module.lora_A) == 1
        and not module.fan_in_fan_out
        and not any(module.lora_bias.values())
        and not module.lora_variant  # such as DoRA
        and all(isinstance(dropout, nn.Identity) for dropout in module.lora_dropout.values())
    )


def _linears(x: torch.Tensor, *modules: nn.Module) -> tuple[torch.Tensor, ...]:
    """x (..., in) -> (..., out) by each of some linear layers, with their adapters where those are on."""
    bases = [module.get_base_layer() if hasattr(module, "lora_A") else module for module in modules]
    is_on = [hasattr(module, "lora_A") and not module.disable_adapters for module in modules]
    if not any(is_on):
        return tuple(linear(x, base.weight, base.bias) for base in bases)
    if not all(is_on):
        return tuple(_linears(x, module)[0] for module in modules)
    parts, scales = [], []
    for module, base in zip(modules, bases, strict=True):
        (name,) = module.lora_A
        parts += [base.weight, base.bias, module.lora_A[name].weight, module.lora_B[name].weight]
        scales.append(module.scaling[name])
    return _Adapted.apply(x, scales, *parts)


class _Adapted(torch.autograd.Function):
    """W x + bias + scale B A x for layers of one input, W and bias frozen (Hu et al. 2021, arXiv 2106.09685).

    The low-rank products are made in the adapters' dtype, as peft does it, and added in place.
    """

    @staticmethod
    def forward(ctx, x, scales, *parts):
        weights, biases, downs, ups = (parts[i::4] for i in range(4))  # (out, in), (out,), (r, in), (out, r) each
        down = torch.cat(downs)
        low = linear(x.to(down.dtype), down)  # (..., sum of r)
        outputs = tuple(linear(x, weight, bias) for weight, bias in zip(weights, biases, strict=True))
        ranks = [len(each) for each in downs]
        for y, part, up, scale in zip(outputs, low.split(ranks, dim=-1), ups, scales, strict=True):
            _add_product(y, part, up.t(), scale)
        ctx.save_for_backward(x, low, down, *weights, *ups)
        ctx.scales, ctx.ranks = scales, ranks
        return outputs

    @staticmethod
    def backward(ctx, *grads):
        x, low, down, *rest = ctx.saved_tensors
        count = len(grads)
        weights, ups = rest[:count], rest[count:]
        wides = [grad.to(down.dtype) for grad in grads]
        by_low = torch.empty_like(low)
        by_ups = []
        for wide, up, part, by_part, scale in zip(
            wides, ups, low.split(ctx.ranks, dim=-1), by_low.split(ctx.ranks, dim=-1), ctx.scales, strict=True
        ):
            torch.mul(wide @ up, scale, out=by_part)
            by_ups.append((wide.flatten(0, -2).t() @ part.flatten(0, -2)).mul_(scale))
        by_downs = (by_low.flatten(0, -2).t() @ x.to(down.dtype).flatten(0, -2)).split(ctx.ranks)
        by_x = None
        if ctx.needs_input_grad[0]:
            by_x = grads[0] @ weights[0]
            for grad, weight in zip(grads[1:], weights[1:], strict=True):
                _add_product(by_x, grad, weight)
            _add_product(by_x, by_low, down)
        parts = [part for down, up in zip(by_downs, by_ups, strict=True) for part in (None, None, down, up)]
        return by_x, None, *parts


def _add_product(y: torch.Tensor, x: torch.Tensor, matrix: torch.Tensor, scale: float = 1.0) -> None:
    """y += scale x matrix, in one pass where the dtypes agree."""
    rows = y.view(-1, y.shape[-1])
    if y.dtype == x.dtype:
        rows.addmm_(x.flatten(0, -2), matrix, alpha=scale)
    else:
        rows += (x.flatten(0, -2) @ matrix).mul_(scale)


def _norm(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """x / rms(x) * weight along the last dimension, by an RMSNorm of transformers."""
    if x.dtype != torch.float32:
        return module(x)  # where it rounds is its own matter
    return _RMSNorm.apply(x, module.weight, module.variance_epsilon)


class _RMSNorm(torch.autograd.Function):
    """Zhang & Sennrich 2019, arXiv 1910.07467, with a frozen weight; float32."""

    @staticmethod
    def forward(ctx, x, weight, epsilon):
        size = x.shape[-1]
        inverse = torch.linalg.vector_norm(x, dim=-1, keepdim=True).square_().div_(size).add_(epsilon).rsqrt_()
        ctx.save_for_backward(x, weight, inverse)
        return (x * inverse).mul_(weight)

    @staticmethod
    def backward(ctx, grad):
        x, weight, inverse = ctx.saved_tensors
        by_normed = grad * weight
        along = (by_normed * x).sum(-1, keepdim=True).mul_(inverse**3).div_(-x.shape[-1])
        return by_normed.mul_(inverse).addcmul_(x, along), None, None


def _rotated(x: torch.Tensor, rotation: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    return _Rotary.apply(x, *rotation)


class _Rotary(torch.autograd.Function):
    """Su et al. 2021, arXiv 2104.09864: x (B, T, H, D), pairs i and i + D/2, by cos and sin (B, T, 1, D/2)."""

    @staticmethod
    def forward(ctx, x, cos, sin):
        ctx.save_for_backward(cos, sin)
        return _turn(x, cos, sin, 1)

    @staticmethod
    def backward(ctx, grad):
        return _turn(grad, *ctx.saved_tensors, -1), None, None


def _turn(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, sign: int) -> torch.Tensor:
    first, second = x.chunk(2, dim=-1)
    out = torch.empty_like(x)
    left, right = out.chunk(2, dim=-1)
    torch.mul(first, cos, out=left).addcmul_(second, sin, value=-sign)
    torch.mul(second, cos, out=right).addcmul_(first, sin, value=sign)
    return out
