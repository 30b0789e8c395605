"""The KL between policy and teacher at each token from hidden states, exact or with a tail, without an [N, V] tensor.

With p = softmax(z) of the policy and a partition of the vocabulary into buckets of probability P under the policy and Q
under the teacher, r = log P - log Q of a token's bucket, and t_v = p_v exp(-r_v), the teacher's probability of the
bucket, shared out within it as the policy does:

    reverse   KL(policy || teacher) =  sum_v p_v r_v      d/dz_v = p_v (r_v - KL)
    forward   KL(teacher || policy) = -sum_v t_v r_v      d/dz_v = p_v - t_v

The reverse one teaches by what the policy might write: where p_v is next to nothing, so is its gradient, however sure
the teacher is of v. The forward one raises v there too (both in GKD, Agarwal et al. 2024, arXiv 2306.13649).

For a teacher in this process every token is a bucket of its own, and the KL is exact. A server tells its k most likely
tokens: these are buckets of their own, and the rest, the tail, is one. What is lost is the KL within the tail,

    KL(p || q) - KL = P_tail * KL(p given the tail || q given the tail),

forward Q_tail * KL(q given the tail || p given the tail), never negative. Reverse, it is at most P_tail * (the largest
log p_v - log q_v in the tail, minus r of the tail): nothing where the policy has left the tail, and small as soon as it
writes what its teacher might (tests/test_divergence.py). A tail that is less likely than LEAST to the teacher counts as
that likely.

As in lib/model/head.py the derivative by the hidden state is known in the forward pass and kept as [N, d].
"""

from dataclasses import dataclass, replace

import torch

from lib.model.head import Head, dot, log_softmax_

LEAST = 1e-6  # a teacher's probability of a tail, at least: 1 minus the others is known to 1e-7 in float32
FAINTEST = -100.0  # log-prob of a token, at least: servers write -inf as -9999, which no weight would bear


@dataclass(frozen=True)
class WholeTeacher:
    """A teacher's next-token distributions at N places: hidden states, and what makes logits of them."""

    hidden: torch.Tensor  # (N, d'), d' its own
    head: Head
    is_forward: bool = False  # the KL that is taken

    def log_ratio(self, rows: slice, log_p: torch.Tensor, out: torch.Tensor, spare: torch.Tensor) -> torch.Tensor:
        """Writes log p - log q at some of the places to `out`; all are (n, V)."""
        log_softmax_(self.head.logits(self.hidden[rows], out=out), spare)
        return torch.sub(log_p, out, out=out)


@dataclass(frozen=True)
class TopTeacher:
    """The k most likely next tokens of a teacher at N places; where fewer are known, ids are -1."""

    ids: torch.Tensor  # (N, k)
    logp: torch.Tensor  # (N, k), at temperature 1
    is_forward: bool = False  # the KL that is taken

    def log_ratio(self, rows: slice, log_p: torch.Tensor, out: torch.Tensor, spare: torch.Tensor) -> torch.Tensor:
        """Writes log P - log Q of each token's bucket at some of the places to `out`; all are (n, V)."""
        ids, log_q = self.ids[rows], self.logp[rows].float().clamp(min=FAINTEST)
        is_known = (ids >= 0) & (ids < log_p.shape[1])  # a teacher may have more rows of logits than there are tokens
        known = is_known.nonzero()[:, 0], ids[is_known]
        own = log_p.gather(1, torch.where(is_known, ids, 0))
        rest = spare.copy_(log_p).index_put_(known, log_p.new_tensor(-torch.inf))
        log_tail = rest.logsumexp(1, keepdim=True)  # (n, 1); 1 minus the others would not know a faint one
        in_tail = 1 - torch.where(is_known, log_q.exp(), 0.0).sum(1, keepdim=True)
        out.copy_((log_tail - in_tail.clamp(min=LEAST).log()).expand_as(out))
        out[known] = (own - log_q)[is_known]
        return out


AnyTeacher = WholeTeacher | TopTeacher


def teacher_kl(hidden: torch.Tensor, head: Head, teacher: AnyTeacher) -> torch.Tensor:
    """Returns the KL, reverse or forward, in nats at each place, float32 (N,), differentiable in `hidden` (N, d).

    Models of one family may have more rows of logits than tokens, and not equally many: those that only one of the two
    has are left out.
    """
    if isinstance(teacher, WholeTeacher):
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
            log_p, p, other = (each[: rows.stop - start] for each in work)
            logits, slope = head.logits_and_slope(hidden[rows], out=log_p)
            log_softmax_(logits, p)
            ratio = teacher.log_ratio(rows, log_p, out=other, spare=p)
            if teacher.is_forward:
                shared = torch.sub(log_p, ratio, out=p).exp_()
                kl[rows] = -dot(shared, ratio)
                gradient = torch.exp(log_p, out=ratio).sub_(shared)
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
