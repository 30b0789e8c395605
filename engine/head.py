"""Per-token log-prob, entropy and exact KL from hidden states, without a [N, V] tensor that outlives its chunk.

The language-model head is frozen (only adapters are trained), so every per-token scalar depends on its hidden state h
alone and its derivative is a known [d] vector at forward time. With p = softmax(z), z = W h, reference q, entropy H:

    d logp / dz = onehot(y) - p        d entropy / dz = -p (log p + H)        d KL(p||q) / dz = p (log p - log q - KL)

The forward pass walks over chunks of tokens and keeps these, multiplied by W, as [N, d]; the backward pass is one
elementwise multiply. Two head matmuls in all, as many as autograd needs, at a fraction of its memory, and any loss may
follow. benchmarks/head.py measures it.
"""

from dataclasses import dataclass, replace
from functools import cache

import torch

CHUNK_ELEMENTS = 2**24  # logits held at once: 64 MiB of float32
BLOCK_ELEMENTS = 2**23  # weights cast to float32 at once, on devices without a half-precision matmul into float32


@cache
def is_quick_on_cpu(dtype: torch.dtype) -> bool:
    """True if products in `dtype` are faster than in float32: in bfloat16, on CPUs with instructions for it."""
    flags = torch.cpu.get_capabilities()
    has_it = bool(flags.get("avx512_bf16") or flags.get("amx_bf16")) and torch.backends.mkldnn.is_available()
    return dtype == torch.bfloat16 and has_it


