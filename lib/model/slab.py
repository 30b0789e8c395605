"""Keys and values of many rows in one slab, and attention to them.

Row r holds its text from column 0 on, without padding, so rows of different lengths lie side by side. Rows that begin
with the same tokens may attend to these once for all of them (`SharedPrefix`).
"""

from dataclasses import dataclass

import torch
from torch.nn.functional import pad, scaled_dot_product_attention

LEAST_GROWTH, GROWTH = 32, 0.06  # columns, and share of them, by which a tight slab is made wider than it need be
LEAST_SAVED = 2**20  # bytes of a layer that a step need not read, from which on a prefix is worth its own operations
MOST_PLACES = 2  # times as many places as rows, at most, where groups are of different sizes


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

    def shared_prefix(self, texts: list[list[int]]) -> "SharedPrefix | None":
        """Returns what rows 0 .. n-1, which begin with `texts`, have in common in groups: as much as the shortest has.

        Returns None where reading it once for each group would save less than it costs.
        """
        columns = min(map(len, texts), default=0)
        groups: dict[tuple[int, ...], list[int]] = {}
        for row, text in enumerate(texts):
            groups.setdefault(tuple(text[:columns]), []).append(row)
        members = list(groups.values())
        most = max(map(len, members), default=0)
        if 2 * len(members) > len(texts) or len(members) * most > MOST_PLACES * len(texts):
            return None
        if (len(texts) - len(members)) * columns * self._bytes_per_column < LEAST_SAVED:
            return None
        leaders = [rows[0] for rows in members]
        held = {
            layer: (key[leaders, :, :columns].flatten(0, 1), self._values[layer][leaders, :, :columns].flatten(0, 1))
            for layer, key in self._keys.items()
        }
        until = 2 * columns if self._is_tight else self._most
        return SharedPrefix(columns, until, held, *_places(members, self._keys[0].shape[1]))

    @property
    def _bytes_per_column(self) -> int:
        """Returns the bytes of a column of one row in one layer."""
        return self._keys[0][0, :, 0].nbytes + self._values[0][0, :, 0].nbytes

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Returns 0: only models that are not given positions need it, and ours always are."""
        return 0


@dataclass(frozen=True)
class SharedPrefix:
    """The first `columns` keys and values of rows 0 .. n-1, held once for each group of rows that begin alike.

    Most of what a step of K copies of a prompt reads is the prompt's, K times. Here the queries of a group are
    multiplied with it together (Hydragen, Juravsky et al. 2024, arXiv 2402.05099). Every group has as many places for
    rows as the largest one needs.
    """

    columns: int
    until: int  # columns of a slab up to which it is quicker so
    _held: dict[int, tuple[torch.Tensor, torch.Tensor]]  # by layer: keys and values (groups * kv heads, columns, d)
    _takes: torch.Tensor  # (groups * kv heads * places,): whose query, of n * kv heads, stands there
    _home: torch.Tensor  # (n * kv heads,): the place of each

    def scores(self, layer: int, query: torch.Tensor) -> torch.Tensor:
        """Returns scaled scores (n * kv heads, q, columns) of query (n * kv heads, q, d)."""
        key, _ = self._held[layer]
        grouped = self._by_group(query, len(key))
        # `beta` leaves the first out: no pass of its own for the scale
        scores = torch.baddbmm(key.new_empty(()), grouped, key.transpose(1, 2), beta=0, alpha=query.shape[2] ** -0.5)
        return self._by_row(scores, query.shape[1])

    def mixed(self, layer: int, weights: torch.Tensor) -> torch.Tensor:
        """Returns values (n * kv heads, q, d), weighted by the first columns of weights (n * kv heads, q, more)."""
        _, value = self._held[layer]
        grouped = self._by_group(weights.narrow(2, 0, self.columns), len(value))
        return self._by_row(torch.bmm(grouped, value), weights.shape[1])

    def _by_group(self, x: torch.Tensor, count: int) -> torch.Tensor:
        """Stacks x (n * kv heads, q, w) as (count = groups * kv heads, places * q, w)."""
        return x.flatten(1).index_select(0, self._takes).view(count, -1, x.shape[2])

    def _by_row(self, x: torch.Tensor, queries: int) -> torch.Tensor:
        """Does the opposite."""
        return x.view(len(self._takes), -1).index_select(0, self._home).view(len(self._home), queries, -1)


def _places(members: list[list[int]], heads: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns whose query stands in each place (group, head, place), and the place of each (row, head), both flat.

    In a group of fewer rows than another one its first takes the places that are left, too.
    """
    most = max(map(len, members))
    takes = [
        (rows[place] if place < len(rows) else rows[0]) * heads + head
        for rows in members
        for head in range(heads)
        for place in range(most)
    ]
    spots = {row: (group, place) for group, rows in enumerate(members) for place, row in enumerate(rows)}
    home = [
        (group * heads + head) * most + place
        for group, place in (spots[row] for row in range(len(spots)))
        for head in range(heads)
    ]
    return torch.tensor(takes), torch.tensor(home)


def attention(module, query, key, value, attention_mask, scaling=None, **_kwargs):
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


def step_attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, bias: torch.Tensor, shared: SharedPrefix | None,
    layer: int,
) -> torch.Tensor:  # fmt: skip
    """Does the same for one query per row, written out: on a CPU the kernel for many queries is slow at it.

    query (n, 1, heads, d), bias (n * kv heads, 1, columns beyond what is shared); returns (n, 1, heads, d).
    """
    rows, kv_heads, columns, size = key.shape
    query = query.reshape(rows * kv_heads, -1, size)
    start = shared.columns if shared else 0
    key, value = (each.narrow(2, start, columns - start).flatten(0, 1) for each in (key, value))
    if key.dtype != torch.bfloat16:
        scores = torch.baddbmm(bias, query, key.transpose(1, 2), alpha=size**-0.5)
    else:  # by oneDNN, which takes up to twice as long with the few queries on the left
        scores = torch.baddbmm(bias.transpose(1, 2), key, query.transpose(1, 2), alpha=size**-0.5).transpose(1, 2)
    if shared is None:
        return torch.bmm(scores.softmax(-1), value).view(rows, 1, -1, size)
    weights = torch.cat([shared.scores(layer, query), scores], -1).softmax(-1)
    mixed = torch.bmm(weights.narrow(2, start, columns - start), value)
    return mixed.add_(shared.mixed(layer, weights)).view(rows, 1, -1, size)
