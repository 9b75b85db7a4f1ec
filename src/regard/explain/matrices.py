"""Summarise a whole layer's attention: its band, its largest distant weights, and its means by offset."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.attention.map_statistics import picture_cells_of_run

CPU = torch.device("cpu")
BLOCK = 1 << 22  # weights read at once
REACH = 64  # largest offset, in tokens, on either side of a query
ROWS = 256  # queries read at once


@dataclass(frozen=True)
class Band:
    """Mean weights of cells, with queries down and offsets (the key's number minus the query's) across.

    values[p][q] is the mean weight over all pairs of a query in part p and a key of the same window at an offset in
    part q, or null without such a pair. Part p of P contains queries [p·L // P, (p + 1)·L // P) of L. The `count`
    offsets from `first` on are divided alike. windows, window, stride: how the text was read.
    """

    first: int
    count: int
    values: list[list[float | None]]
    windows: int
    window: int
    stride: int


class OffsetSums:
    """Sums of heads' weights by cell of offsets, (H, cells + 1). The last cell is for all other offsets."""

    def __init__(self, heads: int, cells: int) -> None:
        self.sums = torch.zeros(heads, cells + 1, dtype=torch.float64)
        self.pairs = torch.zeros(cells + 1, dtype=torch.long)

    def counted(self, inside: Bool[Tensor, "r w"], cells: Int[Tensor, "r w"]) -> Int[Tensor, "r w"]:
        """Return the cells of query-key pairs, and count the pairs. A pair that isn't inside goes to the last cell."""
        cells = torch.where(inside, cells, len(self.pairs) - 1)
        self.pairs += torch.bincount(cells.flatten(), minlength=len(self.pairs))
        return cells

    def add(self, head: int, cells: Int[Tensor, "r w"], weights: Float[Tensor, "r w"]) -> None:
        """Add one head's attention weights to the sums of their cells."""
        self.sums[head].index_add_(0, cells.flatten(), weights.flatten().double())

    def cell_means(self, heads: int = 1) -> list[list[float | None]]:
        """Compute each cell's mean weight over its pairs, None without pairs. heads: the heads in each sum."""
        means, has_pairs = (self.sums / (heads * self.pairs.clamp(min=1)))[:, :-1], (self.pairs[:-1] > 0).tolist()
        return [[mean if pairs else None for mean, pairs in zip(row, has_pairs, strict=True)] for row in means.tolist()]


class BandSums(OffsetSums):
    """Sums of all heads' weights over L queries, in at most parts × parts cells, for the offsets from first to last."""

    def __init__(self, length: int, parts: int, first: int, last: int) -> None:
        self.first, self.count = first, last - first + 1
        self.shape = min(parts, length), min(parts, self.count)
        self.rows = picture_cells_of_run(slice(0, length), length, self.shape[0], CPU)
        self.columns = picture_cells_of_run(slice(0, self.count), self.count, self.shape[1], CPU)
        super().__init__(1, self.shape[0] * self.shape[1])

    def cells(self, queries: Int[Tensor, " r"], keys: Int[Tensor, " w"]) -> Int[Tensor, "r w"]:
        """Return the cells of queries and keys (numbers in the whole text), and count their pairs."""
        offset, rows = keys - queries[:, None] - self.first, self.rows[queries][:, None] * self.shape[1]
        inside = (offset >= 0) & (offset < self.count)
        return self.counted(inside, rows + self.columns[offset.clamp(0, self.count - 1)])

    def means(self, heads: int) -> list[list[float | None]]:
        """Compute each cell's mean weight over its pairs and the heads, as a list of rows."""
        (means,), columns = self.cell_means(heads), self.shape[1]
        return [means[start : start + columns] for start in range(0, len(means), columns)]


def matrix_band_of_windows(rows: Sequence[tuple[int, int, int, int]], causal: bool) -> tuple[int, int]:
    """Return the lowest and highest offset in windows. rows: each window's first and last query, first and last key.

    A causal model's queries have no weight on later keys, so its highest offset is 0.
    """
    lowest = min(key - query for _, query, key, _ in rows)
    highest = max(key - query for query, _, _, key in rows)
    return lowest, 0 if causal else highest


class Distant:
    """Keeps the `count` largest weights between tokens more than `far` tokens apart."""

    def __init__(self, far: int, count: int) -> None:
        self.far, self.count = far, count
        self._best: dict[tuple[int, int, int], float] = {}  # (head, query, key) to weight, largest first

    @property
    def least(self) -> float:
        """Return the smallest kept weight, or 0 while fewer than `count` are kept."""
        return min(self._best.values()) if len(self._best) == self.count else 0.0

    def offer(self, weights: Float[Tensor, " n"], heads: Int[Tensor, " n"], rows: Tensor, cols: Tensor) -> None:
        """Keep the largest of some positive weights, passed with their heads, queries (rows) and keys (cols)."""
        chosen = torch.nonzero((weights >= self.least) & (weights > 0))[:, 0]
        if len(chosen) > self.count:
            chosen = chosen[weights[chosen].sort(descending=True, stable=True).indices[: self.count]]
        for weight, *cell in zip(*(x[chosen].tolist() for x in (weights, heads, rows, cols)), strict=True):
            self._best.setdefault((cell[0], cell[1], cell[2]), weight)
        order = sorted(self._best, key=lambda cell: (-self._best[cell], cell))
        self._best = {cell: self._best[cell] for cell in order[: self.count]}

    def found(self) -> list[tuple[float, int, int, int]]:
        """Return the largest distant weights as (weight, head, query, key), the largest first."""
        return [(weight, *cell) for cell, weight in self._best.items()]


def whole_map(
    weights: AttentionMap,
    values: Float[Tensor, "H L T"],
    keys: Int[Tensor, "H L T"],
    special: Bool[Tensor, " L"],
    far: int,
    count: int,
) -> Distant:
    """Find the largest weights between distant tokens in a map (H, L, L), without special tokens.

    values, keys: each query's T largest weights, and their keys. far: the distance beyond which tokens are distant.

    A weight that isn't among the T is at most the smallest of them, and at most 1 minus their sum. A whole row is read
    only if such a weight could exceed the weights found so far.
    """
    best = Distant(far, count)
    heads, length, _ = values.shape
    query = torch.arange(length, device=values.device)[:, None]
    distant = (query - keys).abs() > far
    counts = (keys >= 0) & distant & ~special[keys.clamp(min=0)] & ~special[query]
    spot = counts.nonzero()
    best.offer(values[counts], spot[:, 0], spot[:, 1], keys[counts])
    remaining = (1 - values.double().sum(-1)).clamp(min=0).to(values.dtype)
    hidden = torch.minimum(values[..., -1], remaining + 1e-5)  # 1e-5 allows for rounding of float32 sums
    hidden = torch.where((keys[..., -1] < 0) | special, 0.0, hidden)  # nothing is hidden, or the query is special
    step = max(1, BLOCK // length)
    for head in range(heads):
        order = hidden[head].sort(descending=True, stable=True)
        for start in range(0, length, step):
            rows = order.indices[start : start + step][order.values[start : start + step] > best.least]
            if len(rows) == 0:
                break
            offer_rows(best, weights[head, rows], head, rows, special)
    return best


def offer_rows(
    best: Distant,
    weights: Float[Tensor, "r S"],
    head: int,
    rows: Int[Tensor, " r"],
    special: Bool[Tensor, " S"],
    shift: int = 0,
) -> None:
    """Offer a head's weights on distant keys in some whole rows to `best`."""
    keys = torch.arange(weights.shape[1], device=weights.device)
    excluded = ((rows[:, None] - keys).abs() <= best.far) | special | special[rows][:, None]
    spot = ((weights >= best.least) & (weights > 0) & ~excluded).nonzero()
    values = weights[spot[:, 0], spot[:, 1]]
    best.offer(values, torch.full_like(spot[:, 0], head), rows[spot[:, 0]] + shift, spot[:, 1] + shift)


@dataclass(frozen=True)
class OffsetMeans:
    """Mean weights by offset: values[h][o] is head h's mean over all query-key pairs at offset first + o, null if none.

    The offset is the key's number minus the query's, so earlier tokens have negative offsets. A head with nearly all
    its weight at offset -1 is a previous-token head. Heads with a few fixed offsets are called positional (Voita et al.
    2019, "Analyzing Multi-Head Self-Attention").
    """

    first: int
    values: list[list[float | None]]


class NearSums(OffsetSums):
    """Sums of each head's weights by offset, up to `REACH`, for texts of `length` tokens."""

    def __init__(self, heads: int, length: int) -> None:
        self.reach = min(REACH, length - 1)
        super().__init__(heads, 2 * self.reach + 1)

    def cells(self, queries: Int[Tensor, " r"], keys: Int[Tensor, " w"]) -> Int[Tensor, "r w"]:
        """Return the cells of queries and keys by their offset, and count their pairs."""
        offset = keys - queries[:, None]
        return self.counted(offset.abs() <= self.reach, offset + self.reach)

    def means(self) -> OffsetMeans:
        """Compute each head's mean attention weight over the pairs of each offset."""
        return OffsetMeans(-self.reach, self.cell_means())


def offset_means(weights: AttentionMap) -> OffsetMeans:
    """Compute each head's mean weight by offset in a whole map (H, L, L). Only weights near the diagonal are read."""
    heads, length, size = weights.shape
    sums = NearSums(heads, length)
    for start in range(0, length, ROWS):
        rows = torch.arange(start, min(start + ROWS, length))
        keys = torch.arange(max(0, start - sums.reach), min(size, int(rows[-1]) + 1 + sums.reach))
        cells = sums.cells(rows, keys)
        part = weights[:, start : start + len(rows), int(keys[0]) : int(keys[-1]) + 1].cpu()
        for head in range(heads):
            sums.add(head, cells, part[head])
    return sums.means()
