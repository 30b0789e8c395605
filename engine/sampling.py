"""Samples completions of token ids from a model and its adapters.

The seed and its path determine the random numbers of a completion: but for rounding, samples do not depend on which
rows were decoded together, in which order, or how many fitted. A row ends at the first id of `stop_ids`, whatever the
pad id is.

Two ways to decode give the same samples. `_Continuous` keeps all rows in one slab (engine/decoder.py): it reads each
distinct prompt once, continues a follow-up turn from the keys and values of its chat, and gives the places of finished
rows to waiting ones. `_by_batches` needs only a model's own forward and cache: for sliding windows, recurrent layers,
and Unsloth's models beyond the families of engine/llama.py (`SampledPolicy.supports_slab`). Where a model would read
padding, the prompts of a batch have one length.
"""

import contextlib
import dataclasses
import math
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby, repeat
from typing import Any

import numpy as np
import torch
from torch.nn.functional import pad

from engine.decoder import Decoder, affordable_rows
from engine.llama import Llama, StackedLlama
from engine.model import is_sharded
from engine.policy import SampledPolicy
from engine.turns import Completion, FollowUp, TreePath, Turn, nothing_follows

ARRANGE_SHARE = 0.25  # share of ended rows at which rows are compacted and waiting turns admitted
SMALL_VOCABULARY = 512  # up to this size one pass is quicker than two
BATCH_TOKENS = 65_536  # of a batch at full length, if the cache is the model's own and its size unknown


class NonFinite(ArithmeticError):
    """The model's numbers are infinite or not numbers."""


@dataclass(frozen=True)
class Decoding:
    """Settings: how tokens are chosen, and how many rows are decoded at once."""

    temperature: float  # 0 is greedy; log-probs are then those of temperature 1
    stop_ids: frozenset[int]
    pad_id: int
    rows: int  # completions decoded at once, at most; fewer where memory is short
    columns: int  # tokens of the longest conversation, its last completion included
    seed: int = 0


def generate(
    policy: SampledPolicy,
    turns: dict[TreePath, Turn],
    decoding: Decoding,
    follow_up: FollowUp = nothing_follows,
    phase: Callable[[str], contextlib.AbstractContextManager] = contextlib.nullcontext,
    check_interrupt: Callable[[], None] = lambda: None,
) -> dict[TreePath, Completion]:
    """Returns `copies` completions of each turn and of the turns that follow, by the turn's path and the copy's number.

    `follow_up(path, completion)` gives the next turn of a conversation as all its token ids, or None. What happens
    inside `phase("sync")` and `phase("generate")` may be timed; `check_interrupt()` is called before every token, and
    may raise. Where memory runs out, half as many rows are tried. Raises NonFinite if logits are not finite.
    """
    if not turns:
        return {}
    with contextlib.ExitStack() as stack:
        with phase("sync"):
            stack.enter_context(policy.generation_mode())
            forward = policy.llama and policy.llama.for_decoding(decoding.columns)  # before the rows, for its memory
        stack.enter_context(phase("generate"))
        if prefix := policy.prefix:
            turns, decoding, follow_up = _after_prefix(prefix, turns, decoding, follow_up)
        if not policy.supports_slab:
            return _by_batches(policy, turns, decoding, follow_up, check_interrupt)
        stack.enter_context(torch.autocast(policy.device.type, enabled=False))  # weights and states keep their dtype
        if forward:  # ours, which keeps no tensor; a model's own might, and train on it later
            stack.enter_context(torch.inference_mode())
        return _Continuous(policy, forward, decoding, follow_up, check_interrupt).run(turns)


def _halved(rows: int, policy: SampledPolicy) -> int:
    """Returns half of `rows`, which ran out of memory. Raises torch.OutOfMemoryError if they cannot be fewer."""
    if rows == 1 or is_sharded(policy.backbone):  # whose forwards the other processes wait for
        raise torch.OutOfMemoryError(f"no memory to sample {rows} completions at once")
    warnings.warn(f"out of memory while sampling {rows} completions at once: {rows // 2} are tried", stacklevel=2)
    return rows // 2


