"""Output and all statistics of an attention call in one sweep on CPUs: two products and one exponential a score.

A worker takes a strip of queries × all keys that they may see. It stays in the cache until its rows are normalised:

    1. scores = query · keyᵀ, one product; softcap, bias and mask in place
    2. one pass turns them into weights and reads off every statistic (`strip_passes.py`)
    3. output = weights · value, one product, divided by the row sums

A forward and a pass of statistics after it (`forward.py`, `statistics.py`) take three products and two exponentials.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.kernels import threads
from regard.attention.kernels.cpu import strip_passes, tiles
from regard.attention.kernels.cpu.statistics import sort_nan_rows
from regard.attention.kernels.matmul import onednn, packed_for_onednn, product
from regard.attention.map_statistics import KernelResult, MapStatistics, Statistics, cell_sizes, spread_nan
from regard.attention.scores import ScoreRule

STRIP, STRIP_SLICED = 1 << 20, 1 << 21  # scores of a strip: with the key packed once a head; with a part of it
MIN_STRIP_ROWS, MAX_STRIP_ROWS = 64, 256  # rows of a strip
BAND = 64  # rows summed up in float32 before they join the columns' float64 sums


def fits(query: Float[Tensor, "B H L D"], key: Float[Tensor, "B G S D"], rule: ScoreRule) -> bool:
    """Return whether the strips of a call that the CPU's forward fits are small enough to stay in the cache."""
    longest, size = query.shape[2], key.shape[2]
    if rule.mask is None or (rule.mask.low is None and rule.mask.high is None):
        return MIN_STRIP_ROWS * size <= STRIP_SLICED
    starts = range(0, longest, MIN_STRIP_ROWS)
    reached = (rule.mask.key_range(start, min(longest, start + MIN_STRIP_ROWS), size) for start in starts)
    return MIN_STRIP_ROWS * max(last - first for first, last in reached) <= STRIP_SLICED


