"""What sampler and policy said of single tokens: kept for the answers that `tracking.tokens` names, from the forwards
that training does anyway.
"""

from typing import Any

import torch
from accelerate import Accelerator

from lib.rl.batching import MicroBatch
from lib.rl.credit import Credit
from lib.rl.ledger import LONGEST_TEXT
from lib.rl.losses import Recipe, policy_loss
from lib.rl.tree import Answer
from lib.run.distributed import collect


class TokenNotes:
    """The tokens of a step's answers, noted as its micro-batches are learned."""

    def __init__(self, which: str, credit: Credit, recipe: Recipe, accelerator: Accelerator):
        """`which` is `tracking.tokens`. With one_prompt, the prompt is that of the largest advantage of the step."""
        self.credit, self._recipe = credit, recipe
        self._answers = [
            (number, answer, node) for node in credit.nodes
            if not node.group.is_context and not node.group.prompt.hint  # whose texts are written elsewhere
            for number, answer in zip(node.numbers, node.group.answers, strict=True)
        ]  # fmt: skip
        if which == "one_prompt":
            sizes = credit.advantage.abs().tolist()
            best = max(self._answers, key=lambda each: sizes[each[0]], default=None)
            ranks = collect([-1.0 if best is None else sizes[best[0]]], accelerator)
            is_here = ranks.index(max(ranks)) == accelerator.process_index
            self._answers = [each for each in self._answers if best and is_here and each[2].tree == best[2].tree]
        elif which == "none":
            self._answers = []
        self._logp = torch.full_like(credit.sampled_logp, torch.nan)  # before the step
        self._ratio = torch.zeros_like(credit.sampled_logp)  # log ratio in the newest optimizer step that read it
        self._stopped = torch.zeros_like(credit.sampled_logp, dtype=torch.bool)  # by the clip, there

    @torch.no_grad()
    def note(self, batch: MicroBatch, logp: torch.Tensor, old_logp: torch.Tensor | None = None) -> None:
        """Keeps what the policy says of a micro-batch's tokens, (N,); `old_logp` as in `lib.rl.losses.loss_of`."""
        if not self._answers:
            return
        places, old = self.credit.tokens_of(batch), logp if old_logp is None else old_logp
        advantage = self.credit.advantage[batch.answer]
        self._logp[places], self._ratio[places] = old, logp - old
        self._stopped[places] = policy_loss(self._recipe, logp, old, advantage, batch.answer)[1]

    def rows(self, tokenizer: Any) -> dict[int, dict[str, Any]]:
        """Returns what generations.jsonl keeps, by the `id()` of the answer.

        sizes    characters of each token; the end token has none
        logp     log-prob when it was sampled
        gap      log-prob by the policy that is trained, less `logp`: not there where no forward was needed
        ratio    log of new over old policy, in the last optimizer step of the batch, where there were several
        clipped  the numbers of the tokens that the clip kept from learning there
        weight   of each token in the loss; 0: it was masked, or had nothing to learn
        """
        credit, found = self.credit, {}
        for number, answer, _ in self._answers:
            if len(answer.text) > LONGEST_TEXT:
                continue
            places = slice(int(credit.start[number]), int(credit.start[number]) + len(answer.completion.ids))
            row = {"sizes": sizes_of(answer, tokenizer), "logp": _rounded(credit.sampled_logp[places], 3)}
            if credit.learned[number]:
                row["gap"] = _rounded(self._logp[places] - credit.sampled_logp[places], 4)
                row |= {"ratio": _rounded(self._ratio[places], 4)} if bool(self._ratio[places].any()) else {}
                stopped = self._stopped[places].nonzero()[:, 0].tolist()
                row |= {"clipped": stopped} if stopped else {}
            weight = float(credit.weight[number]) * credit.learned[number]
            found[id(answer)] = row | {"weight": float(f"{weight:.4g}")}
        return found


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
    """Returns what each token adds to the text, where it depends on the token before it."""
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