def _after_prefix(
    prefix: list[int], turns: dict[TreePath, Turn], decoding: Decoding, follow_up: FollowUp
) -> tuple[dict[TreePath, Turn], Decoding, FollowUp]:
    """Returns the arguments with the ids of a soft prompt before each conversation."""

    def after(turn: Turn) -> Turn:
        return dataclasses.replace(turn, ids=prefix + turn.ids)

    def next_turn(path: TreePath, completion: Completion) -> Turn | None:
        turn = follow_up(path, completion)
        return turn and after(turn)

    longer = dataclasses.replace(decoding, columns=decoding.columns + len(prefix))
    return {path: after(turn) for path, turn in turns.items()}, longer, next_turn


@dataclass
class _Waiting:
    """A turn with completions still to decode, and the row that holds the beginning of its conversation, if any."""

    path: TreePath
    turn: Turn
    next_copy: int = 0
    row: int | None = None
    cached: int = 0  # tokens of `turn.ids` that the row holds


@dataclass(frozen=True)
class _Member:
    """The completion that a row decodes: its path and its turn."""

    path: TreePath
    turn: Turn


@dataclass
class _Rows:
    """The tokens that rows 0 .. n-1 of the decoder have written; W is the largest budget of a turn."""

    ids: torch.Tensor  # (n, W)
    logps: torch.Tensor  # (n, W)
    uniforms: torch.Tensor  # (n, W), the number that each token is drawn with
    lengths: torch.Tensor  # (n,) tokens so far
    limits: torch.Tensor  # (n,)
    alive: torch.Tensor  # (n,) bool

    @classmethod
    def new(cls, members: list[_Member], width: int, decoding: Decoding, device: torch.device) -> "_Rows":
        """Returns rows that have written nothing yet."""
        count = len(members)
        limits = [member.turn.max_new_tokens for member in members]
        return cls(
            ids=torch.full((count, width), decoding.pad_id, device=device),
            logps=torch.zeros(count, width, device=device),
            uniforms=_uniforms(members, width, decoding).to(device),
            lengths=torch.zeros(count, dtype=torch.long, device=device),
            limits=torch.tensor(limits, dtype=torch.long, device=device),
            alive=torch.ones(count, dtype=torch.bool, device=device),
        )

    def arranged(self, kept: list[int], new: "_Rows") -> "_Rows":
        """Returns the rows `kept`, in that order, followed by the new ones."""
        index = torch.tensor(kept, dtype=torch.long, device=self.ids.device)
        wider = new.ids.shape[1] - self.ids.shape[1]
        parts = []
        for name in (part.name for part in dataclasses.fields(self)):
            old = getattr(self, name)[index]
            parts.append(torch.cat([pad(old, (0, wider)) if old.ndim == 2 else old, getattr(new, name)]))
        return _Rows(*parts)

    def write(
        self, rows: slice, tokens: torch.Tensor, logps: torch.Tensor, stops: torch.Tensor
    ) -> list[tuple[int, Completion]]:
        """Writes one more token to each of `rows`; returns those that end with it, and their completions.

        Tokens written to rows that ended earlier are never read. Raises NonFinite if a log-prob is not a number.
        """
        at = self.lengths[rows, None].clamp(max=self.ids.shape[1] - 1)
        self.ids[rows].scatter_(1, at, tokens[:, None])
        self.logps[rows].scatter_(1, at, logps[:, None])
        alive = self.alive[rows]
        self.lengths[rows] += alive
        stopped = alive & torch.isin(tokens, stops)
        ended = stopped | (alive & (self.lengths[rows] >= self.limits[rows]))
        alive &= ~ended
        # in one transfer, since a GPU is waited for: the tokens of rows that end, which of them stopped, and NaN
        state = torch.cat([self.lengths[rows] * ended, stopped, logps.isnan().any()[None]]).cpu().numpy()
        if state[-1]:
            raise NonFinite("the logits are not finite")
        counts, finished = state[:-1].reshape(2, -1)
        leaving = [(rows.start + i, counts[i], bool(finished[i])) for i in counts.nonzero()[0].tolist()]
        return [
            (row, Completion(self.ids[row, :count].tolist(), self.logps[row, :count].tolist(), is_finished))
            for row, count, is_finished in leaving
        ]

    def drawn(self, rows: slice) -> torch.Tensor:
        """Returns the uniform number for the next token of each of `rows`."""
        at = self.lengths[rows, None].clamp(max=self.ids.shape[1] - 1)
        return self.uniforms[rows].gather(1, at)[:, 0]


