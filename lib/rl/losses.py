"""KL estimators, baselines, the SCoRe losses, GSPO and its relatives. Losses return sums; the caller divides, once.

Notation of the papers in short maths: `l` = log pi(y_t), `q` = log pi_ref(y_t), `d = q - l`, `o` = log pi_old(y_t) of
the policy that the rollouts are from, `m` = log mu(y_t) of the engine that sampled them. Everything is minimised.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

import torch

MAX_LOG_RATIO = 20.0  # exp(20) = 5e8; anything beyond would only overflow


def kl_per_token(
    kind: str,
    logp: torch.Tensor,
    ref_logp: torch.Tensor,
    exact: torch.Tensor | None = None,
    old_logp: torch.Tensor | None = None,
) -> torch.Tensor:
    """Returns the KL penalty of each token, float32 (N,), in nats (Schulman 2020, joschu.net/blog/kl-approx).

    For tokens that the policy sampled:

    k3     exp(d) - 1 - d. As a value: an unbiased estimate of KL(policy || reference). As a loss: the gradient of
           KL(reference || policy), which saturates on tokens that the policy makes far likelier than the reference.
    k2     d^2 / 2. As a value: slightly biased. As a loss: exactly the gradient of KL(policy || reference), per state.
    k1_in_reward  -d, without gradient: the caller subtracts beta times its sum over a text from the text's reward.
           The expected gradient is then that of k2 as a loss (as a loss, its own expected gradient is zero).
    exact  KL(policy || reference) over the whole vocabulary, as computed by the head; value and gradient are exact.

    If an earlier policy sampled the tokens, `old_logp` holds their log-probs under it. Then k3 and k2 are weighted by
    exp(l - o), token by token and without gradient, so that the expected value and gradient are those on samples of
    the policy. The weight is 1 in the first optimizer step on a batch. `exact` does not depend on the sampled token.
    """
    if old_logp is not None and kind in ("k3", "k2"):
        ratio = (logp.detach() - old_logp).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
        return ratio * kl_per_token(kind, logp, ref_logp)
    d = (ref_logp - logp).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
    if kind == "k3":
        return torch.expm1(d) - d  # expm1: exp(d) - 1 would be 0 for the small d of a first step
    if kind == "k2":
        return 0.5 * d * d
    if kind == "k1_in_reward":
        return -d.detach()
    if kind == "exact":
        return exact
    raise ValueError(f"unknown KL estimator '{kind}'")


def clipped_kl(kl: torch.Tensor, most: float | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the KL of tokens (N,), at most `most` nats each, and which were limited, bool (N,).

    Limited is the length of a token's gradient, not its direction: the gradient of min(KL, most) is zero just where
    policy and teacher differ most.
    """
    if most is None:
        return kl, torch.zeros_like(kl, dtype=torch.bool)
    size = kl.detach()
    return kl * (most / size.clamp(min=most)), size > most


def length_weights(norm: str, lengths: torch.Tensor, max_new_tokens: int, all_lengths: torch.Tensor) -> torch.Tensor:
    """Returns token weights per sample, (B,), that turn a sum over samples and tokens into a mean over samples.

    sequence: 1/|y|. constant: 1/max_new_tokens, the only one whose gradient does not change when a constant is added
    to the reward (Dr.GRPO, arXiv 2503.20783); two attempts must share this number, or their gradients are not those of
    the sum of their rewards. budget: 1 over the budget of this attempt. token: every token of the step counts the same
    (DAPO, arXiv 2503.14476); `all_lengths` holds the lengths of all samples of the step, over all processes, 0 for a
    sample that is not trained on.
    """
    if norm == "sequence":
        return 1.0 / lengths.clamp(min=1)
    if norm in ("constant", "budget"):
        return torch.full_like(lengths, 1.0 / max_new_tokens, dtype=torch.float32)
    if norm == "token":
        return torch.full_like(lengths, 1.0, dtype=torch.float32) * len(all_lengths) / all_lengths.sum().clamp(min=1)
    raise ValueError(f"unknown length_norm '{norm}'")


