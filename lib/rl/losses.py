"""The loss of a micro-batch, a pure function of policy, tokens and credit, and its parts: KL estimators, the losses of
SCoRe, of GSPO and its relatives. Losses return sums; the caller divides, once.

Notation of the papers in short maths: `l` = log pi(y_t), `q` = log pi_ref(y_t), `d = q - l`, `o` = log pi_old(y_t) of
the policy that the rollouts are from, `m` = log mu(y_t) of the engine that sampled them. Everything is minimised.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from accelerate import Accelerator

from lib.core.clock import phase
from lib.core.config import SamplerCorrection
from lib.model.policy import Policy
from lib.rl.batching import MicroBatch
from lib.rl.credit import Credit, sum_by
from lib.rl.distill import Distiller
from lib.rl.tree import Node
from lib.run.distributed import collect, total

MAX_LOG_RATIO = 20.0  # exp(20) = 5e8; anything beyond would only overflow
SUMS = (
    "loss", "entropy", "sampler_gap", "clipped_low", "clipped_high", "tokens", "distill_kl", "by_teacher",
)  # then KL by turn  # fmt: skip


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
    k1_in_reward  -d, without gradient: the caller subtracts beta times its sum over a text from the text's advantage.
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


@dataclass(frozen=True)
class PolicyLoss:
    """The definition of a named policy loss; the config may override all but the ratio."""

    ratio: Literal["none", "token", "sequence", "sequence_token", "product", "weight"]  # see `policy_loss`
    clip: tuple[float, float]
    advantage: str
    length_norm: str

    def but(self, **changes: Any) -> "PolicyLoss":
        """Returns the loss with those of `changes` that are not None."""
        return replace(self, **{name: value for name, value in changes.items() if value is not None})


POLICY_LOSSES = {
    "gspo": PolicyLoss("sequence", (3e-4, 4e-4), "group_std", "sequence"),  # arXiv 2507.18071
    "gspo_token": PolicyLoss("sequence_token", (3e-4, 4e-4), "group_std", "sequence"),  # the same paper
    "grpo": PolicyLoss("token", (0.2, 0.2), "group_std", "sequence"),  # arXiv 2402.03300, eq. 3
    "dr_grpo": PolicyLoss("token", (0.2, 0.2), "group", "constant"),  # arXiv 2503.20783
    "dapo": PolicyLoss("token", (0.2, 0.28), "group_std", "token"),  # arXiv 2503.14476, eq. 8
    "cispo": PolicyLoss("weight", (1.0, 4.0), "group_std", "token"),  # arXiv 2506.13585; no lower clip
    "rloo": PolicyLoss("product", (0.2, 0.2), "leave_one_out", "sequence"),  # arXiv 2402.14740: one action per answer
    "score": PolicyLoss("none", (0.0, 0.0), "leave_one_out", "sequence"),  # arXiv 2409.12917, eq. 3 and 4: REINFORCE
}


def policy_loss(
    kind: PolicyLoss, logp: torch.Tensor, old_logp: torch.Tensor, advantage: torch.Tensor, answer: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns -min(ratio A, clip(ratio) A) of each token, (N,), and which tokens the clip stopped, bool (N,).

    All inputs are per token, (N,): `advantage` is that of the token's answer, and `answer` numbers the answers from 0;
    all tokens of an answer must be among the N. The loss's `ratio`:

    none            -A l, without a ratio: REINFORCE, for one optimizer step on a batch
    token           exp(l - o)
    sequence        s = exp(mean over the answer of l - o), the same for all of its tokens
    sequence_token  sg[s] exp(l - sg[l]): value, gradient and clip of `sequence`, but A may differ from token to token
    product         exp(sum over the answer of l - o): the answer is one action
    weight          sg[clip(exp(l - o))] in front of log pi: clipped tokens keep their gradient, and count as stopped

    With l = o every ratio is 1 and nothing is clipped: `sequence`, `sequence_token` and `token` have the same gradient.
    """
    if kind.ratio == "none":
        return -advantage * logp, torch.zeros_like(logp, dtype=torch.bool)
    low, high = kind.clip
    log_ratio = logp - old_logp
    if kind.ratio == "product":
        log_ratio = sum_by(log_ratio, answer)[answer]
    elif kind.ratio in ("sequence", "sequence_token"):
        log_ratio = (sum_by(log_ratio, answer) / torch.bincount(answer).clamp(min=1))[answer]
    ratio = log_ratio.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
    stopped = ((advantage > 0) & (ratio > 1 + high)) | ((advantage < 0) & (ratio < 1 - low))
    if kind.ratio == "weight":
        return -ratio.clamp(1 - low, 1 + high).detach() * advantage * logp, (ratio > 1 + high) | (ratio < 1 - low)
    if kind.ratio == "sequence_token":
        ratio = ratio.detach() * (logp - logp.detach()).exp()
    clipped = ratio.clamp(1 - low, 1 + high)
    return -torch.minimum(ratio * advantage, clipped * advantage), stopped.detach()


