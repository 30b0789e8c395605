"""KL estimators, baselines and the two SCoRe losses. Losses return sums; the caller divides, once, visibly.

Notation of the papers in short maths: `l` = log pi(y_t), `q` = log pi_ref(y_t), `d = q - l`. Everything is minimised.
"""

import torch

MAX_LOG_RATIO = 20.0  # exp(20) = 5e8: beyond it only overflow follows


def kl_per_token(
    kind: str, logp: torch.Tensor, ref_logp: torch.Tensor, exact: torch.Tensor | None = None
) -> torch.Tensor:
    """Penalty per token on samples of the policy, float32 (N,), in nats (Schulman 2020, joschu.net/blog/kl-approx).

    k3     exp(d) - 1 - d. As a value: an unbiased estimate of KL(policy || reference). As a loss: the gradient of
           KL(reference || policy), whose pull saturates where the policy has grown a token from almost nothing.
    k2     d^2 / 2. As a value slightly biased; as a loss exactly the gradient of KL(policy || reference), per state.
    k1_in_reward  -d, without gradient: the caller puts it into the reward (as a loss its mean gradient is zero).
    exact  KL(policy || reference) over the whole vocabulary, as computed by the head; value and gradient are exact.
    """
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


def length_weights(norm: str, lengths: torch.Tensor, max_new_tokens: int, all_lengths: torch.Tensor) -> torch.Tensor:
    """Weight of every token of a sample, (B,), so that a sum over samples and tokens becomes a mean over samples.

    sequence: 1/|y|. constant: 1/max_new_tokens, the only one whose gradient does not change with a constant added to
    the reward (Dr.GRPO, arXiv 2503.20783). token: every token of the step counts the same (DAPO, arXiv 2503.14476);
    `all_lengths` are those of all samples of the step, over all processes.
    """
    if norm == "sequence":
        return 1.0 / lengths.clamp(min=1)
    if norm == "constant":
        return torch.full_like(lengths, 1.0 / max_new_tokens, dtype=torch.float32)
    if norm == "token":
        return torch.full_like(lengths, 1.0, dtype=torch.float32) * len(all_lengths) / all_lengths.sum().clamp(min=1)
    raise ValueError(f"unknown length_norm '{norm}'")


def leave_one_out(rewards: torch.Tensor, scored: torch.Tensor | None = None) -> torch.Tensor:
    """Advantages r_i - mean of the others along the last dimension, any shape (..., K), K >= 2 (RLOO, 2402.14740).

    What is not `scored` (bool, same shape) is nobody's other, and gets 0; so does what is left alone.
    """
    if rewards.shape[-1] < 2:
        raise ValueError("leave_one_out needs at least two rewards in a group")
    scored = torch.ones_like(rewards, dtype=torch.bool) if scored is None else scored
    count = scored.sum(-1, keepdim=True)
    return _centred(rewards, scored) * (count / (count - 1).clamp(min=1))


def _centred(rewards: torch.Tensor, scored: torch.Tensor) -> torch.Tensor:
    """Rewards minus the mean of the scored ones, else 0.

    Exactly 0 where all are equal: Adam would turn the rounding of 0.1 into a full step.
    """
    first = scored.int().argmax(-1, keepdim=True)
    shifted = torch.where(scored, rewards - rewards.gather(-1, first), 0.0)
    mean = shifted.sum(-1, keepdim=True) / scored.sum(-1, keepdim=True).clamp(min=1)
    return torch.where(scored, shifted - mean, 0.0)


def score_advantages(
    stage: int,
    r1: torch.Tensor,
    r2: torch.Tensor,
    bonus: torch.Tensor,
    alpha: float,
    baseline: str,
    penalty1: torch.Tensor | float = 0.0,
    penalty2: torch.Tensor | float = 0.0,
    scored1: torch.Tensor | None = None,
    scored2: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Advantages of a tree: P prompts x K1 first attempts x K2 revisions. SCoRe, arXiv 2409.12917, eq. 3 and 4.

    r1 (P, K1), r2 and bonus (P, K1, K2); bonus = what `alpha` multiplies, r2 - r1 or its match part; penalties = the
    KL in the reward, shaped like the rewards; what is not `scored` (bool, like the rewards) gets 0 and is in no
    baseline. Returns A1 (P, K1) and A2 (P, K1, K2).

    Stage I pays attempt 2 alone. Stage II pays both, each by its own reward (gamma = 0), and credits the bonus to
    attempt 2 only: credited to attempt 1 it would pay for failing first. The baseline of attempt 2 is the mean over
    the other revisions of the same first attempt, which removes r1 from the bonus exactly.
    """
    reward1 = (r1 if stage == 2 else torch.zeros_like(r1)) - penalty1
    reward2 = r2 + (alpha * bonus if stage == 2 else 0.0) - penalty2
    scored1 = torch.ones_like(reward1, dtype=torch.bool) if scored1 is None else scored1
    scored2 = torch.ones_like(reward2, dtype=torch.bool) if scored2 is None else scored2
    if baseline == "none":
        return reward1 * scored1, reward2 * scored2
    if baseline == "batch":
        pairs = ((reward1, scored1), (reward2, scored2))
        return tuple(_centred(r.flatten(), scored.flatten()).view_as(r) for r, scored in pairs)
    if reward2.shape[-1] > 1:
        return leave_one_out(reward1, scored1), leave_one_out(reward2, scored2)
    return leave_one_out(reward1, scored1), leave_one_out(reward2[..., 0], scored2[..., 0])[..., None]


def score_loss(
    logp: torch.Tensor,
    kl: torch.Tensor,
    attempt: torch.Tensor,
    advantage: torch.Tensor,
    weight: torch.Tensor,
    beta: tuple[float, float],
) -> torch.Tensor:
    """Sum over tokens of weight * (-A logp + beta_attempt * KL): eq. 3 and 4 alike; the stage is in A and beta.

    All inputs are per token, (N,): `attempt` is 1 or 2, `advantage` and `weight` are those of the token's sample.
    `beta` = (KL weight of attempt 1, of attempt 2). No term couples two tokens: any split into micro-batches adds up.
    """
    betas = torch.where(attempt == 1, beta[0], beta[1])
    return (weight * (betas * kl - advantage * logp)).sum()


def adapted_beta(beta: float, measured: float, target: float, rate: float, max_error: float) -> float:
    """Next KL weight of a proportional controller (Ziegler et al. 2019, arXiv 1909.08593, section 2.2)."""
    error = min(max(measured / target - 1, -max_error), max_error)
    return beta * (1 + rate * error)
