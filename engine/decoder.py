"""Decodes rows of any length in one slab (engine/slab.py).

Row r of the slab holds the first `lengths[r]` tokens of its text from column 0 on, without padding. Every forward
writes its tokens at their own columns and attends to the columns up to them, so rows of different lengths decode
together, and a finished row's place can be given to another text. transformers' own cache is concatenated anew at every
token, copied once per query head, and knows one length for all rows.

Works with models whose layers all attend to the whole past (`SampledPolicy.supports_slab`): by transformers' forward or
by engine/llama.py, which reads weights and adapters alone, so that a patched forward does not matter.
"""

import contextlib
import functools
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import nn

from engine.llama import Attend, Llama, StackedLlama
from engine.model import is_sharded
from engine.slab import Slab, slab_attention, step_attention

ATTENTION = "rematch_slab"
PREFILL_TOKENS = 16_384  # new tokens of one forward, padding included
ATTENDED_TOKENS = 8 * PREFILL_TOKENS  # tokens of the rows that one forward extends
ROWS_STEP, COLUMNS_STEP = 64, 256  # recorded steps have multiples of these as sizes, one for each pair in use
CGROUP = Path("/sys/fs/cgroup")
# limit and usage, newest layout first; cgroup v1 marks "no limit" by a number larger than any machine's memory
LAYOUTS = (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))


def bytes_per_token(model: nn.Module) -> int:
    """Returns the bytes that one token of one row takes in the slab: keys and values of all layers."""
    config = model.config
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return 2 * config.num_hidden_layers * heads * width * model.dtype.itemsize