def sampler_weights(
    level: str, cap: float, old_logp: torch.Tensor, sampled_logp: torch.Tensor, answer: torch.Tensor
) -> torch.Tensor:
    """Returns importance weights pi_old / mu of tokens (N,) that another engine sampled, without gradient.

    `level: sequence` is the product over an answer. It is unbiased for answers to a prompt that no policy wrote. For an
    answer that follows others of the policy it is not, since the other engine sampled these too: the product over the
    whole path would be, at the price of a forward pass of what has no gradient, and for a recipe that pays an answer by
    what follows it, over that as well. `token` is biased. Weights above `cap` are truncated to it (truncated importance
    sampling), which adds a bias.
    """
    log_weight = (old_logp - sampled_logp).detach()
    if level == "sequence":
        log_weight = sum_by(log_weight, answer)[answer]
    return log_weight.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp().clamp(max=cap)


@dataclass(frozen=True)
class Objective:
    """The objective: a policy loss, and a KL penalty."""

    kind: PolicyLoss
    kl: str  # the estimator, see `kl_per_token`
    turns: tuple[str, ...] = ("",)  # of a path in the tree, by name
    reads_reference: bool = True  # computes the KL, even where it has no weight in the loss
    correction: SamplerCorrection | None = None  # for tokens that another engine sampled
    distiller: Distiller | None = None  # adds teacher weight * KL to its teacher


@dataclass
class Numbers:
    """Sums over the tokens of micro-batches, and the mean log ratio of each of their answers."""

    sums: torch.Tensor | float = 0.0  # (len(SUMS) + 2 * turns,)
    log_ratios: tuple[float, ...] = ()

    def __iadd__(self, other: "Numbers") -> "Numbers":
        return Numbers(self.sums + other.sums, self.log_ratios + other.log_ratios)

    def means(self, objective: Objective, divisor: float, accelerator: Accelerator) -> dict:
        """Returns the numbers of an optimizer step over all processes; a mean over no token is left out."""
        size = len(SUMS) + 2 * len(objective.turns)
        sums = self.sums if isinstance(self.sums, torch.Tensor) else torch.zeros(size, device=accelerator.device)
        values = total(sums, accelerator).tolist()
        summed, by_turn = dict(zip(SUMS, values, strict=False)), values[len(SUMS) :]
        means = {
            "entropy": (summed["entropy"], summed["tokens"]),
            "sampler_gap": (summed["sampler_gap"], summed["tokens"]),
            "distill_kl": (summed["distill_kl"], summed["by_teacher"]),
        }
        if objective.kind.ratio != "none":
            means |= {name: (summed[name], summed["tokens"]) for name in ("clipped_low", "clipped_high")}
        for i, turn in enumerate(objective.turns):
            means[f"kl_{turn}" if turn else "kl"] = by_turn[2 * i], by_turn[2 * i + 1]
        row = {"loss": summed["loss"] / divisor, **{name: value / of for name, (value, of) in means.items() if of}}
        return row | {"log_ratios": collect(list(self.log_ratios), accelerator)}