@dataclass(frozen=True)
class Head:
    """A frozen output layer and the transform of its logits: `softcap * tanh(scale * z / softcap) / T`."""

    weight: torch.Tensor  # (V, d)
    bias: torch.Tensor | None = None  # (V,)
    scale: float = 1.0
    softcap: float | None = None
    temperature: float = 1.0

    def logits(self, hidden: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
        """Computes float32 logits (N, V) of hidden states (N, d), whatever the dtype of the weights."""
        return self.logits_and_slope(hidden, out)[0]

    def logits_and_slope(
        self, hidden: torch.Tensor, out: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor | float]:
        """Computes `logits` and their derivative by the raw product W h: a number, or (N, V) with a soft-cap."""
        out = self._multiplied(hidden, out)
        if self.bias is not None:
            out += self.bias.float()
        slope = self.scale / self.temperature
        if self.softcap is None:
            return (out if slope == 1.0 else out.mul_(slope)), slope
        out.mul_(self.scale / self.softcap).tanh_()
        slopes = out.square().neg_().add_(1.0).mul_(slope)
        return out.mul_(self.softcap / self.temperature), slopes

    def _multiplied(self, hidden: torch.Tensor, out: torch.Tensor | None) -> torch.Tensor:
        """Computes W h (N, V) of hidden states (N, d), summed in float32, in `out` if there is one."""
        weight = self.weight
        if weight.dtype == torch.float32:
            return torch.mm(hidden.float(), weight.t(), out=out)
        if out is None:
            out = hidden.new_empty(len(hidden), len(weight), dtype=torch.float32)
        if weight.is_cuda:
            torch.mm(hidden.to(weight.dtype), weight.t(), out_dtype=torch.float32, out=out)
        elif is_quick_on_cpu(weight.dtype):
            # the sums are float32 inside, and rounded on their way out: a second pass brings what that took
            hidden = hidden.to(weight.dtype)
            rounded = hidden @ weight.t()
            out.copy_(rounded).add_(torch.addmm(rounded.neg_(), hidden, weight.t()))
        else:
            for rows in self._blocks:
                out[:, rows] = hidden.float() @ weight[rows].float().t()
        return out

    def vjp(self, by_logit: torch.Tensor) -> torch.Tensor:
        """Turns a derivative by the raw product (N, V) into one by the hidden states: (N, d) float32."""
        weight = self.weight
        if weight.dtype == torch.float32:
            return by_logit @ weight
        if weight.is_cuda:
            return torch.mm(by_logit.to(weight.dtype), weight, out_dtype=torch.float32)
        if is_quick_on_cpu(weight.dtype):  # rounded at the end, as the gradient by a hidden state will be
            return (by_logit.to(weight.dtype) @ weight).float()
        pulled = by_logit.new_zeros(len(by_logit), weight.shape[1])
        for rows in self._blocks:
            pulled.addmm_(by_logit[:, rows], weight[rows].float())
        return pulled

    @property
    def _blocks(self) -> list[slice]:
        size = max(1, BLOCK_ELEMENTS // self.weight.shape[1])
        return [slice(start, start + size) for start in range(0, len(self.weight), size)]

    def first(self, rows: int) -> "Head":
        """Returns the layer of the first `rows` logits alone, on the same weights."""
        if rows == len(self.weight):
            return self
        return replace(self, weight=self.weight[:rows], bias=self.bias if self.bias is None else self.bias[:rows])

    @property
    def chunk(self) -> int:
        """Returns the number of tokens whose logits are held at once."""
        return max(16, CHUNK_ELEMENTS // self.weight.shape[0])


def token_scores(
    hidden: torch.Tensor, head: Head, targets: torch.Tensor, ref_hidden: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Returns the log-prob of each target, the entropy, and the exact KL(policy || reference), each float32 (N,).

    hidden (N, d), targets (N,) token ids, ref_hidden (N, d) of the reference at the same positions; without it the KL
    is zeros. Log-prob and KL are differentiable in `hidden`; the entropy is a diagnostic without gradient.
    """
    if head.weight.requires_grad:
        raise ValueError("the head is trainable, but its gradient is not computed here: freeze it or leave it to TRL")
    with torch.autocast(hidden.device.type, enabled=False):  # it would round the logits
        return _TokenScores.apply(hidden, head, targets, ref_hidden)


class _TokenScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx, hidden, head, targets, ref_hidden):
        count, width = hidden.shape
        logp, entropy, kl = hidden.new_zeros(3, count, dtype=torch.float32).unbind()
        needed = ctx.needs_input_grad[0]
        logp_vjp = hidden.new_empty(count if needed else 0, width, dtype=torch.float32)
        kl_vjp = hidden.new_empty(count if needed and ref_hidden is not None else 0, width, dtype=torch.float32)
        # allocated once: fresh pages for every chunk would cost as much as the arithmetic on them
        shape = min(count, head.chunk), len(head.weight)
        work = [hidden.new_empty(shape, dtype=torch.float32) for _ in range(2 if ref_hidden is None else 3)]
        for start in range(0, count, head.chunk):
            rows = slice(start, min(count, start + head.chunk))
            chosen = targets[rows, None]
            # the buffers are reused, so the order matters: log_p becomes log p - log q for the KL and its vjp, and only
            # then is p overwritten by p - onehot(y)
            log_p, p, *log_q = (buffer[: rows.stop - start] for buffer in work)
            if ref_hidden is not None:
                log_softmax_(head.logits(ref_hidden[rows], out=log_q[0]), p)
            logits, slope = head.logits_and_slope(hidden[rows], out=log_p)
            log_softmax_(logits, p)
            logp[rows] = log_p.gather(1, chosen)[:, 0]
            entropy[rows] = -dot(p, log_p)
            if ref_hidden is not None:
                log_ratio = log_p.sub_(log_q[0])
                kl[rows] = dot(p, log_ratio)
                if needed:
                    kl_vjp[rows] = head.vjp(log_ratio.sub_(kl[rows, None]).mul_(p).mul_(slope))
            if needed:
                # p - onehot(y) is minus the derivative of logp, hence the sign below
                p.scatter_add_(1, chosen, p.new_full((len(p), 1), -1.0))
                if isinstance(slope, torch.Tensor):
                    p.mul_(slope)
                logp_vjp[rows] = head.vjp(p).mul_(-1.0 if isinstance(slope, torch.Tensor) else -slope)
        ctx.save_for_backward(logp_vjp, kl_vjp)
        ctx.dtype = hidden.dtype
        ctx.mark_non_differentiable(entropy)
        return logp, entropy, kl

    @staticmethod
    def backward(ctx, grad_logp, _grad_entropy, grad_kl):
        logp_vjp, kl_vjp = ctx.saved_tensors
        grad = grad_logp[:, None] * logp_vjp
        if kl_vjp.numel():
            grad.addcmul_(grad_kl[:, None], kl_vjp)
        return grad.to(ctx.dtype), None, None, None


def log_softmax_(logits: torch.Tensor, p: torch.Tensor) -> None:
    """Turns logits (n, V) into their log-softmax in place, and writes their softmax to `p`."""
    logits.sub_(logits.amax(-1, keepdim=True))
    torch.exp(logits, out=p)
    total = p.sum(-1, keepdim=True)
    logits.sub_(total.log())
    p.div_(total)


def dot(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Computes the dot product of each row, (n, V) x (n, V) -> (n,), without a third tensor of that size."""
    return torch.bmm(a[:, None], b[:, :, None])[:, 0, 0]
