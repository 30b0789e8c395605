"""Keys and values of many rows in one slab, and attention to them.

Row r holds its text from column 0 on, without padding, so rows of different lengths lie side by side.
"""

import torch
from torch.nn.functional import pad, scaled_dot_product_attention

LEAST_GROWTH, GROWTH = 32, 0.06  # columns, and share of them, by which a tight slab is made wider than it need be


class Slab:
    """The cache that a transformers model sees: `update` writes new keys and values, and returns all of them."""

    is_compileable = False
    is_initialized = True  # checked by models that treat the first forward differently; none is different here

    def __init__(self, rows: int, columns: int, is_tight: bool):
        """Makes room for rows x columns: as texts grow if it `is_tight`, else at once."""
        self._rows, self._most = rows, columns
        self._columns = 0 if is_tight else columns
        self._is_tight = is_tight
        self._keys: dict[int, torch.Tensor] = {}  # by layer, or pass through it: (rows, heads, columns, head_dim)
        self._values: dict[int, torch.Tensor] = {}

    def aim(self, first: int, at: torch.Tensor, widest: int) -> int:
        """Makes the next `update` of every layer write to columns `at` (n, q) of the rows from `first` on.

        Returns how many columns `update` will return: at least `widest`, which none of `at` may reach.
        """
        if widest > self._columns:
            self._widen(min(self._most, widest + max(LEAST_GROWTH, int(GROWTH * widest))))
        self._first, self._count = first, len(at)
        self._widest = self._columns if self._is_tight else widest
        self._at = at
        self._flat: dict[int, torch.Tensor] = {}
        return self._widest

    def _widen(self, columns: int) -> None:
        for slabs in (self._keys, self._values):
            for index, slab in slabs.items():
                slabs[index] = pad(slab, (0, 0, 0, columns - self._columns))
        self._columns = columns

    def update(self, keys, values, layer_idx: int, *_args, **_kwargs) -> tuple[torch.Tensor, torch.Tensor]:
        """Adds keys and values (n, heads, q, head_dim); returns those of the whole rows, (n, heads, widest, .)."""
        return self._store(self._keys, layer_idx, keys), self._store(self._values, layer_idx, values)

    def _store(self, layers: dict[int, torch.Tensor], index: int, new: torch.Tensor) -> torch.Tensor:
        heads, width = new.shape[1], new.shape[3]
        if index not in layers:
            layers[index] = new.new_zeros(self._rows, heads, self._columns, width)
        if heads not in self._flat:
            begin = torch.arange(self._count * heads, device=new.device) + self._first * heads
            self._flat[heads] = (begin.view(-1, heads, 1) * self._columns + self._at[:, None]).flatten()
        slab = layers[index]
        slab.view(-1, width).index_copy_(0, self._flat[heads], new.reshape(-1, width))
        return slab.narrow(0, self._first, self._count).narrow(2, 0, self._widest)  # in half the time of []

    def copy_rows(self, source: torch.Tensor, to: torch.Tensor, columns: int) -> None:
        """Copies the first `columns` columns of row source[i] to row to[i]; the two may overlap."""
        for slab in (*self._keys.values(), *self._values.values()):
            slab[to, :, :columns] = slab[source, :, :columns]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Returns 0: only models that are not given positions need it, and ours always are."""
        return 0


def slab_attention(module, query, key, value, attention_mask, scaling=None, **_kwargs):
    """Returns the attention of query (n, heads, q, d) to the slab's key and value (n, kv heads, columns, d).

    Query heads that share a key head are stacked as further queries of it, so keys are not copied per query head.
    """
    rows, heads, length, _ = query.shape
    groups = heads // key.shape[1]
    query = query.reshape(rows, key.shape[1], groups * length, -1)
    if length > 1:
        attention_mask = attention_mask.repeat(1, 1, groups, 1)
    output = scaled_dot_product_attention(query, key, value, attn_mask=attention_mask, scale=scaling)
    return output.reshape(rows, heads, length, -1).transpose(1, 2), None


def step_attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Returns the same for one query per row, in plain products: on a CPU the kernel for many queries is slow at it.

    query (n, 1, heads, d), bias (n * kv heads, 1, columns); returns (n, 1, heads, d).
    """
    rows, kv_heads, _, size = key.shape
    query = query.reshape(rows * kv_heads, -1, size)
    key, value = key.flatten(0, 1), value.flatten(0, 1)
    if key.dtype != torch.bfloat16:
        scores = torch.baddbmm(bias, query, key.transpose(1, 2), alpha=size**-0.5)
    else:  # by oneDNN, which takes up to twice as long with the few queries on the left
        scores = torch.baddbmm(bias.transpose(1, 2), key, query.transpose(1, 2), alpha=size**-0.5).transpose(1, 2)
    return torch.bmm(scores.softmax(-1), value).view(rows, 1, -1, size)
