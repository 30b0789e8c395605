"""Our own forward of the Llama family: computes the same as transformers' layers in fewer and leaner operations.

The modules of transformers and peft own every weight; this forward reads them. Training and decoding differ in how a
layer attends, so the caller passes the attention. It is faster since a LoRA layer is one node of the graph instead of
nine, norms and rotations save only their inputs, the last layer's MLP computes only the requested positions, and no
mask, cache or output objects are made. tests/engine/test_llama.py compares it with the models' own forward,
benchmarks/step.py measures it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.functional import embedding, linear, rms_norm, scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

from engine.head import is_quick_on_cpu
from engine.model import backbone_of

FAMILY = ("llama", "mistral", "qwen2", "qwen3")  # model types of transformers with exactly these layers

# (layer, queries (B, T, H, D), keys (B, T, KV, D), values (B, T, KV, D)) -> (B, T, H, D)
Attend = Callable[[int, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


class Llama:
    """The forward of one model with its adapter, which is applied if it is on at the time of the call."""

    def __init__(self, backbone: nn.Module, positions: int = 0):
        """Precomputes the rotations of the first `positions` positions, which decoding needs at every token."""
        self._backbone = backbone
        self._layers = list(backbone.layers)
        self._tables = _tables(backbone, positions) if positions else None

    @classmethod
    def of(cls, model: nn.Module) -> "Llama | None":
        """Returns the forward of a transformers causal language model; None for other layers or a trainable base."""
        if model.config.model_type not in FAMILY or not type(model).__module__.startswith("transformers."):
            return None
        backbone = backbone_of(model)
        linears = [part for layer in backbone.layers for part in _projections(layer)]
        norms = [module for name, module in backbone.named_modules() if name.endswith("norm")]
        is_bare = type(backbone.embed_tokens) is nn.Embedding
        is_bare = is_bare and all(type(norm).__module__.startswith("transformers.") for norm in norms)
        is_frozen = not any(p.requires_grad for name, p in model.named_parameters() if "lora_" not in name)
        return cls(backbone) if is_bare and is_frozen and all(map(_is_plain, linears)) else None

    def for_decoding(self, positions: int) -> "Llama | StackedLlama":
        """Returns a forward for `positions` positions on copies of the weights, in float32 with the adapter merged."""
        weights = [weight for layer in self._layers for weight in _frozen(layer)]
        if {weight.dtype for weight in weights} not in ({torch.bfloat16}, {torch.float32}):
            return Llama(self._backbone, positions)
        return StackedLlama(self._backbone, positions)

    def __call__(
        self, ids: torch.Tensor, positions: torch.Tensor, attend: Attend, chosen: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Returns hidden states (B, T, d) of token ids (B, T) at `positions` (B, T).

        With `chosen` (N,), indices into the flattened (B, T), returns those positions alone, as (N, d).
        """
        x = self._backbone.embed_tokens(ids)
        tables = self._tables
        rotation = [table[positions] for table in tables] if tables else _rotations(self._backbone, positions)
        for index, layer in enumerate(self._layers):
            wanted = chosen if index == len(self._layers) - 1 else None
            arguments: Any = (layer, index, x, rotation, attend, wanted)
            saves = torch.is_grad_enabled() and layer.training and getattr(layer, "gradient_checkpointing", False)
            x = checkpoint(_layer, *arguments, use_reentrant=False) if saves else _layer(*arguments)
        return _norm(self._backbone.norm, x)


