"""The update of SCoRe as one would write it down: a forward per completion, log_softmax, autograd. Slow and plain."""

import torch


def per_token(policy, prompt, ids, temperature):
    """Log-probs of the ids under policy and reference, and the exact KL, (T,) each."""

    def log_p():
        logits = policy.model(input_ids=torch.tensor([prompt + ids])).logits[0, len(prompt) - 1 : -1]
        return (logits.float() / temperature).log_softmax(-1)

    with torch.no_grad(), policy.reference_mode():
        q = log_p()
    p, chosen = log_p(), torch.tensor(ids)[:, None]
    return p.gather(1, chosen)[:, 0], q.gather(1, chosen)[:, 0], (p.exp() * (p - q)).sum(-1)


def penalty(kind, logp, ref_logp, exact):
    """KL per token: the estimators of Schulman, and the KL itself."""
    d = ref_logp - logp
    return {"k3": d.exp() - 1 - d, "k2": 0.5 * d**2, "exact": exact, "k1_in_reward": 0 * d}[kind]


def update(policy, rollouts, credit, betas, kind, temperature):
    """Loss of a whole step, its gradient in the adapter, and the log-probs by (attempt, rollout).

    Attempt 1 is scored behind x, attempt 2 behind its own prompt, each in a text of its own; a first attempt that
    several revisions share counts once. Length weights and advantages are those of `credit`.
    """
    for parameter in policy.trainable:
        parameter.grad = None
    loss, logps = 0.0, {}
    for i, r in enumerate(rollouts):
        attempts = [(2, r.prompt2.ids, r.y2.ids, credit.advantage2[i], credit.weight2[i])]
        if r.revision == 0 and not r.y1_by_base:
            attempts.append((1, r.prompt1, r.y1.ids, credit.advantage1[i], credit.weight1[i]))
        for attempt, prompt, ids, advantage, weight in attempts:
            logp, ref_logp, exact = per_token(policy, prompt, ids, temperature)
            kl = penalty(kind, logp, ref_logp, exact)
            loss = loss + weight * (betas[attempt - 1] * kl - advantage * logp).sum() / len(rollouts)
            logps[attempt, i] = logp.detach()
    loss.backward()
    return loss.item(), torch.cat([parameter.grad.flatten().clone() for parameter in policy.trainable]), logps


def log_probs(hidden, head):
    """Log-probs (N, V) of hidden states (N, d) under a head, in the open."""
    logits = hidden @ head.weight.T * head.scale
    if head.bias is not None:
        logits = logits + head.bias * head.scale
    if head.softcap is not None:
        logits = head.softcap * torch.tanh(logits / head.softcap)
    return (logits / head.temperature).log_softmax(-1)