class _Continuous:
    """All conversations of one call, decoded in one slab until none is left."""

    def __init__(
        self, policy: SampledPolicy, forward: Llama | StackedLlama | None, decoding: Decoding, follow_up: FollowUp,
        check_interrupt: Callable[[], None],
    ):  # fmt: skip
        self.policy, self.forward, self.decoding = policy, forward, decoding
        self.follow_up, self.check_interrupt = follow_up, check_interrupt
        self.head = policy.head_at(decoding.temperature or 1.0)
        self.stops = torch.tensor(sorted(decoding.stop_ids), device=policy.device)
        self.done: dict[TreePath, Completion] = {}
        self.decoder: Any = None
        self.members: list[_Member | None] = []  # by row; None where it has ended

    @torch.no_grad()
    def run(self, turns: dict[TreePath, Turn]) -> dict[TreePath, Completion]:
        """Decodes all turns and those that follow; returns completions by path."""
        self.width = max(turn.max_new_tokens for turn in turns.values())
        self.waiting = deque(_Waiting(path, self._checked(turn)) for path, turn in turns.items())
        rows = min(self.decoding.rows, affordable_rows(self.policy.backbone, self.decoding.columns))
        with contextlib.suppress(torch.OutOfMemoryError):
            return self._decode(rows)
        return self._decode_anew(_halved(rows, self.policy))  # the error is gone, and the slab that it held with it

    def _decode(self, rows: int) -> dict[TreePath, Completion]:
        self.decoding = dataclasses.replace(self.decoding, rows=rows)
        self.decoder = Decoder(self.policy.backbone, rows, self.decoding.columns, self.forward)
        self.members = []
        self.rows = _Rows.new([], self.width, self.decoding, self.decoder.device)
        self.widest = 1  # columns at the next step
        while self.waiting or any(self.members):
            self.check_interrupt()
            if self.members.count(None) >= ARRANGE_SHARE * len(self.members):
                self._arrange()
            else:
                self._step()
        return self.done

    def _decode_anew(self, rows: int) -> dict[TreePath, Completion]:
        """Decodes all unfinished completions from their beginnings, in a new slab."""
        self.decoder = None  # nor its slab, before there is another
        waiting = [dataclasses.replace(turn, row=None, cached=0) for turn in self.waiting]
        for member in filter(None, self.members):
            (*path, copy), turn = member.path, dataclasses.replace(member.turn, copies=member.path[-1] + 1)
            waiting.append(_Waiting(tuple(path), turn, copy))
        self.waiting = deque(waiting)
        return self._decode(rows)

    def _step(self) -> None:
        """Decodes one more token in every row."""
        last = self.rows.ids.gather(1, (self.rows.lengths[:, None] - 1))[:, 0]
        hidden = self.decoder.step(last, self.rows.alive, self.widest)
        self.widest = min(self.widest + 1, self.decoding.columns)  # an upper bound: the widest row may have ended
        self._choose(slice(0, len(self.members)), hidden)

    def _choose(self, rows: slice, hidden: torch.Tensor) -> None:
        """Chooses the next token of `rows` from their hidden states (n, d), and releases rows that ended."""
        size = self.head.chunk
        uniforms = self.rows.drawn(rows).split(size) if self.decoding.temperature else repeat(None)
        parts = [choose(self.head.logits(part), draw) for part, draw in zip(hidden.split(size), uniforms, strict=False)]
        tokens, logps = (torch.cat(column) for column in zip(*parts, strict=True))
        for row, completion in self.rows.write(rows, tokens, logps, self.stops):
            self._release(row, completion)

    def _release(self, row: int, completion: Completion) -> None:
        """Stores a row's completion and queues its follow-up turn, which reuses the row's keys and values if it can."""
        member = self.members[row]
        with torch.inference_mode(False), torch.no_grad():  # what others compute may be kept, and trained on later
            turn = self.follow_up(member.path, completion)
        self.members[row] = None
        self.done[member.path] = completion
        if turn is None:
            return
        self.width = max(self.width, turn.max_new_tokens)
        fed = member.turn.ids + completion.ids[:-1]  # the last token was sampled, but never fed
        goes_on = len(turn.ids) > len(fed) and turn.ids[: len(fed)] == fed
        start = {"row": row, "cached": len(fed)} if goes_on else {}
        self.waiting.appendleft(_Waiting(member.path, self._checked(turn), **start))

    def _checked(self, turn: Turn) -> Turn:
        """Returns the turn. Raises ValueError if it might outgrow its row and write into another one."""
        if len(turn.ids) + turn.max_new_tokens > self.decoding.columns:
            raise ValueError(
                f"a prompt of {len(turn.ids)} tokens and up to {turn.max_new_tokens} new ones do not fit into "
                f"{self.decoding.columns} columns: ask for more columns"
            )
        return turn

    def _arrange(self) -> None:
        """Moves living rows to the front, and admits waiting turns: each is prefilled once, then its row is copied."""
        # the living come first, then each admitted turn once; what its row does not hold is fed; then the row is
        # copied for the other completions of that turn
        kept = _compact([member is not None for member in self.members])
        admitted, left = self._admit(self.decoding.rows - len(kept))
        begin = len(kept)
        self.decoder.arrange(kept + [waiting.row for waiting, _ in admitted])
        copies = [begin + i for i, (_, count) in enumerate(admitted) for _ in range(count)]
        if admitted:
            hidden = self.decoder.feed(begin, [waiting.turn.ids[waiting.cached :] for waiting, _ in admitted])
            self.decoder.arrange([*range(begin), *copies])
        new = [
            _Member((*waiting.path, waiting.next_copy + copy), waiting.turn)
            for waiting, count in admitted
            for copy in range(count)
        ]
        self.members, self.waiting = [self.members[row] for row in kept] + new, left
        self.rows = self.rows.arranged(kept, _Rows.new(new, self.width, self.decoding, self.decoder.device))
        self.widest = max(self.decoder.lengths[: len(self.members)].tolist(), default=0) + 1
        if new:
            index = torch.tensor(copies, device=hidden.device) - begin
            self._choose(slice(begin, len(self.members)), hidden[index])

    def _admit(self, free: int) -> tuple[list[tuple[_Waiting, int]], deque[_Waiting]]:
        """Returns the turns that fit now, longest prefill first, with their numbers of copies; and those that wait."""
        admitted = []
        left: deque[_Waiting] = deque()
        for waiting in self.waiting:
            count = min(waiting.turn.copies - waiting.next_copy, free)
            if count:
                admitted.append((waiting, count))
                free -= count
            if waiting.next_copy + count < waiting.turn.copies:
                # without `row`: `arrange` gives that place away, so the rest of the turn is read anew
                left.append(_Waiting(waiting.path, waiting.turn, waiting.next_copy + count))
        return sorted(admitted, key=lambda pair: pair[0].cached - len(pair[0].turn.ids)), left