def leave_one_out(rewards: torch.Tensor, scored: torch.Tensor | None = None) -> torch.Tensor:
    """Returns advantages r_i - mean of the others along the last dimension, (..., K) with K >= 2 (RLOO, 2402.14740).

    Entries that are not `scored` (bool, same shape) get 0 and count in no mean. A single scored entry gets 0 too.
    """
    if rewards.shape[-1] < 2:
        raise ValueError("leave_one_out needs at least two rewards in a group")
    scored = torch.ones_like(rewards, dtype=torch.bool) if scored is None else scored
    count = scored.sum(-1, keepdim=True)
    return _centred(rewards, scored) * (count / (count - 1).clamp(min=1))


def against_others(penalty: torch.Tensor, scored: torch.Tensor) -> torch.Tensor:
    """Subtracts from a penalty (..., K) the mean of the others along the last dimension; nothing if K = 1.

    Without this baseline the gradient would be as strong but noisier; a mean that includes the entry would weaken it.
    """
    return leave_one_out(penalty, scored) if penalty.shape[-1] > 1 else torch.where(scored, penalty, 0.0)


def _centred(rewards: torch.Tensor, scored: torch.Tensor) -> torch.Tensor:
    """Subtracts the mean of the scored rewards along the last dimension; returns 0 for entries not scored.

    Exactly 0 if all are equal: Adam would turn the rounding error of 0.1 into a full step.
    """
    first = scored.int().argmax(-1, keepdim=True)
    shifted = torch.where(scored, rewards - rewards.gather(-1, first), 0.0)
    mean = shifted.sum(-1, keepdim=True) / scored.sum(-1, keepdim=True).clamp(min=1)
    return torch.where(scored, shifted - mean, 0.0)


STD_FLOOR = 1e-4  # added to a standard deviation, as in GRPO's implementations


def group_advantages(
    kind: str, rewards: torch.Tensor, scored: torch.Tensor, penalty: torch.Tensor | None = None
) -> torch.Tensor:
    """Returns advantages of G groups of K answers to one prompt each, (G, K); 0 for entries not `scored` (bool).

    group_std      (r - mean of the group) / its standard deviation (GRPO, arXiv 2402.03300). With large groups and
                   binary rewards this weights a prompt by 1 / sqrt(p (1 - p)); with K = 8 hardly (c = 1.7 to 2.4)
    group          r - mean of the group (Dr.GRPO, arXiv 2503.20783)
    batch_std      the same, divided by the standard deviation over all groups (arXiv 2508.08221)
    leave_one_out  r - mean of the others: K / (K - 1) of `group`, and unbiased (RLOO, arXiv 2402.14740)
    none           the reward itself

    Standard deviations use Bessel's correction. A group of equal rewards gets exactly 0. `penalty` (G, K), the KL in
    the reward, is subtracted afterwards: divided by the deviation of such a group, its noise would look like rewards.
    """
    if penalty is not None:
        off = penalty if kind == "none" else against_others(penalty, scored)
        return torch.where(scored, group_advantages(kind, rewards, scored) - off, 0.0)
    if kind == "none":
        return torch.where(scored, rewards, 0.0)
    if kind == "leave_one_out":
        return leave_one_out(rewards, scored)
    centred = _centred(rewards, scored)
    if kind == "group":
        return centred
    if kind == "group_std":
        count = scored.sum(-1, keepdim=True)
        return centred / (((centred**2).sum(-1, keepdim=True) / (count - 1).clamp(min=1)).sqrt() + STD_FLOOR)
    if kind == "batch_std":
        everything = rewards[scored]
        return centred / ((everything.std() if len(everything) > 1 else 0.0) + STD_FLOOR)
    raise ValueError(f"unknown advantage '{kind}'")


def overlong_penalty(length: int, budget: int, buffer: int) -> float:
    """Returns 0 up to `budget - buffer` tokens, falling linearly to -1 at `budget` (DAPO, arXiv 2503.14476, eq. 13)."""
    return min(0.0, max(-1.0, (budget - buffer - length) / buffer)) if buffer else 0.0


@dataclass(frozen=True)
class Recipe:
    """The definition of a named policy loss; the config may override all but the ratio."""

    ratio: Literal["none", "token", "sequence", "sequence_token", "product", "weight"]  # see `policy_loss`
    clip: tuple[float, float]
    advantage: str
    length_norm: str

    def but(self, **changes: Any) -> "Recipe":
        """Returns the recipe with those of `changes` that are not None."""
        return replace(self, **{name: value for name, value in changes.items() if value is not None})