@dataclass(frozen=True)
class _Linear:
    """Linear layers with one input as one, x W^T + bias. Where it would be rounded, an adapter stays next to W."""

    weight: torch.Tensor  # W (out, in)
    bias: torch.Tensor | None  # (out,)
    down: torch.Tensor | None  # A (r, in)
    up: torch.Tensor | None  # scale B^T (r, out), in blocks

    @classmethod
    def of(cls, *modules: nn.Module, gain: torch.Tensor | None = None) -> "_Linear":
        """Copies the layers with their active adapters, and in float32 the weight (in,) of the norm before them."""
        bases, adapters = zip(*map(_parts, modules), strict=True)
        sizes = [base.out_features for base in bases]
        is_alone = len(bases) == 1 and bases[0].weight.dtype != torch.float32  # and so is not written to
        stack, low = bases[0].weight if is_alone else torch.cat([base.weight for base in bases]), (None, None)
        if stack.dtype == torch.float32:
            for part, adapter in zip(stack.split(sizes), adapters, strict=True):
                if adapter:
                    down, up, scale = adapter
                    part.addmm_(up.to(part.dtype), down.to(part.dtype), alpha=scale)
            if gain is not None:
                stack *= gain  # W (g * x) = (W diag(g)) x
        elif any(adapters):
            low = _stacked(sizes, adapters, stack.dtype)
        if all(base.bias is None for base in bases):
            return cls(stack, None, *low)
        zeros = [stack.new_zeros(size) for size in sizes]
        biases = [zero if base.bias is None else base.bias for zero, base in zip(zeros, bases, strict=True)]
        return cls(stack, torch.cat(biases), *low)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Maps x (n, in) to (n, out)."""
        y = linear(x, self.weight, self.bias)
        if self.down is not None:
            y.addmm_(linear(x, self.down), self.up)
        return y


def _stacked(sizes: list[int], adapters: tuple, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the adapters of stacked layers as one: A (r, in) and scale B^T (r, out), r the sum of their ranks."""
    ranks = [len(adapter[0]) if adapter else 0 for adapter in adapters]
    down = torch.cat([adapter[0] for adapter in adapters if adapter])
    up = down.new_zeros(sum(ranks), sum(sizes))
    row = column = 0
    for rank, size, adapter in zip(ranks, sizes, adapters, strict=True):
        if adapter:
            up[row : row + rank, column : column + size] = adapter[2] * adapter[1].t()
        row, column = row + rank, column + size
    return down.to(dtype), up.to(dtype)


@dataclass(frozen=True)
class _Layer:
    """The weights of a layer: matrices with one input are stacked, and the norm before is folded in where exact."""

    norm: torch.Tensor | None  # (d,), where it is not folded in
    qkv: _Linear  # d to (H + 2 KV) D
    qk_norm: torch.Tensor | None  # (H + KV, D)
    out: _Linear  # H D to d
    mlp_norm: torch.Tensor | None
    gate_up: _Linear  # d to 2 m
    down: _Linear  # m to d

    @classmethod
    def of(cls, layer: nn.Module) -> "_Layer":
        """Copies the weights of a transformers layer."""
        attention, mlp = layer.self_attn, layer.mlp
        norm, mlp_norm = layer.input_layernorm.weight, layer.post_attention_layernorm.weight
        is_folded = norm.dtype == torch.float32
        qk_norm = None
        if hasattr(attention, "q_norm"):
            heads = attention.config.num_attention_heads, attention.config.num_key_value_heads
            norms = attention.q_norm.weight, attention.k_norm.weight
            qk_norm = torch.cat([norm.expand(count, -1) for norm, count in zip(norms, heads, strict=True)])
        return cls(
            norm=None if is_folded else norm,
            qkv=_Linear.of(attention.q_proj, attention.k_proj, attention.v_proj, gain=norm),
            qk_norm=qk_norm,
            out=_Linear.of(attention.o_proj),
            mlp_norm=None if is_folded else mlp_norm,
            gate_up=_Linear.of(mlp.gate_proj, mlp.up_proj, gain=mlp_norm),
            down=_Linear.of(mlp.down_proj),
        )


