"""Sampling in this process, from the very model that is trained: a plain decode loop over its key-value cache.

Works with any causal language model of transformers and with Unsloth's. Masks and positions are explicit, and a row
ends at the first id of `stop_ids`, whatever the pad id is.
"""

import torch
from torch import nn

from lib.generators import Completion


def generate(
    model: nn.Module,
    prompts: list[list[int]],
    max_new_tokens: int,
    temperature: float,
    stop_ids: frozenset[int],
    pad_id: int,
    generator: torch.Generator,
    batch_size: int,
) -> list[Completion]:
    """One completion per prompt, in order. `temperature` 0 is greedy; log-probs are then those of temperature 1.

    Prompts of similar length are decoded together, so that padding stays small.
    """
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    result: list[Completion | None] = [None] * len(prompts)
    for start in range(0, len(order), batch_size):
        batch = order[start : start + batch_size]
        rows = _decode([prompts[i] for i in batch], model, max_new_tokens, temperature, stop_ids, pad_id, generator)
        for i, completion in zip(batch, rows, strict=True):
            result[i] = completion
    return result


@torch.no_grad()
def _decode(
    prompts: list[list[int]],
    model: nn.Module,
    max_new_tokens: int,
    temperature: float,
    stop_ids: frozenset[int],
    pad_id: int,
    generator: torch.Generator,
) -> list[Completion]:
    device = next(model.parameters()).device
    stops = torch.tensor(sorted(stop_ids), device=device)
    ids, mask = left_padded(prompts, pad_id, device)  # (B, T)
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    rows = torch.arange(len(prompts), device=device)  # which prompt each live row belongs to
    sampled = torch.full((len(prompts), max_new_tokens), pad_id, device=device)
    logps = torch.zeros(len(prompts), max_new_tokens, device=device)
    lengths = torch.full((len(prompts),), max_new_tokens, device=device)
    finished = torch.zeros(len(prompts), dtype=torch.bool, device=device)
    live = torch.ones(len(prompts), dtype=torch.bool, device=device)
    cache = None
    for step in range(max_new_tokens):
        output = model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        cache = output.past_key_values
        tokens, chosen_logps = _choose(output.logits[:, -1].float(), temperature, generator)
        sampled[rows[live], step] = tokens[live]
        logps[rows[live], step] = chosen_logps[live]
        ended = live & torch.isin(tokens, stops)
        lengths[rows[ended]] = step + 1
        finished[rows[ended]] = True
        live = live & ~ended
        left = int(live.sum())
        if left == 0:
            break
        if left <= len(rows) // 2 and hasattr(cache, "batch_select_indices"):  # finished rows leave the batch
            keep = live.nonzero()[:, 0]
            cache.batch_select_indices(keep)
            rows, mask, tokens, positions, live = rows[keep], mask[keep], tokens[keep], positions[keep], live[keep]
        ids = tokens[:, None]
        mask = torch.cat([mask, mask.new_ones(len(rows), 1)], dim=1)
        positions = positions[:, -1:] + 1
    return [
        Completion(ids=sampled[i, :length].tolist(), logps=logps[i, :length].tolist(), finished=bool(finished[i]))
        for i, length in enumerate(lengths.tolist())
    ]


def _choose(logits: torch.Tensor, temperature: float, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Next tokens and their log-probs, each (B,), from float32 logits (B, V)."""
    log_p = torch.log_softmax(logits / (temperature or 1.0), dim=-1)
    if temperature == 0:
        tokens = log_p.argmax(-1)
    else:
        tokens = torch.multinomial(log_p.exp(), 1, generator=generator)[:, 0]
    return tokens, log_p.gather(1, tokens[:, None])[:, 0]


def left_padded(rows: list[list[int]], pad_id: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and mask, both (B, T), with the padding on the left, as decoding needs it."""
    width = max(len(row) for row in rows)
    ids = torch.tensor([[pad_id] * (width - len(row)) + row for row in rows], device=device)
    mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows], device=device)
    return ids, mask
