"""All statistics of the attention matrix in one pass on CPUs, in memory O(L + S) a worker.

The pass may begin with the row maxima and row sums of a forward; its own sums then show whether those were right.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.kernels import threads
from regard.attention.kernels.cpu import statistics_passes, vector
from regard.attention.kernels.cpu.tiles import COLS, ROWS, HeadTiles, Tile, split_into_thread_tasks
from regard.attention.kernels.matmul import product
from regard.attention.map_statistics import MapStatistics, Progress, Statistics, cell_sizes, merge_top_k, spread_nan
from regard.attention.scores import ScoreRule

Block = tuple[int, int, slice]  # batch, head, rows
KernelRows = tuple[Float[Tensor, "B H L"], Float[Tensor, "B H L"]]

BAND = 64  # rows summed up in float32 before they join the columns' float64 sums
CELLS = 64  # rows of the picture in a block at most: each needs a number for every key while the block lasts
TOLERANCE = 4e-6  # by how much a row may miss 1: what summing 10^5 weights in float32 loses
MAX_KEPT_SCORES = 1 << 21  # of a block, kept between summing them up and using the sums (8 MiB)
LOWEST = np.finfo(np.float32).min


def compute(
    query: Float[Tensor, "B H L D"],
    key: Float[Tensor, "B G S D"],
    rule: ScoreRule,
    wanted: Statistics,
    offset: int | None,
    kernel_rows: KernelRows | None = None,
    progress: Progress | None = None,
) -> MapStatistics:
    """Compute the wanted statistics of any call that `forward.fits`."""
    query, key, rule = query.detach(), key.detach(), rule.detached()
    batch, heads, length = query.shape[:3]
    size = key.shape[2]
    tops = 0 if wanted.top is None else min(wanted.top, size)
    parts = (1, 1) if wanted.pooled is None else (min(wanted.pooled[0], length), min(wanted.pooled[1], size))
    row_statistics = _RowStatistics(
        values=torch.zeros(batch, heads, length, tops),
        keys=torch.full((batch, heads, length, tops), -1),
        entropy=torch.zeros(batch, heads, length),
        distance=torch.zeros(batch, heads, length),
        shares=torch.zeros(batch, heads, length),
    )
    multiply = product()
    row_ranges = split_into_thread_tasks(batch * heads, length, threads.worker_thread_count())
    tasks = [(b, h, *span) for b in range(batch) for h in range(heads) for span in reversed(row_ranges)]

    def task(b: int, h: int, start: int, stop: int) -> "_RowSpan":
        head = HeadTiles.of(query, key, rule, b, h, multiply)
        row_span = _RowSpan(head, offset or 0, parts, length, row_statistics, start, stop, kernel_rows).run()
        if progress is not None:
            progress((stop - start) / (batch * heads * length))
        return row_span

    row_spans = threads.run_on_worker_threads([partial(task, *arguments) for arguments in tasks])
    received = torch.zeros(batch, heads, size, dtype=torch.float64)
    picture = torch.zeros(batch, heads, *parts, dtype=torch.float64)
    for (b, h, _, _), row_span in zip(tasks, row_spans, strict=True):  # in this order, whoever finished first
        received[b, h] += torch.from_numpy(row_span.received)
        picture[b, h, row_span.cell : row_span.cell + len(row_span.picture)] += torch.from_numpy(row_span.picture)
    picture /= cell_sizes(length, parts[0], picture.device)[:, None] * cell_sizes(size, parts[1], picture.device)
    rows = row_statistics
    spread_nan(rows.entropy.isnan(), rows.values, received, picture)
    distance = None if offset is None else rows.distance
    shares = None if rule.sinks is None else rows.shares
    sums_of_keys = received.float(), distance, picture.float()
    return MapStatistics(rows.values, rows.keys, rows.entropy, *sums_of_keys, shares).only(wanted)


@dataclass(frozen=True)
class _RowStatistics:
    """Statistics of rows, each (B, H, L) or (B, H, L, T); every task writes those of its own rows."""

    values: Tensor
    keys: Tensor
    entropy: Tensor
    distance: Tensor
    shares: Tensor


class _RowSpan:
    """Queries [start, stop) of one head. received (S,) and picture (rows from cell on, Q) are sums in float64."""

    def __init__(
        self,
        head: HeadTiles,
        offset: int,
        parts: tuple[int, int],
        length: int,
        row_statistics: _RowStatistics,
        start: int,
        stop: int,
        kernel_rows: KernelRows | None,
    ) -> None:
        self.head, self.offset, self.row_statistics, self.start, self.stop = head, offset, row_statistics, start, stop
        self.kernel_rows, self.parts, self.length = kernel_rows, parts, length
        self.size = head.key.shape[0]
        sinks = head.rule.sinks
        self.sink = np.float32(-np.inf if sinks is None else sinks[head.head].item())
        self.cell = self._cell(start)
        self.received = np.zeros(self.size)
        self.picture = np.zeros((self._cell(stop - 1) + 1 - self.cell, parts[1]))
        self.cell_edges = np.arange(parts[1] + 1) * self.size // parts[1]
        self.chunks = np.empty(COLS // statistics_passes.CHUNK + 1, np.float32)
        cell = length // parts[0]  # queries of the smallest row of the picture
        self.rows = min(ROWS, CELLS * cell)
        self.bands = np.zeros((self.rows // BAND + self.rows // cell + 2, self.size), np.float32)

    def run(self) -> "_RowSpan":
        """Compute all blocks of rows."""
        for first in range(self.start, self.stop, self.rows):
            self._run_block(first, min(first + self.rows, self.stop))
        return self

    def _run_block(self, first: int, last: int) -> None:
        """Compute a block of rows with the row sums of the forward, and again with its own where those are refuted."""
        block = self.head.batch, self.head.head, slice(first, last)
        band_edges = self._band_edges(first, last)
        if self.kernel_rows is not None:
            row_max, row_sum = (t[block].float().contiguous().numpy() for t in self.kernel_rows)
            if self._add_tiles(block, band_edges, self.head.tiles(first, last), row_max, row_sum) == 0:
                self._flush_bands(first, last, band_edges)
                return
            self.bands[:] = 0.0
        row_max, row_sum = np.full(last - first, LOWEST, np.float32), np.zeros(last - first, np.float32)
        tiles = []
        for tile in self.head.tiles(first, last):
            vector.update_tile_row_sums(tile.scores.numpy(), tile.low, tile.high, row_max, row_sum)
            if (last - first) * self.size <= MAX_KEPT_SCORES:
                tiles.append(tile)
        vector.add_sink(row_max, row_sum, self.sink)
        self._add_tiles(block, band_edges, tiles or self.head.tiles(first, last), row_max, row_sum)
        self._flush_bands(first, last, band_edges)
        sort_nan_rows(self.head, first, last, np.isnan(row_sum), self.row_statistics.keys[block])

    def _add_tiles(
        self, block: Block, band_edges: np.ndarray, tiles: Iterable[Tile], row_max: np.ndarray, row_sum: np.ndarray
    ) -> int:
        """Add up all tiles of a block and write its rows' statistics; return how many rows refute their row sums."""
        rows, first = len(row_max), block[2].start
        shift, inverse = np.empty(rows, np.float32), np.empty(rows, np.float32)
        statistics_passes.begin_tile_rows(row_max, row_sum, shift, inverse)
        sums, largest = np.zeros((3, rows)), np.full(rows, LOWEST, np.float32)
        row_statistics = self.row_statistics
        values, keys = row_statistics.values[block].numpy(), row_statistics.keys[block].numpy()
        entropy, distance, shares = (
            t[block].numpy() for t in (row_statistics.entropy, row_statistics.distance, row_statistics.shares)
        )
        values.fill(LOWEST)
        keys.fill(-1)
        for tile in tiles:
            statistics_passes.add_tile(
                tile.scores.numpy(),
                tile.start,
                tile.low,
                tile.high,
                first + self.offset - tile.start,
                shift,
                inverse,
                self.bands,
                band_edges - first,
                sums,
                largest,
                self.chunks,
                values,
                keys,
            )
        return statistics_passes.finish_tile_rows(
            row_max, row_sum, self.sink, TOLERANCE, sums, largest, entropy, distance, shares, values, keys
        )

    def _flush_bands(self, first: int, last: int, band_edges: np.ndarray) -> None:
        begin, end = self.head.reach(first, last)
        cells = np.array([self._cell(r) - self.cell for r in band_edges[:-1].tolist()])
        statistics_passes.flush_tile_bands(
            self.bands[: len(cells)], begin, end, cells, self.received, self.cell_edges, self.picture
        )

    def _cell(self, row: int) -> int:
        return ((row + 1) * self.parts[0] - 1) // self.length

    def _band_edges(self, first: int, last: int) -> np.ndarray:
        """Return the edges of a block's bands: where a row of the picture ends, and every BAND rows."""
        edges = [first]
        while edges[-1] < last:
            next_cell = (self._cell(edges[-1]) + 1) * self.length // self.parts[0]
            edges.append(min(last, next_cell, edges[-1] + BAND))
        return np.array(edges)


def sort_nan_rows(head: HeadTiles, start: int, stop: int, has_nan: np.ndarray, keys: Int[Tensor, "r T"]) -> None:
    """Write the top keys of those queries [start, stop) with NaN, which comparing cannot order, as torch sorts."""
    if keys.shape[-1] == 0 or not has_nan.any():
        return
    which = torch.from_numpy(np.flatnonzero(has_nan))
    largest: tuple[Tensor, Tensor] | None = None
    for tile in head.tiles(start, stop):
        ahead = torch.arange(tile.stop - tile.start) - which[:, None]  # (rows with NaN, c)
        part = tile.scores[which].masked_fill_((ahead < tile.low) | (ahead >= tile.high), -torch.inf)
        largest = merge_top_k(largest, part, slice(tile.start, tile.stop), keys.shape[-1])
    keys[which] = -1
    if largest is not None:
        keys[which, : largest[1].shape[-1]] = largest[1]
