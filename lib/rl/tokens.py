"""Log-probs, ratios and weights of single tokens, for the logs, from the forwards that training runs anyway."""

from typing import Any

import torch
from accelerate import Accelerator

from lib.rl.credit import Credit
from lib.rl.log_rows import LONGEST_TEXT
from lib.rl.losses import PolicyLoss, policy_loss
from lib.rl.step import TokenLogps
from lib.rl.tree import Answer
from lib.run.distributed import collect


def token_rows(
    which: str, credit: Credit, logps: TokenLogps, kind: PolicyLoss, tokenizer: Any, accelerator: Accelerator
) -> dict[int, dict[str, Any]]:
    """Returns `credit.notes()`, with the tokens of some answers; `which`: tracking.tokens.

    sizes    characters of each token; the end token has none
    logp     log-prob when it was sampled
    gap      log-prob by the policy that is trained, less `logp`: not there where no forward was needed
    ratio    log of new over old policy, in the last optimizer step of the batch, where there were several
    clipped  the numbers of the tokens that the clip kept from learning there
    weight   of each token in the loss; 0: it was masked, or had nothing to learn
    """
    notes = credit.notes()
    for number, answer in _chosen(which, credit, accelerator):
        if len(answer.text) > LONGEST_TEXT:
            continue
        places = slice(int(credit.start[number]), int(credit.start[number]) + len(answer.completion.ids))
        sampled, old, new = credit.sampled_logp[places], logps.old[places], logps.new[places]
        row = {"sizes": sizes_of(answer, tokenizer), "logp": _rounded(sampled, 3)}
        if credit.learned[number]:
            row["gap"], ratio = _rounded(old - sampled, 4), new - old
            row |= {"ratio": _rounded(ratio, 4)} if bool(ratio.any()) else {}
            one = torch.zeros_like(new, dtype=torch.long)
            stopped = policy_loss(kind, new, old, credit.advantage[number].expand_as(new), one)[1]
            clipped = stopped.nonzero()[:, 0].tolist()
            row |= {"clipped": clipped} if clipped else {}
        weight = float(credit.weight[number]) * credit.learned[number]
        notes[id(answer.completion)]["tokens"] = row | {"weight": float(f"{weight:.4g}")}
    return notes


def _chosen(which: str, credit: Credit, accelerator: Accelerator) -> list[tuple[int, Answer]]:
    """Returns the answers to tell of, with their numbers: with one_prompt, those with the step's largest advantage."""
    answers = [
        (number, answer, node.tree) for node in credit.nodes
        if which != "none" and not node.group.is_context
        and not node.group.prompt.hint  # whose texts are written elsewhere
        for number, answer in zip(node.numbers, node.group.answers, strict=True)
    ]  # fmt: skip
    if which == "one_prompt":
        sizes = credit.advantage.abs().tolist()
        best = max(answers, key=lambda entry: sizes[entry[0]], default=None)
        ranks = collect([-1.0 if best is None else sizes[best[0]]], accelerator)
        is_here = best is not None and ranks.index(max(ranks)) == accelerator.process_index
        answers = [entry for entry in answers if is_here and best and entry[2] == best[2]]
    return [(number, answer) for number, answer, _ in answers]


def _rounded(values: torch.Tensor, digits: int) -> list[float]:
    return [round(value, digits) + 0.0 for value in values.tolist()]  # no -0.0


def sizes_of(answer: Answer, tokenizer: Any) -> list[int]:
    """Returns the characters of each token of an answer; one of several tokens is the last one's."""
    ids = answer.completion.text_ids()
    pieces = tokenizer.batch_decode([[token] for token in ids], skip_special_tokens=False) if ids else []
    if "".join(pieces) != answer.text:
        pieces = _pieces(ids, tokenizer)
    return [*map(len, pieces), *[0] * (len(answer.completion.ids) - len(ids))]


def _pieces(ids: list[int], tokenizer: Any) -> list[str]:
    """Returns the text that each token adds, which may depend on the token before it."""
    pieces, begin, end = [], 0, 0  # of the tokens before this one whose text is whole
    for i in range(len(ids)):
        before = tokenizer.decode(ids[begin:end], skip_special_tokens=False)
        now = tokenizer.decode(ids[begin : i + 1], skip_special_tokens=False)
        if now.endswith("\ufffd") and i + 1 < len(ids):  # the first bytes of a character
            pieces.append("")
            continue
        pieces.append(now[len(before) :])
        begin, end = end, i + 1
    return pieces
