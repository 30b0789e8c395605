"""The exact KL between policy and teacher at each token from hidden states, without an [N, V] tensor.

With p = softmax(z) of the policy, q of the teacher and r = log p - log q of a token:

    reverse   KL(policy || teacher) =  sum_v p_v r_v      d/dz_v = p_v (r_v - KL)
    forward   KL(teacher || policy) = -sum_v q_v r_v      d/dz_v = p_v - q_v

The reverse one teaches by what the policy might write: where p_v is next to nothing, so is its gradient, however sure
the teacher is of v. The forward one raises v there too (both in GKD, Agarwal et al. 2024, arXiv 2306.13649).

As in engine/head.py the derivative by the hidden state is known in the forward pass and kept as [N, d].
"""

from dataclasses import dataclass, replace

import torch

from engine.head import Head, dot, log_softmax_


@dataclass(frozen=True)
class TeacherStates:
    """A teacher's next-token distributions at N places: hidden states, and what makes logits of them."""

    hidden: torch.Tensor  # (N, d'), d' the teacher's width
    head: Head
    is_forward: bool = False  # the KL that is taken


def teacher_kl(hidden: torch.Tensor, head: Head, teacher: TeacherStates) -> torch.Tensor:
    """Returns the KL, reverse or forward, in nats at each place, float32 (N,), differentiable in `hidden` (N, d).

    Models of one family may have more rows of logits than tokens, and not equally many: those that only one of the two
    has are left out.
    """
    size = min(len(head.weight), len(teacher.head.weight))
    head, teacher = head.first(size), replace(teacher, head=teacher.head.first(size))
    with torch.autocast(hidden.device.type, enabled=False):  # it would round the logits
        return _TeacherKl.apply(hidden, head, teacher)


class _TeacherKl(torch.autograd.Function):
    @staticmethod
    def forward(ctx, hidden, head, teacher):
        count, width = hidden.shape
        kl = hidden.new_zeros(count, dtype=torch.float32)
        vjp = hidden.new_empty(count if ctx.needs_input_grad[0] else 0, width, dtype=torch.float32)
        shape = min(count, head.chunk), len(head.weight)
        work = [hidden.new_empty(shape, dtype=torch.float32) for _ in range(3)]
        for start in range(0, count, head.chunk):
            rows = slice(start, min(count, start + head.chunk))
            log_p, p, log_q = (buffer[: rows.stop - start] for buffer in work)
            logits, slope = head.logits_and_slope(hidden[rows], out=log_p)
            log_softmax_(logits, p)
            log_softmax_(teacher.head.logits(teacher.hidden[rows], out=log_q), p)
            ratio = torch.sub(log_p, log_q, out=log_q)  # log p - log q
            if teacher.is_forward:
                q = torch.sub(log_p, ratio, out=p).exp_()
                kl[rows] = -dot(q, ratio)
                gradient = torch.exp(log_p, out=ratio).sub_(q)
            else:
                torch.exp(log_p, out=p)
                kl[rows] = dot(p, ratio)
                gradient = ratio.sub_(kl[rows, None]).mul_(p)
            if len(vjp):
                vjp[rows] = head.vjp(gradient.mul_(slope))
        ctx.save_for_backward(vjp)
        ctx.dtype = hidden.dtype
        return kl

    @staticmethod
    def backward(ctx, grad_kl):
        (vjp,) = ctx.saved_tensors
        return (grad_kl[:, None] * vjp).to(ctx.dtype), None, None