def _compact(alive: list[bool]) -> list[int]:
    """Returns the row to put in each place, so that the living come first and as few of them as possible move."""
    count = sum(alive)
    movers = [row for row in range(count, len(alive)) if alive[row]]
    return [row if alive[row] else movers.pop() for row in range(count)]


@torch.no_grad()
def _by_batches(
    policy: SampledPolicy,
    turns: dict[TreePath, Turn],
    decoding: Decoding,
    follow_up: FollowUp,
    check_interrupt: Callable[[], None],
) -> dict[TreePath, Completion]:
    """Does the same by the model's own forward and cache, turn after turn: prefills the rows of each, left-padded."""
    done: dict[TreePath, Completion] = {}
    level = list(turns.items())
    while level:
        copies = [((*path, k), turn) for path, turn in level for k in range(turn.copies)]
        copies.sort(key=lambda pair: len(pair[1].ids))  # so that padding stays small
        level = []
        for batch in _batches(copies, min(decoding.rows, max(1, BATCH_TOKENS // decoding.columns)), policy):
            for (path, _), completion in zip(batch, _in_halves(policy, batch, decoding, check_interrupt), strict=True):
                done[path] = completion
                turn = follow_up(path, completion)
                if turn is not None:
                    level.append((path, turn))
    return done


def _batches(
    copies: list[tuple[TreePath, Turn]], rows: int, policy: SampledPolicy
) -> Iterator[list[tuple[TreePath, Turn]]]:
    """Yields up to `rows` turns at a time, in their order, and of one length if the policy takes no padding."""
    lengths = {len(turn.ids) for _, turn in copies}
    pads = len(lengths) == 1 or policy.supports_padding
    groups = [copies] if pads else [list(group) for _, group in groupby(copies, key=lambda pair: len(pair[1].ids))]
    for group in groups:
        for start in range(0, len(group), rows):
            yield group[start : start + rows]


def _in_halves(policy: SampledPolicy, batch: list[tuple[TreePath, Turn]], *settings: Any) -> list[Completion]:
    """Returns the result of `_decode`; if memory runs out, decodes half of the batch at a time."""
    with contextlib.suppress(torch.OutOfMemoryError):
        return _decode(policy, batch, *settings)
    half = _halved(len(batch), policy)
    return [*_decode(policy, batch[:half], *settings), *_decode(policy, batch[half:], *settings)]


def _decode(
    policy: SampledPolicy,
    batch: list[tuple[TreePath, Turn]],
    decoding: Decoding,
    check_interrupt: Callable[[], None],
) -> list[Completion]:
    """Returns one completion of each turn. Drops ended rows once they are half of all, if the cache can select rows."""
    device = policy.device
    stops = torch.tensor(sorted(decoding.stop_ids), device=device)
    ids, mask = left_padded([turn.ids for _, turn in batch], decoding.pad_id, device)  # (B, T)
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    width = max(turn.max_new_tokens for _, turn in batch)
    rows = _Rows.new([_Member(path, turn) for path, turn in batch], width, decoding, device)
    owners, done = list(range(len(batch))), {}
    cache: Any = None
    while True:
        check_interrupt()
        logits, cache = policy.next_logits(ids, positions, mask, cache, decoding.temperature or 1.0)
        all_rows = slice(0, len(owners))
        tokens, logps = choose(logits, rows.drawn(all_rows) if decoding.temperature else None)
        done |= {owners[row]: completion for row, completion in rows.write(all_rows, tokens, logps, stops)}
        if len(done) == len(batch):
            return [done[i] for i in range(len(batch))]
        kept = [row for row, owner in enumerate(owners) if owner not in done]
        if len(kept) <= len(owners) // 2 and _selects_rows(cache):
            index = torch.tensor(kept, device=device)
            cache.batch_select_indices(index)
            tokens, mask, positions = tokens[index], mask[index], positions[index]
            owners = [owners[row] for row in kept]
            rows = rows.arranged(kept, _Rows.new([], width, decoding, device))
        ids = tokens[:, None]
        mask = torch.cat([mask, mask.new_ones(len(owners), 1)], dim=1)
        positions = positions[:, -1:] + 1


def _selects_rows(cache: Any) -> bool:
    """True if rows can be selected from a model's cache.

    This is unsupported for states of recurrent layers, and for those that a model's own cache keeps next to its layers.
    """
    from transformers import Cache
    from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

    is_usual = isinstance(cache, Cache) and type(cache).batch_select_indices is Cache.batch_select_indices
    return is_usual and all(type(layer) in (DynamicLayer, DynamicSlidingWindowLayer) for layer in cache.layers)


def choose(logits: torch.Tensor, uniforms: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns tokens and their log-probs, (n,) each, from float32 logits (n, V) at the sampling temperature.

    Each is the token whose interval of the cumulative distribution holds its number of `uniforms` (n,), float64 in
    [0, 1); without them the most likely one. Sums are float64, or a long tail would be rounded away, of blocks where
    the vocabulary is large. Overwrites the logits. Where they are not finite, the log-prob is NaN.
    """
    p = logits.sub_(logits.amax(-1, keepdim=True)).exp_()  # unnormalised: to be divided by the sum of each row
    if p.shape[1] <= SMALL_VOCABULARY:
        edges = p.cumsum(-1, dtype=torch.double)
        tokens = _at(edges, uniforms * edges[:, -1]) if uniforms is not None else p.argmax(-1)
        total = edges[:, -1]
    else:
        tokens, total = _chosen_by_blocks(p, uniforms)
    return tokens, (p.gather(1, tokens[:, None])[:, 0].log() - total.log()).float()


def _chosen_by_blocks(p: torch.Tensor, uniforms: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns tokens and sums of p (n, V), (n,) each: finds the block of the vocabulary first, then the token in it."""
    count, size = p.shape
    block = math.isqrt(size)
    whole = size // block * block
    blocks = p[:, :whole].view(count, -1, block)
    # a block is short enough for float32, in which it is summed forty times as fast
    sums = torch.cat([blocks.sum(-1), p[:, whole:].sum(-1, keepdim=True)], 1).double()
    edges = sums.cumsum(-1)
    if uniforms is None:
        return p.argmax(-1), edges[:, -1]
    target = uniforms * edges[:, -1]
    chosen = _at(edges, target)[:, None]
    target -= (edges.gather(1, chosen) - sums.gather(1, chosen))[:, 0]
    columns = chosen * block + torch.arange(block, device=p.device)
    inside = p.gather(1, columns.clamp(max=size - 1)).double().masked_fill_(columns >= size, 0.0)
    within_edges = inside.cumsum(-1)  # whose last is the block's sum but for its rounding
    within = _at(within_edges, torch.minimum(target, within_edges[:, -1].nextafter(target.new_zeros(()))))
    return (chosen[:, 0] * block + within).clamp_(max=size - 1), edges[:, -1]


def _at(edges: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Returns the index (n,) of the interval between rising edges (n, m) that holds each number of target (n,)."""
    return torch.searchsorted(edges, target[:, None], right=True).clamp_(max=edges.shape[1] - 1)[:, 0]


def _uniforms(members: list[_Member], width: int, decoding: Decoding) -> torch.Tensor:
    """Draws float64 numbers in [0, 1), (len(members), width): equal for equal seed and path, otherwise independent.

    Each turn has a stream, of which each copy takes as many numbers as its budget.
    """
    numbers = np.zeros((len(members), width))
    copies: dict[TreePath, int] = {}
    for member in members if decoding.temperature else ():
        copies[member.path[:-1]] = max(copies.get(member.path[:-1], 0), member.path[-1] + 1)
    blocks: dict[TreePath, np.ndarray] = {}
    for row, member in enumerate(members if decoding.temperature else ()):
        turn, budget = member.path[:-1], member.turn.max_new_tokens
        if turn not in blocks:
            stream = np.random.default_rng(np.random.SeedSequence(decoding.seed, spawn_key=turn))
            blocks[turn] = stream.random((copies[turn], budget))
        numbers[row, :budget] = blocks[turn][member.path[-1]]
    return torch.from_numpy(numbers)


def left_padded(rows: list[list[int]], pad_id: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns ids and mask, both (B, T), with the padding on the left, as decoding needs it."""
    width = max(len(row) for row in rows)
    ids = torch.tensor([[pad_id] * (width - len(row)) + row for row in rows], device=device)
    mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows], device=device)
    return ids, mask