def compute(
    query: Float[Tensor, "B H L D"],
    key: Float[Tensor, "B G S D"],
    value: Float[Tensor, "B G S E"],
    rule: ScoreRule,
    wanted: Statistics,
    offset: int | None,
) -> KernelResult:
    """Compute output, row maxima and sums, and the wanted statistics of a call that `fits`. No gradients."""
    query, key, value, rule = query.detach(), key.detach(), value.detach(), rule.detached()
    batch, heads, length = query.shape[:3]
    size = key.shape[2]
    results = _RowResults.empty(query, value, size, wanted)
    geometry = _Geometry.of(length, size, wanted, offset or 0)
    multiply = product()
    row_ranges = tiles.split_into_thread_tasks(batch * heads, length, threads.worker_thread_count())
    tasks = [(b, h, *span) for b in range(batch) for h in range(heads) for span in reversed(row_ranges)]

    def task(b: int, h: int, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        head = tiles.HeadTiles.of(query, key, rule, b, h, multiply)
        v = tiles.contiguous_float32_rows(value[b, h // (heads // key.shape[1])])
        return _strip_rows_of_head(head, v, geometry, results, start, stop)

    sums = threads.run_on_worker_threads([partial(task, *arguments) for arguments in tasks])
    received = torch.zeros(batch, heads, size, dtype=torch.float64)
    picture = torch.zeros(batch, heads, *geometry.parts, dtype=torch.float64)
    for (b, h, _, _), (own_received, own_picture) in zip(tasks, sums, strict=True):  # in this order, whoever was first
        received[b, h] += torch.from_numpy(own_received)
        picture[b, h] += torch.from_numpy(own_picture)
    picture /= cell_sizes(length, geometry.parts[0], picture.device)[:, None] * cell_sizes(
        size, geometry.parts[1], picture.device
    )
    spread_nan(results.row_sum.isnan(), results.values, received, picture)
    distance = None if offset is None else results.distance
    shares = None if rule.sinks is None else results.shares
    sums_of_keys = received.float(), distance, picture.float()
    statistics = MapStatistics(results.values, results.keys, results.entropy, *sums_of_keys, shares).only(wanted)
    row_max_sum = results.row_max, results.row_sum
    return KernelResult(results.output, results.logsumexp, "one-sweep-cpu", row_max_sum, statistics)


@dataclass(frozen=True)
class _RowResults:
    """What is written row by row: output (B, H, L, E), values and keys (B, H, L, T), the rest (B, H, L)."""

    output: Tensor
    logsumexp: Tensor
    row_max: Tensor
    row_sum: Tensor
    values: Tensor
    keys: Tensor
    entropy: Tensor
    distance: Tensor
    shares: Tensor

    @staticmethod
    def empty(query: Tensor, value: Tensor, size: int, wanted: Statistics) -> "_RowResults":
        rows, top = query.shape[:3], 0 if wanted.top is None else min(wanted.top, size)
        logsumexp, row_max, row_sum, entropy, distance, shares = (torch.empty(rows) for _ in range(6))
        return _RowResults(
            output=query.new_empty(*rows, value.shape[-1]),
            logsumexp=logsumexp,
            row_max=row_max,
            row_sum=row_sum,
            values=torch.empty(*rows, top),
            keys=torch.empty(*rows, top, dtype=torch.int64),
            entropy=entropy,
            distance=distance,
            shares=shares,
        )


@dataclass(frozen=True)
class _Geometry:
    """Where distances and the picture's cells lie. parts: rows and columns of the picture, P and Q.

    away: |distance| of row r and key j at origin - r + j. row_cells (L,): each query's row of the picture. row_edges:
    the queries at which its rows begin but the first. cell_edges (Q + 1,): the keys at which its columns begin.
    """

    parts: tuple[int, int]
    away: np.ndarray
    origin: int
    row_cells: np.ndarray
    row_edges: np.ndarray
    cell_edges: np.ndarray

    @staticmethod
    def of(length: int, size: int, wanted: Statistics, offset: int) -> "_Geometry":
        parts = (1, 1) if wanted.pooled is None else (min(wanted.pooled[0], length), min(wanted.pooled[1], size))
        origin = length - 1
        away = np.abs(np.arange(length + size) - origin - offset).astype(np.float32)
        row_cells = ((np.arange(length) + 1) * parts[0] - 1) // length
        row_edges, cell_edges = (np.arange(p + 1) * n // p for p, n in zip(parts, (length, size), strict=True))
        return _Geometry(parts, away, origin, row_cells, row_edges[1:-1], cell_edges)

    def band_edges(self, first: int, last: int) -> np.ndarray:
        """Return the edges of a strip's bands: where a row of the picture ends, and every BAND rows."""
        between = self.row_edges[np.searchsorted(self.row_edges, first) : np.searchsorted(self.row_edges, last)]
        return np.unique(np.concatenate([np.arange(first, last, BAND), between, [last]]))


def _strip_rows_of_head(
    head: tiles.HeadTiles, value: Float[Tensor, "S E"], geometry: _Geometry, results: _RowResults, start: int, stop: int
) -> tuple[np.ndarray, np.ndarray]:
    """Compute queries [start, stop) of one head, a strip after another; return what keys and the picture received."""
    size = len(head.key)
    received, picture = np.zeros(size), np.zeros(geometry.parts)
    chunks = np.empty((size // strip_passes.GROUP + 1) * strip_passes.LANES, np.float32)
    band = np.zeros(size, np.float32)
    sink = np.float32(-np.inf if head.rule.sinks is None else head.rule.sinks[head.head].item())
    strips, ready = _strips(head, start, stop)
    # the largest first: memory that is given back serves the smaller ones, larger ones would need new pages each time
    for first, last, begin, end in sorted(strips, key=lambda strip: strip[2] - strip[3]):
        query = (head.query[first:last].float() * head.rule.scale).contiguous()
        scores = head.product(query, head.key[begin:end] if ready is None else ready)
        head.apply(scores, slice(first, last), slice(begin, end))
        inverse = np.empty(last - first, np.float32)
        block = head.batch, head.head, slice(first, last)
        edges = geometry.band_edges(first, last)
        low, high = head.band(first, begin)
        row_max, row_sum, logsumexp, values, keys, entropy, distance, shares = (
            getattr(results, name)[block].numpy()
            for name in ("row_max", "row_sum", "logsumexp", "values", "keys", "entropy", "distance", "shares")
        )
        strip_passes.read_off_strip_statistics(
            scores.numpy(), begin, low, high, geometry.origin - first + begin, geometry.away,
            edges - first, geometry.row_cells[edges[:-1]], sink, chunks, band[begin:end], received[begin:end],
            geometry.cell_edges - begin, picture, values, keys, entropy, distance, shares, inverse,
            row_max, row_sum, logsumexp,
        )  # fmt: skip
        mixed = head.product(scores, value[begin:end].t())
        if results.output.dtype == torch.float32:
            torch.mul(mixed, torch.from_numpy(inverse)[:, None], out=results.output[block])
        else:
            results.output[block].copy_(mixed * torch.from_numpy(inverse)[:, None])
        sort_nan_rows(head, first, last, np.isnan(row_sum), results.keys[block])
    return received, picture


def _strips(head: tiles.HeadTiles, start: int, stop: int) -> tuple[list[tuple[int, int, int, int]], Tensor | None]:
    """Split queries [start, stop) into strips (first, last) with their keys (begin, end).

    Beside them the key as oneDNN packs it for strips of all keys, where there are such only: it cannot be sliced.
    """
    size, strips, at = len(head.key), [], start
    reached = head.reach(start, stop)
    whole = head.product is onednn and all(head.reach(row, row + 1) == (0, size) for row in (start, stop - 1))
    while at < stop:
        begin, end = reached if whole else head.reach(at, min(stop, at + MAX_STRIP_ROWS))
        width = max(1, end - begin)
        fitting = (STRIP if whole else STRIP_SLICED) // width // MIN_STRIP_ROWS * MIN_STRIP_ROWS
        rows = max(MIN_STRIP_ROWS, min(MAX_STRIP_ROWS, fitting))
        last = min(stop, at + rows)
        begin, end = head.reach(at, last)
        # whole groups of columns where there are such: what a row sees of them beyond its own keys gets the weight 0
        begin = min(begin, size - 1) // strip_passes.GROUP * strip_passes.GROUP
        end = max(begin + 1, min(size, -(-end // strip_passes.GROUP) * strip_passes.GROUP))
        strips.append((at, last, begin, end))
        at = last
    ready = packed_for_onednn(head.key, strips[0][1] - start) if whole else None
    return strips, ready