class StackedLlama:
    """The forward for decoding: without gradient, in few calls, whose overhead dominates small matrices."""

    def __init__(self, backbone: nn.Module, positions: int):
        config, attention = backbone.config, backbone.layers[0].self_attn
        self._embedding, self._norm = backbone.embed_tokens.weight, backbone.norm
        self._layers = [_Layer.of(layer) for layer in backbone.layers]
        self._act = backbone.layers[0].mlp.act_fn
        self._epsilon = config.rms_norm_eps
        self._dim, self._heads = attention.head_dim, config.num_attention_heads
        self._rotated = self._heads + config.num_key_value_heads
        self._tables = _tables(backbone, positions)

    def __call__(
        self, ids: torch.Tensor, positions: torch.Tensor, attend: Attend, chosen: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Returns the same hidden states as `Llama`."""
        x = embedding(ids.flatten(), self._embedding)  # (B T, d), as everything but what is attended
        cos, sin = (table[positions] for table in self._tables)  # (B, T, 1, D / 2)
        shape = (*ids.shape, -1, self._dim)
        for index, layer in enumerate(self._layers):
            qk, value = layer.qkv(self._normed(x, layer.norm)).view(shape).tensor_split((self._rotated,), 2)
            if layer.qk_norm is not None:
                qk = self._normed(qk).mul_(layer.qk_norm)
            query, key = _rotate(qk, cos, sin, 1).tensor_split((self._heads,), 2)  # (B, T, ., D)
            mixed = attend(index, query, key, value).reshape(len(x), -1)
            if chosen is not None and index == len(self._layers) - 1:
                x, mixed = x[chosen], mixed[chosen]
            x = layer.out(mixed).add_(x)
            gate, up = layer.gate_up(self._normed(x, layer.mlp_norm)).chunk(2, dim=-1)
            x = layer.down(self._act(gate).mul_(up)).add_(x)
        x = self._normed(x).mul_(self._norm.weight)
        return x if chosen is not None else x.view(*ids.shape, -1)

    def _normed(self, x: torch.Tensor, weight: torch.Tensor | None = None) -> torch.Tensor:
        return rms_norm(x, x.shape[-1:], weight, self._epsilon)


def _rotations(backbone: nn.Module, positions: torch.Tensor) -> list[torch.Tensor]:
    """Returns cosines and sines (B, T, 1, D / 2) at positions (B, T); the model repeats them in a second half."""
    both = backbone.rotary_emb(backbone.embed_tokens.weight, positions)  # the weight gives the dtype
    return [part[:, :, None, : part.shape[-1] // 2] for part in both]


def _tables(backbone: nn.Module, count: int) -> list[torch.Tensor]:
    """Returns cosines and sines (count, 1, D / 2) at the first `count` positions."""
    every = torch.arange(count, device=backbone.embed_tokens.weight.device)[None]
    return [part[0] for part in _rotations(backbone, every)]


def attend_within(mask: torch.Tensor | None, causal: int, dtype: torch.dtype) -> Attend:
    """Returns the attention of texts to themselves: causal, or where `mask` (B, 1, T, T) is true.

    The first `causal` tokens of every text see all tokens before them, mask or not, so they are computed without the
    mask and without later keys. `dtype` is the model's.
    """
    if mask is None:
        return lambda _layer, query, key, value: _self_attention(query, key, value, None)
    mask = mask[:, :, causal:]
    bias = torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, float("-inf"))

    def attend(_layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        rest = _self_attention(query[:, causal:], key, value, bias)
        if not causal:
            return rest
        first = _self_attention(query[:, :causal], key[:, :causal], value[:, :causal], None)
        return torch.cat([first, rest], dim=1)

    return attend


def _self_attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, bias: torch.Tensor | None
) -> torch.Tensor:
    groups = query.shape[2] // key.shape[2]
    if query.is_cuda and (bias is not None or query.dtype == torch.float32):  # no fast kernel there takes grouped heads
        key, value = (part.repeat_interleave(groups, dim=2) for part in (key, value))
    query, key, value = (part.transpose(1, 2) for part in (query, key, value))
    mixed = scaled_dot_product_attention(query, key, value, attn_mask=bias, is_causal=bias is None, enable_gqa=True)
    return mixed.transpose(1, 2)


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
    query, key = _Rotary.apply(query, *rotation), _Rotary.apply(key, *rotation)
    mixed = attend(index, query, key, value).flatten(2)
    if chosen is not None:
        x, mixed = (part.flatten(0, 1).index_select(0, chosen) for part in (x, mixed))
    x = x + _linears(mixed, attention.o_proj)[0]
    h = _norm(layer.post_attention_layernorm, x)
    gate, up = _linears(h, mlp.gate_proj, mlp.up_proj)
    return x + _linears(mlp.act_fn(gate) * up, mlp.down_proj)[0]


def _projections(layer: nn.Module) -> list[nn.Module]:
    attention, mlp = layer.self_attn, layer.mlp
    return [
        attention.q_proj, attention.k_proj, attention.v_proj, attention.o_proj, mlp.gate_proj, mlp.up_proj,
        mlp.down_proj,
    ]  # fmt: skip


def _frozen(layer: nn.Module) -> list[torch.Tensor]:
    """Returns a layer's weights without its adapters'."""
    return [weight for name, weight in layer.named_parameters() if "lora_" not in name]


def _is_plain(module: nn.Module) -> bool:
    """True if `_linears` computes what this module does: a linear layer, or one with a single plain adapter."""
    from peft.tuners.lora import Linear

    if type(module) is not Linear:
        return type(module) is nn.Linear
    return (
        type(module.get_base_layer()) is nn.Linear
        and len(module.lora_A) == 1
        and set(module.active_adapters) == set(module.lora_A)
        and not module.merged
        and not module.fan_in_fan_out
        and not any(module.lora_bias.values())
        and not module.lora_variant  # such as DoRA
        and all(isinstance(dropout, nn.Identity) for dropout in module.lora_dropout.values())
    )


def _parts(module: nn.Module) -> tuple[nn.Linear, tuple[torch.Tensor, torch.Tensor, float] | None]:
    """Returns the frozen layer of a linear module, and its adapter's A (r, in), B (out, r) and scale if it is on."""
    if not hasattr(module, "lora_A"):
        return module, None
    if module.disable_adapters:
        return module.get_base_layer(), None
    (name,) = module.lora_A
    return module.get_base_layer(), (module.lora_A[name].weight, module.lora_B[name].weight, module.scaling[name])


def _linears(x: torch.Tensor, *modules: nn.Module) -> tuple[torch.Tensor, ...]:
    """Maps x (..., in) to (..., out) by each of the linear layers, with their adapters where those are on."""
    bases, adapters = zip(*map(_parts, modules), strict=True)
    if not any(adapters):
        return tuple(linear(x, base.weight, base.bias) for base in bases)
    if not all(adapters):
        return tuple(_linears(x, module)[0] for module in modules)
    scales = [scale for _, _, scale in adapters]
    parts = [
        part for base, (down, up, _) in zip(bases, adapters, strict=True) for part in (base.weight, base.bias, down, up)
    ]
    return _Adapted.apply(x, scales, *parts)


class _Adapted(torch.autograd.Function):
    """W x + bias + scale B A x for layers with one input, W and bias frozen (Hu et al. 2021, arXiv 2106.09685).

    The low-rank products are computed in the adapters' dtype, as in peft, or in that of x where it is the quicker one,
    as under autocast; they are added in place.
    """

    @staticmethod
    def forward(ctx, x, scales, *parts):
        weights, biases, downs, ups = (parts[i::4] for i in range(4))  # (out, in), (out,), (r, in), (out, r) each
        down = torch.cat(downs)
        if not x.is_cuda and is_quick_on_cpu(x.dtype):
            down, *ups = (matrix.to(x.dtype) for matrix in (down, *ups))
        low = linear(x.to(down.dtype), down)  # (..., sum of r)
        outputs = tuple(linear(x, weight, bias) for weight, bias in zip(weights, biases, strict=True))
        ranks = [len(matrix) for matrix in downs]
        for y, part, up, scale in zip(outputs, low.split(ranks, dim=-1), ups, scales, strict=True):
            _add_product(y, part, up.t(), scale)
        ctx.save_for_backward(x, low, down, *weights, *ups)
        ctx.scales, ctx.ranks = scales, ranks
        return outputs

    @staticmethod
    def backward(ctx, *grads):
        # with g the gradient: dB = scale g^T (x A^T), dA = (scale g B)^T x, dx = g W + (scale g B) A
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
    """Adds scale x matrix to y in place, in one pass where the dtypes agree."""
    rows = y.view(-1, y.shape[-1])
    if y.dtype == x.dtype:
        rows.addmm_(x.flatten(0, -2), matrix, alpha=scale)
    else:
        rows += (x.flatten(0, -2) @ matrix).mul_(scale)


def _norm(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Returns x / rms(x) * weight along the last dimension, by an RMSNorm of transformers."""
    return _RMSNorm.apply(x, module.weight, module.variance_epsilon)


class _RMSNorm(torch.autograd.Function):
    """RMSNorm (Zhang & Sennrich 2019, arXiv 1910.07467) with a frozen weight; its sums are float32 at least."""

    @staticmethod
    def forward(ctx, x, weight, epsilon):
        size = x.shape[-1]
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        inverse = torch.linalg.vector_norm(wide, dim=-1, keepdim=True).square_().div_(size).add_(epsilon).rsqrt_()
        ctx.save_for_backward(x, weight, inverse)
        return (wide * inverse).to(x.dtype).mul_(weight)

    @staticmethod
    def backward(ctx, grad):
        # with r = 1 / rms(x) and g = grad * weight: dx = r g - r^3 x mean(g x)
        x, weight, inverse = ctx.saved_tensors
        wide, by_normed = x.to(inverse.dtype), (grad * weight).to(inverse.dtype)
        along = (by_normed * wide).sum(-1, keepdim=True).mul_(inverse**3).div_(-x.shape[-1])
        return by_normed.mul_(inverse).addcmul_(wide, along).to(x.dtype), None, None


class _Rotary(torch.autograd.Function):
    """Rotary embedding (Su et al. 2021, arXiv 2104.09864): rotates pairs i, i + D/2 of x (B, T, H, D).

    cos and sin are (B, T, 1, D/2).
    """

    @staticmethod
    def forward(ctx, x, cos, sin):
        ctx.save_for_backward(cos, sin)
        return _rotate(x, cos, sin, 1)

    @staticmethod
    def backward(ctx, grad):
        return _rotate(grad, *ctx.saved_tensors, -1), None, None


def _rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, sign: int) -> torch.Tensor:
    first, second = x.chunk(2, dim=-1)
    out = torch.empty_like(x)
    left, right = out.chunk(2, dim=-1)
    torch.mul(first, cos, out=left).addcmul_(second, sin, value=-sign)
    torch.mul(second, cos, out=right).addcmul_(first, sin, value=sign)
    return out