def loss_of(
    policy: Policy, batch: MicroBatch, credit: Credit, objective: Objective, old_logp: torch.Tensor | None = None,
    forward: torch.nn.Module | None = None,
) -> tuple[torch.Tensor, Numbers, torch.Tensor]:  # fmt: skip
    """Returns the loss of a micro-batch, a sum over its N tokens; numbers for the log; and log-probs, detached (N,).

    The loss is weight * (policy loss + KL weight * KL), token by token: eq. 3 and 4 of SCoRe (arXiv 2409.12917), eq. 5
    of GSPO (arXiv 2507.18071); with a distiller, plus teacher weight * KL to its teacher. `old_logp` (N,) are the
    log-probs before the first optimizer step on these answers, None in that step. `forward`: the policy wrapped for
    several processes.
    """
    kind, answer, kl = objective.kind, batch.answer, 0.0
    ref_logp = ref_hidden = None
    if objective.reads_reference:
        with phase("reference"):
            ref_logp, ref_hidden = policy.reference(batch.inputs)
    places = credit.tokens_of(batch)
    teacher = objective.distiller.says(batch) if objective.distiller else None
    needed = ref_hidden if objective.kl == "exact" else None
    logp, entropy, exact, teacher_kl = (forward or policy)(batch.inputs, needed, teacher)
    old = logp.detach() if old_logp is None else old_logp
    advantage, sampled = credit.advantage[answer], credit.sampled_logp[places]
    values, stopped = policy_loss(kind, logp, old, advantage, answer)
    if values.shape != logp.shape:  # would be broadcast, and trained as another loss
        raise ValueError(f"ratio '{kind.ratio}': got {[*values.shape]}, expected one value per token, {[*logp.shape]}")
    if settings := objective.correction:
        values = values * sampler_weights(settings.level, settings.cap, old, sampled, answer)
    if ref_logp is not None:
        kl = kl_per_token(objective.kl, logp, ref_logp, exact, old)
    loss = (credit.weight[answer] * (values + credit.kl_weight[answer] * kl)).sum()
    if teacher_kl is not None:
        loss = loss + (credit.weight * credit.teacher_weight)[answer].mul(teacher_kl).sum()
    with torch.no_grad():
        logged_kl = None if ref_logp is None else kl
        if ref_logp is not None and objective.kl != "exact":  # k3, so that alarms read one scale
            logged_kl = kl_per_token("k3", logp, ref_logp, None, old)
        numbers = _numbers(
            batch, credit, objective, loss, entropy, logged_kl, logp - old, old - sampled, stopped, teacher_kl
        )
    return loss, numbers, logp.detach()


def _numbers(
    batch: MicroBatch, credit: Credit, objective: Objective, loss: torch.Tensor, entropy: torch.Tensor,
    kl: torch.Tensor | None, log_ratio: torch.Tensor, gap: torch.Tensor, stopped: torch.Tensor,
    teacher_kl: torch.Tensor | None,
) -> Numbers:  # fmt: skip
    """Returns the sums of a micro-batch; all but `loss` are by token, (N,)."""
    answer = batch.answer
    importance, turn = credit.importance[answer], credit.turn[answer]
    above = log_ratio > 0 if objective.kind.ratio == "weight" else credit.advantage[answer] > 0
    sums = [
        loss, (entropy * importance).sum(), (gap.abs() * importance).sum(), (stopped & ~above).sum(),
        (stopped & above).sum(), importance.sum(),
    ]  # fmt: skip
    by_teacher = importance * (credit.teacher_weight[answer] != 0)
    sums += [0 * gap.sum() if teacher_kl is None else (by_teacher * teacher_kl).sum(), by_teacher.sum()]
    measured = importance * (0 if kl is None else kl), importance * (kl is not None)  # without a reference, no mean
    for number in range(1, len(objective.turns) + 1):
        sums += [values[turn == number].sum() for values in measured]
    ratios: list[float] = []
    if objective.kind.ratio != "none":
        _, index = answer.unique(return_inverse=True)
        ratios = (sum_by(log_ratio, index) / index.bincount()).tolist()
    return Numbers(torch.stack([total.detach().float() for total in sums]), tuple(ratios))


@torch.no_grad()
def kl_in_reward(
    policy: Policy, step_nodes: list[Node], kl_weights: tuple[float, ...],
    batches: Callable[[list[Node], Callable[[int], bool]], Iterable[MicroBatch]],
) -> list[float]:  # fmt: skip
    """Returns beta * sum of k1 over each answer's tokens, by number, in nats (Ahmadian et al. 2024, 2402.14740).

    A sum, not a mean: the loss applies the length weight once, as it does to a KL term of its own. `kl_weights` are by
    turn; `batches(nodes, is_wanted)` yields the micro-batches of the answers for which `is_wanted(number)` is true.
    """
    sums = torch.zeros(step_nodes[-1].numbers.stop, device=policy.device)
    by_policy = {number for node in step_nodes if not node.group.is_context for number in node.numbers}
    for batch in batches(step_nodes, by_policy.__contains__):
        with phase("reference"):
            ref_logp, _ = policy.reference(batch.inputs)
            logp = policy(batch.inputs)[0]
        sums.index_add_(0, batch.answer, kl_per_token("k1_in_reward", logp, ref_logp))
    betas = [kl_weights[node.turn - 1] for node in step_nodes for _ in node.numbers]
    return [beta * value for beta, value in zip(betas, sums.tolist(), strict=True)]
