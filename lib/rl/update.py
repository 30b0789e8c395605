"""The loss of a micro-batch, a pure function of policy, tokens and credit; and the numbers that a step tells of it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from accelerate import Accelerator

from lib.core.clock import phase
from lib.core.config import SamplerCorrection
from lib.model.policy import Policy
from lib.rl.batching import MicroBatch
from lib.rl.credit import Credit
from lib.rl.distill import Distiller
from lib.rl.losses import Recipe, clipped_kl, kl_per_token, per_answer, policy_loss, sampler_weights
from lib.rl.tree import Node
from lib.run.distributed import collect, total

SUMS = (
    "loss", "entropy", "sampler_gap", "sampled", "clipped_low", "clipped_high", "tokens",
    "distill_kl", "distill_clipped", "taught",
)  # then KL by turn  # fmt: skip


@dataclass(frozen=True)
class Objective:
    """What is minimised."""

    recipe: Recipe
    kl: str  # the estimator, see `kl_per_token`
    turns: tuple[str, ...] = ("",)  # of a path in the tree, by name
    reads_reference: bool = True  # computes the KL, even where it has no weight in the loss
    correction: SamplerCorrection | None = None  # for tokens that another engine sampled


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
            "sampler_gap": (summed["sampler_gap"], summed["sampled"]),
            "distill_kl": (summed["distill_kl"], summed["taught"]),
            "distill_clipped": (summed["distill_clipped"], summed["taught"]),
        }
        if objective.recipe.ratio != "none":
            means |= {name: (summed[name], summed["tokens"]) for name in ("clipped_low", "clipped_high")}
        for i, turn in enumerate(objective.turns):
            means[f"kl_{turn}" if turn else "kl"] = by_turn[2 * i], by_turn[2 * i + 1]
        row = {"loss": summed["loss"] / divisor, **{name: own / of for name, (own, of) in means.items() if of}}
        return row | {"log_ratios": collect(list(self.log_ratios), accelerator)}


def loss_of(
    policy: Policy, batch: MicroBatch, credit: Credit, objective: Objective, old_logp: torch.Tensor | None = None,
    forward: torch.nn.Module | None = None, distiller: Distiller | None = None,
) -> tuple[torch.Tensor, Numbers, torch.Tensor]:  # fmt: skip
    """Returns the loss of a micro-batch, a sum over its N tokens; numbers for the log; and log-probs, detached (N,).

    The loss is weight * (policy loss + KL weight * KL), token by token: eq. 3 and 4 of SCoRe (arXiv 2409.12917), eq. 5
    of GSPO (arXiv 2507.18071); with a `distiller`, plus teacher weight * KL to its teacher. `old_logp` (N,) are the
    log-probs before the first optimizer step on these answers, None in that step. `forward`: the policy wrapped for
    several processes.
    """
    recipe, answer, kl = objective.recipe, batch.answer, 0.0
    ref_logp = ref_hidden = None
    if objective.reads_reference:
        with phase("reference"):
            ref_logp, ref_hidden = policy.reference(batch.inputs)
    places = credit.tokens_of(batch)
    teacher = distiller.says(batch, places) if distiller else None
    needed = ref_hidden if objective.kl == "exact" else None
    logp, entropy, exact, teacher_kl = (forward or policy)(batch.inputs, needed, teacher)
    old = logp.detach() if old_logp is None else old_logp
    advantage, sampled = credit.advantage[answer], credit.sampled_logp[places]
    values, stopped = policy_loss(recipe, logp, old, advantage, answer)
    values = values * _corrections(objective.correction, old, sampled, credit.off_policy[answer], answer)
    if ref_logp is not None:
        kl = kl_per_token(objective.kl, logp, ref_logp, exact, old)
    loss = (credit.weight[answer] * (values + credit.kl_weight[answer] * kl)).sum()
    taught = None
    if teacher_kl is not None:
        limited, is_limited = clipped_kl(teacher_kl, distiller.settings.clip)
        loss = loss + (credit.weight * credit.teacher_weight)[answer].mul(limited).sum()
        taught = teacher_kl.detach(), is_limited
    with torch.no_grad():
        shown = None if ref_logp is None else kl if exact is not None else kl_per_token("k3", logp, ref_logp, None, old)
        numbers = _numbers(batch, credit, objective, loss, entropy, shown, logp - old, old - sampled, stopped, taught)
    return loss, numbers, logp.detach()


def _numbers(
    batch: MicroBatch, credit: Credit, objective: Objective, loss: torch.Tensor, entropy: torch.Tensor,
    kl: torch.Tensor | None, log_ratio: torch.Tensor, gap: torch.Tensor, stopped: torch.Tensor,
    taught: tuple[torch.Tensor, torch.Tensor] | None,
) -> Numbers:  # fmt: skip
    """Returns the sums of a micro-batch; all but `loss` are by token, (N,); `taught`: KL to a teacher, if clipped."""
    answer = batch.answer
    importance, turn, ours = credit.importance[answer], credit.turn[answer], ~credit.off_policy[answer]
    above = (credit.advantage[answer] > 0) | (objective.recipe.ratio == "weight")  # a weight is clipped only from above
    sums = [
        loss, (entropy * importance).sum(), (gap.abs() * importance)[ours].sum(), importance[ours].sum(),
        (stopped & ~above).sum(), (stopped & above).sum(), importance.sum(),
    ]  # fmt: skip
    by_teacher = importance * (credit.teacher_weight[answer] != 0)
    sums += [*((by_teacher * each).sum() for each in taught or (0 * gap, 0 * gap)), by_teacher.sum()]
    for number in range(1, len(objective.turns) + 1):
        own = turn == number
        of = importance[own]
        sums += [0 * of.sum() if kl is None else (importance * kl)[own].sum(), of.sum()]
    ratios: list[float] = []
    if objective.recipe.ratio != "none":
        _, index = answer.unique(return_inverse=True)
        ratios = (per_answer(log_ratio, index) / index.bincount()).tolist()
    return Numbers(torch.stack([each.detach().float() for each in sums]), tuple(ratios))


@torch.no_grad()
def kl_in_reward(
    policy: Policy, found: list[Node], kl_weights: tuple[float, ...],
    batches: Callable[[list[Node], Callable[[int], bool]], Iterable[MicroBatch]],
) -> list[float]:  # fmt: skip
    """Returns beta * sum of k1 over each answer's tokens, by number, in nats (Ahmadian et al. 2024, 2402.14740).

    A sum, not a mean: the loss applies the length weight once, as it does to a KL term of its own. `kl_weights` are by
    turn; `batches`: those of the answers that are told to it.
    """
    sums = torch.zeros(found[-1].numbers.stop, device=policy.device)
    by_policy = {number for node in found if not node.group.is_context for number in node.numbers}
    for batch in batches(found, by_policy.__contains__):
        with phase("reference"):
            ref_logp, _ = policy.reference(batch.inputs)
            logp = policy(batch.inputs)[0]
        sums.index_add_(0, batch.answer, kl_per_token("k1_in_reward", logp, ref_logp))
    betas = [kl_weights[node.turn - 1] for node in found for _ in node.numbers]
    return [beta * value for beta, value in zip(betas, sums.tolist(), strict=True)]


def _corrections(
    correction: SamplerCorrection | None, old: torch.Tensor, sampled: torch.Tensor, off_policy: torch.Tensor,
    answer: torch.Tensor,
) -> torch.Tensor | float:  # fmt: skip
    """Returns importance weights of tokens sampled by another engine or under another prompt; 1 for the rest."""
    if correction is None and not off_policy.any():
        return 1.0
    settings = correction or SamplerCorrection()
    weights = sampler_weights(settings.level, settings.beyond, settings.cap, old, sampled, answer)
    return weights if correction else torch.where(off_policy, weights, 1.0)
