"""Per-token log-prob, entropy and exact KL from hidden states, without a [N, V] tensor that outlives its chunk.

The language-model head is frozen (only adapters are trained), so every per-token scalar depends on its hidden state h
alone and its derivative is a known [d] vector at forward time. With p = softmax(z), z = W h, reference q, entropy H:

    d logp / dz = onehot(y) - p        d entropy / dz = -p (log p + H)        d KL(p||q) / dz = p (log p - log q - KL)

The forward pass walks over chunks of tokens and keeps these, multiplied by W, as [N, d]; the backward pass is one
elementwise multiply. Two head matmuls in all, as many as autograd needs, at a fraction of its memory.
"""

from dataclasses import dataclass

import torch

CHUNK_ELEMENTS = 2**24  # logits held at once: 64 MiB of float32


@dataclass(frozen=True)
class Head:
    """A frozen output layer and what the model does to its logits: `softcap * tanh(scale * z / softcap) / T`."""

    weight: torch.Tensor  # (V, d)
    bias: torch.Tensor | None = None  # (V,)
    scale: float = 1.0
    softcap: float | None = None
    temperature: float = 1.0

    def logits(self, hidden: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | float]:
        """float32 logits (N, V) of hidden states (N, d), and their derivative by the raw product W h."""
        raw = (hidden.to(self.weight.dtype) @ self.weight.t()).float()
        if self.bias is not None:
            raw += self.bias.float()
        slope: torch.Tensor | float = self.scale / self.temperature
        if self.softcap is None:
            return raw * slope, slope
        bent = torch.tanh(raw * (self.scale / self.softcap))
        return bent * (self.softcap / self.temperature), (1 - bent * bent) * slope

    @property
    def chunk(self) -> int:
        """Tokens whose logits are held at once."""
        return max(16, CHUNK_ELEMENTS // self.weight.shape[0])


def token_scores(
    hidden: torch.Tensor, head: Head, targets: torch.Tensor, ref_hidden: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Log-prob of each target, entropy, and exact KL(policy || reference), each float32 (N,).

    hidden (N, d), targets (N,) token ids, ref_hidden (N, d) of the reference at the same positions; without it the KL
    is zeros. Log-prob and KL are differentiable in `hidden`; the entropy is a diagnostic without gradient.
    """
    if head.weight.requires_grad:
        raise ValueError("the head is trainable, but its gradient is not computed here: freeze it or leave it to TRL")
    return _TokenScores.apply(hidden, head, targets, ref_hidden)


class _TokenScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx, hidden, head, targets, ref_hidden):
        count, width = hidden.shape
        logp, entropy, kl = hidden.new_zeros(3, count, dtype=torch.float32).unbind()
        needed = ctx.needs_input_grad[0]
        logp_vjp = hidden.new_empty(count if needed else 0, width, dtype=torch.float32)
        kl_vjp = hidden.new_empty(count if needed and ref_hidden is not None else 0, width, dtype=torch.float32)
        matrix = head.weight
        for start in range(0, count, head.chunk):
            rows = slice(start, min(count, start + head.chunk))
            chosen = targets[rows, None]
            logits, slope = head.logits(hidden[rows])
            log_p = logits.log_softmax(-1)
            p = log_p.exp()
            logp[rows] = log_p.gather(1, chosen)[:, 0]
            entropy[rows] = -(p * log_p).sum(-1)
            if ref_hidden is not None:
                log_ratio = log_p - head.logits(ref_hidden[rows])[0].log_softmax(-1)
                kl[rows] = (p * log_ratio).sum(-1)
                if needed:
                    by_logit = p * (log_ratio - kl[rows, None]) * slope
                    kl_vjp[rows] = (by_logit.to(matrix.dtype) @ matrix).float()
            if needed:
                by_logit = p.neg_().scatter_add_(1, chosen, torch.ones_like(p[:, :1])).mul_(slope)
                logp_vjp[rows] = (by_logit.to(matrix.dtype) @ matrix).float()
        ctx.save_for_backward(logp_vjp, kl_vjp)
        ctx.dtype = hidden.dtype
        ctx.mark_non_differentiable(entropy)
        return logp, entropy, kl

    @staticmethod
    def backward(ctx, grad_logp, _grad_entropy, grad_kl):
        logp_vjp, kl_vjp = ctx.saved_tensors
        grad = grad_logp[:, None] * logp_vjp
        if kl_vjp.numel():
            grad = grad + grad_kl[:, None] * kl_vjp
        return grad.to(ctx.dtype), None, None, None