def affordable_rows(model: nn.Module, columns: int) -> int:
    """Returns the number of rows of `columns` tokens whose keys and values fit into free memory, at least 1."""
    device = next(model.parameters()).device
    if device.type == "cuda":
        cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        room = 0.8 * (torch.cuda.mem_get_info(device)[0] + cached)
    else:
        room = 0.5 * free_host_memory()
        room /= int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return max(1, int(room) // (bytes_per_token(model) * columns))


def free_host_memory() -> float:
    """Returns the bytes that are free on this machine, or under its container's limit if those are fewer."""
    import psutil

    return min(psutil.virtual_memory().available, container_room())


def container_room(cgroup: Path = CGROUP) -> float:
    """Returns the bytes left under a Linux container's memory limit; infinity without a limit."""
    for limit, used in LAYOUTS:
        with contextlib.suppress(OSError, ValueError):  # "max" is not a number: no limit
            return max(0.0, float((cgroup / limit).read_text()) - float((cgroup / used).read_text()))
    return float("inf")


class Decoder:
    """The backbone of a model with a slab of `rows` x `columns` tokens; the caller assigns rows 0 .. n-1 to texts."""

    def __init__(self, backbone: nn.Module, rows: int, columns: int, forward: Llama | StackedLlama | None = None):
        from transformers import AttentionInterface

        AttentionInterface.register(ATTENTION, slab_attention)
        self.backbone, self.config = backbone, backbone.config
        self._own_forward = forward
        self.columns = columns
        self.device = next(backbone.parameters()).device
        self.lengths = torch.zeros(rows, dtype=torch.long, device=self.device)  # tokens that row r holds
        # oneDNN copies what is not contiguous: in bfloat16 a slab wider than its texts would be copied at every step
        is_tight = self.device.type == "cpu" and backbone.dtype == torch.bfloat16
        self._slab = Slab(rows, columns, is_tight)
        can_record = self.device.type == "cuda" and not is_sharded(backbone)
        self.fixed_sizes = can_record and _FixedStep.works  # steps of a few sizes, recorded once each
        self._steps: dict[tuple[int, int], _FixedStep] = {}
        self._pool = torch.cuda.graph_pool_handle() if self.device.type == "cuda" else None

    def feed(self, first: int, texts: list[list[int]]) -> torch.Tensor:
        """Appends texts[i] to row first + i; returns the last hidden state of each row, (len(texts), d).

        Texts should come longest first: each forward pads them to its longest.
        """
        states, start = [], 0
        longest = int(self.lengths[first : first + len(texts)].max())
        while start < len(texts):
            width = len(texts[start])
            count = max(1, min(PREFILL_TOKENS // width, ATTENDED_TOKENS // (longest + width)))
            states.append(self._extend(first + start, texts[start : start + count]))
            start += count
        return torch.cat(states)

    def step(self, tokens: torch.Tensor, kept: torch.Tensor, widest: int) -> torch.Tensor:
        """Returns hidden states (n, d) after one more token in each of the rows 0 .. n-1.

        tokens (n,); kept (n,) bool: where it is false the row is not extended, and its result is meaningless.
        `widest` is at least the length of the longest of these rows, the new token included.
        """
        count = len(tokens)
        hidden = self._fixed_step(tokens, widest) if self.fixed_sizes else self._step(tokens, count, widest)
        self.lengths[:count] += kept
        return hidden[:count]

    def _step(self, tokens: torch.Tensor, rows: int, widest: int) -> torch.Tensor:
        # in bounds: the last token is sampled but never fed, so a row holds columns - 1 at most. Rows that ended write
        # at their own length, where nothing reads
        return self._forward(0, tokens[:, None], self.lengths[:rows, None], widest)[:, 0]

    def _fixed_step(self, tokens: torch.Tensor, widest: int) -> torch.Tensor:
        """Runs `_step` in one of a few sizes; rows beyond `tokens` are computed too, and write past their texts."""
        rows = min(-(-len(tokens) // ROWS_STEP) * ROWS_STEP, len(self.lengths))
        widest = min(-(-widest // COLUMNS_STEP) * COLUMNS_STEP, self.columns)
        if (rows, widest) not in self._steps:
            self._steps[rows, widest] = _FixedStep(self, rows, widest, self._pool)
        return self._steps[rows, widest](self, tokens)

    def arrange(self, sources: list[int | None]) -> None:
        """Copies row sources[i] to row i, or empties row i where that is None. Rows that stay are not touched."""
        moved = [(row, source) for row, source in enumerate(sources) if source is not None and row != source]
        if moved:
            to, source = torch.tensor(moved, device=self.device).unbind(1)
            lengths = self.lengths[source]
            self._slab.copy_rows(source, to, int(lengths.max()))
            self.lengths[to] = lengths
        empty = [row for row, source in enumerate(sources) if source is None]
        self.lengths[torch.tensor(empty, dtype=torch.long, device=self.device)] = 0

    def _extend(self, first: int, texts: list[list[int]]) -> torch.Tensor:
        width = len(texts[0])
        ids = torch.tensor([text + [0] * (width - len(text)) for text in texts], device=self.device)
        count = torch.tensor([len(text) for text in texts], device=self.device)
        rows = slice(first, first + len(texts))
        at = self.lengths[rows, None] + torch.arange(width, device=self.device)
        # a short text's padding lands past its row's end, where the next tokens overwrite it
        at.clamp_(max=self.columns - 1)
        last = torch.arange(len(texts), device=self.device) * width + count - 1
        hidden = self._forward(first, ids, at, int(at.max()) + 1, chosen=last)
        self.lengths[rows] += count
        return hidden

    def _forward(
        self, first: int, ids: torch.Tensor, at: torch.Tensor, widest: int, chosen: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Returns hidden states (n, q, d) of ids (n, q) written at columns `at` (n, q) of the rows from `first` on.

        With `chosen` (N,), indices into the flattened (n, q), returns those alone, as (N, d).
        """
        widest = self._slab.aim(first, at, widest)
        visible = torch.arange(widest, device=self.device) <= at[..., None]  # (n, q, widest)
        if self._own_forward:
            return self._own_forward(ids, at, self._attend(visible), chosen)
        with _attending_to_slab(self.config):
            output = self.backbone(
                input_ids=ids, attention_mask=visible[:, None], position_ids=at, past_key_values=self._slab,
                use_cache=True,
            )  # fmt: skip
        states = output.last_hidden_state
        return states if chosen is None else states.flatten(0, 1)[chosen]

    def _attend(self, visible: torch.Tensor) -> Attend:
        """Returns the attention of new tokens to the slab, which stores them; visible (n, q, widest)."""
        is_step = visible.shape[1] == 1 and self.device.type == "cpu"
        heads = self.config.num_key_value_heads
        mask, bias = visible[:, None], None
        if is_step:
            bias = torch.zeros(visible.shape, dtype=self.backbone.dtype).masked_fill_(~visible, float("-inf"))
            bias = bias.repeat_interleave(heads, dim=0)

        def attend(layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
            key, value = self._slab.update(key.transpose(1, 2), value.transpose(1, 2), layer)
            if is_step:
                return step_attention(query, key, value, bias)
            return slab_attention(None, query.transpose(1, 2), key, value, mask)[0]

        return attend


@contextlib.contextmanager
def _attending_to_slab(config: Any) -> Iterator[None]:
    """Makes the model of `config` attend through `slab_attention` inside the context."""
    before = config._attn_implementation
    config._attn_implementation = ATTENTION
    try:
        yield
    finally:
        config._attn_implementation = before


@functools.cache
def _side_stream(device: torch.device) -> torch.cuda.Stream:
    """The stream of all recordings: cuBLAS keeps a workspace of 32 MiB for every stream that it was ever called on."""
    return torch.cuda.Stream(device)


class _FixedStep:
    """One decoding step of a fixed size. On a GPU it is recorded: its hundreds of small kernels launch as one."""

    works: ClassVar[bool] = True  # until a model cannot be recorded

    def __init__(self, decoder: Decoder, rows: int, widest: int, pool: Any):
        self._rows, self._widest = rows, widest
        self._tokens = torch.zeros(rows, dtype=torch.long, device=decoder.device)
        self._graph: torch.cuda.CUDAGraph | None = None
        if decoder.device.type == "cuda":
            self._record(decoder, pool)

    def __call__(self, decoder: Decoder, tokens: torch.Tensor) -> torch.Tensor:
        """Returns hidden states (rows, d), in a buffer that the next call may overwrite; tokens (n <= rows,)."""
        self._tokens[: len(tokens)] = tokens
        if self._graph is None:
            return decoder._step(self._tokens, self._rows, self._widest)
        self._graph.replay()  # reads the current values of `decoder.lengths`
        return self._hidden

    def _record(self, decoder: Decoder, pool: Any) -> None:
        """Records the step and compares it with the plain one, which stays in use if recording fails or differs."""
        stream, side = torch.cuda.current_stream(), _side_stream(decoder.device)
        side.wait_stream(stream)
        with torch.cuda.stream(side):  # initialises lazy libraries; the real step will overwrite what this one writes
            expected = decoder._step(self._tokens, self._rows, self._widest)
        stream.wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, pool=pool, stream=side):
                self._hidden = decoder._step(self._tokens, self._rows, self._widest)
            graph.replay()
            tolerance = 0.02 * float(expected.abs().max())
            problem = "" if torch.allclose(self._hidden, expected, rtol=0.02, atol=tolerance) else "it differs"
        except torch.OutOfMemoryError:
            torch.cuda.set_stream(stream)
            raise
        except RuntimeError as error:  # such as a model that waits for a value from the GPU in its forward
            torch.cuda.set_stream(stream)
            problem = str(error).splitlines()[0]
        if not problem:
            self._graph = graph
            return
        _FixedStep.works = decoder.fixed_sizes = False
        warnings.warn(f"decoding steps cannot be recorded ({problem}); plain ones are used", stacklevel=2)