RECIPES = {
    "gspo": Recipe("sequence", (3e-4, 4e-4), "group_std", "sequence"),  # arXiv 2507.18071
    "gspo_token": Recipe("sequence_token", (3e-4, 4e-4), "group_std", "sequence"),  # the same paper
    "grpo": Recipe("token", (0.2, 0.2), "group_std", "sequence"),  # arXiv 2402.03300, eq. 3
    "dr_grpo": Recipe("token", (0.2, 0.2), "group", "constant"),  # arXiv 2503.20783
    "dapo": Recipe("token", (0.2, 0.28), "group_std", "token"),  # arXiv 2503.14476, eq. 8
    "cispo": Recipe("weight", (1.0, 4.0), "group_std", "token"),  # arXiv 2506.13585; no lower clip
    "rloo": Recipe("product", (0.2, 0.2), "leave_one_out", "sequence"),  # arXiv 2402.14740: one action per answer
    "score": Recipe("none", (0.0, 0.0), "leave_one_out", "sequence"),  # arXiv 2409.12917, eq. 3 and 4: REINFORCE
}


def policy_loss(
    recipe: Recipe, logp: torch.Tensor, old_logp: torch.Tensor, advantage: torch.Tensor, answer: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns -min(ratio A, clip(ratio) A) of each token, (N,), and which tokens the clip stopped, bool (N,).

    All inputs are per token, (N,): `advantage` is that of the token's answer, and `answer` numbers the answers from 0;
    all tokens of an answer must be among the N. The recipe's `ratio`:

    none            -A l, without a ratio: REINFORCE, for one optimizer step on a batch
    token           exp(l - o)
    sequence        s = exp(mean over the answer of l - o), the same for all of its tokens
    sequence_token  sg[s] exp(l - sg[l]): value, gradient and clip of `sequence`, but A may differ from token to token
    product         exp(sum over the answer of l - o): the answer is one action
    weight          sg[clip(exp(l - o))] in front of log pi: clipped tokens keep their gradient

    With l = o every ratio is 1 and nothing is clipped: `sequence`, `sequence_token` and `token` have the same gradient.
    """
    if recipe.ratio == "none":
        return -advantage * logp, torch.zeros_like(logp, dtype=torch.bool)
    low, high = recipe.clip
    log_ratio = logp - old_logp
    if recipe.ratio == "product":
        log_ratio = per_answer(log_ratio, answer)[answer]
    elif recipe.ratio in ("sequence", "sequence_token"):
        log_ratio = (per_answer(log_ratio, answer) / torch.bincount(answer).clamp(min=1))[answer]
    ratio = log_ratio.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
    stopped = ((advantage > 0) & (ratio > 1 + high)) | ((advantage < 0) & (ratio < 1 - low))
    if recipe.ratio == "weight":
        return -ratio.clamp(1 - low, 1 + high).detach() * advantage * logp, ratio > 1 + high
    if recipe.ratio == "sequence_token":
        ratio = ratio.detach() * (logp - logp.detach()).exp()
    clipped = ratio.clamp(1 - low, 1 + high)
    return -torch.minimum(ratio * advantage, clipped * advantage), stopped.detach()


def per_answer(values: torch.Tensor, answer: torch.Tensor) -> torch.Tensor:
    """Sums token values (N,) by the number of their answer (N,)."""
    count = int(answer.max()) + 1 if len(answer) else 0
    return torch.zeros(count, dtype=values.dtype, device=values.device).index_add(0, answer, values)


def sampler_weights(
    level: str, beyond: str, cap: float, old_logp: torch.Tensor, sampled_logp: torch.Tensor, answer: torch.Tensor
) -> torch.Tensor:
    """Returns importance weights pi_old / mu of tokens (N,) that another engine sampled, without gradient.

    `level: sequence` is the product over an answer, and unbiased; `token` is biased. Weights above `cap` are truncated
    to it (truncated importance sampling), or, with `beyond: mask`, set to 0.
    """
    log_weight = (old_logp - sampled_logp).detach()
    if level == "sequence":
        log_weight = per_answer(log_weight, answer)[answer]
    weight = log_weight.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
    return weight.clamp(max=cap) if beyond == "truncate" else torch.where(weight > cap, 0.0, weight)


def adapted_beta(beta: float, measured: float, target: float, rate: float, max_error: float) -> float:
    """Returns the next KL weight of a proportional controller (Ziegler et al. 2019, arXiv 1909.08593, section 2.2)."""
    error = min(max(measured / target - 1, -max_error), max_error)
    return beta * (1 + rate * error)
