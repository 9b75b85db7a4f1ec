"""All figures of the attention matrix in one pass on CPUs, in memory O(L + S) a worker.

The pass may begin with the normaliser that a forward left; what it sums up then says whether that was the right one.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.kernels import threads
from regard.attention.kernels.cpu import online_softmax, statistics_passes
from regard.attention.kernels.cpu.tiles import COLS, ROWS, Head, Tile, spans
from regard.attention.kernels.matmul import product
from regard.attention.map_statistics import Figures, Progress, Wanted, cell_sizes, merge_best
from regard.attention.scores import ScoreRule

Spot = tuple[int, int, slice]  # batch, head, rows
Normaliser = tuple[Float[Tensor, "B H L"], Float[Tensor, "B H L"]]

BAND = 64  # rows summed up in float32 before they join the columns' float64 sums
CELLS = 64  # rows of the picture in a block at most: each needs a number for every key while the block lasts
TOLERANCE = 4e-6  # by how much a row may miss 1: what summing 10^5 weights in float32 loses
KEPT = 1 << 21  # scores of a block up to which they are kept between finding the normaliser and using it (8 MiB)
LOWEST = np.finfo(np.float32).min


def compute(
    query: Float[Tensor, "B H L D"],
    key: Float[Tensor, "B G S D"],
    rule: ScoreRule,
    wanted: Wanted,
    normaliser: Normaliser | None = None,
    progress: Progress | None = None,
) -> Figures:
    """What `regard.attention.kernels.statistics.compute` computes, for whatever `forward.fits` takes.

    normaliser: each row's (max, sum), sinks included, where a forward has found it. It is believed only of blocks whose
    rows all sum to 1 with it; the others are done again with their own.
    """
    query, key, rule = query.detach(), key.detach(), rule.detached()
    batch, heads, length = query.shape[:3]
    size = key.shape[2]
    tops = 0 if wanted.top is None else min(wanted.top, size)
    parts = (1, 1) if wanted.pooled is None else (min(wanted.pooled[0], length), min(wanted.pooled[1], size))
    found = _Found(
        values=torch.zeros(batch, heads, length, tops),
        keys=torch.full((batch, heads, length, tops), -1),
        entropy=torch.zeros(batch, heads, length),
        distance=torch.zeros(batch, heads, length),
        shares=torch.zeros(batch, heads, length),
    )
    multiply = product()
    runs = spans(batch * heads, length, threads.count())
    spots = [(b, h, *span) for b in range(batch) for h in range(heads) for span in reversed(runs)]

    def task(b: int, h: int, start: int, stop: int) -> "_Task":
        head = Head.of(query, key, rule, b, h, multiply)
        done = _Task(head, wanted.offset, parts, length, found, start, stop, normaliser).run()
        if progress is not None:
            progress((stop - start) / (batch * heads * length))
        return done

    tasks = threads.run([lambda spot=spot: task(*spot) for spot in spots])  # type: ignore[misc]
    received = torch.zeros(batch, heads, size, dtype=torch.float64)
    picture = torch.zeros(batch, heads, *parts, dtype=torch.float64)
    for (b, h, _, _), done in zip(spots, tasks, strict=True):  # always in this order, whoever finished first
        received[b, h] += torch.from_numpy(done.received)
        picture[b, h, done.cell : done.cell + len(done.picture)] += torch.from_numpy(done.picture)
    picture /= cell_sizes(length, parts[0], picture.device)[:, None] * cell_sizes(size, parts[1], picture.device)
    return Figures(
        found.values if wanted.top is not None else None,
        found.keys if wanted.top is not None else None,
        found.entropy if wanted.entropy else None,
        received.float() if wanted.received else None,
        found.distance if wanted.distance else None,
        picture.float() if wanted.pooled is not None else None,
        found.shares if rule.sinks is not None else None,
    )


@dataclass(frozen=True)
class _Found:
    """Figures of rows, each (B, H, L) or (B, H, L, T), that tasks write their own rows of."""

    values: Tensor
    keys: Tensor
    entropy: Tensor
    distance: Tensor
    shares: Tensor


class _Task:
    """Queries [start, stop) of one head. received (S,) and picture (rows from cell on, Q) are sums in float64."""

    def __init__(
        self,
        head: Head,
        offset: int,
        parts: tuple[int, int],
        length: int,
        found: _Found,
        start: int,
        stop: int,
        normaliser: Normaliser | None,
    ) -> None:
        self.head, self.offset, self.found, self.start, self.stop = head, offset, found, start, stop
        self.normaliser, self.parts, self.length = normaliser, parts, length
        self.size = head.key.shape[0]
        sinks = head.rule.sinks
        self.sink = np.float32(-np.inf if sinks is None else sinks[head.head].item())
        self.cell = self._cell(start)
        self.received = np.zeros(self.size)
        self.picture = np.zeros((self._cell(stop - 1) + 1 - self.cell, parts[1]))
        self.edges = np.arange(parts[1] + 1) * self.size // parts[1]
        self.chunks = np.empty(COLS // statistics_passes.CHUNK + 1, np.float32)
        cell = length // parts[0]  # queries of the smallest row of the picture
        self.rows = min(ROWS, CELLS * cell)
        self.bands = np.zeros((self.rows // BAND + self.rows // cell + 2, self.size), np.float32)

    def run(self) -> "_Task":
        """Do all blocks of rows."""
        for first in range(self.start, self.stop, self.rows):
            self._block(first, min(first + self.rows, self.stop))
        return self

    def _block(self, first: int, last: int) -> None:
        """One block with the normaliser that was given, and again with its own where that one is refuted."""
        spot = self.head.batch, self.head.head, slice(first, last)
        cuts = self._cuts(first, last)
        if self.normaliser is not None:
            top, total = (t[spot].float().contiguous().numpy() for t in self.normaliser)
            if self._sweep(spot, cuts, self.head.tiles(first, last), top, total) == 0:
                self._flush(first, last, cuts)
                return
            self.bands[:] = 0.0
        top, total = np.full(last - first, LOWEST, np.float32), np.zeros(last - first, np.float32)
        tiles = []
        for tile in self.head.tiles(first, last):
            online_softmax.gauge(tile.scores.numpy(), tile.low, tile.high, top, total)
            if (last - first) * self.size <= KEPT:
                tiles.append(tile)
        online_softmax.settle(top, total, self.sink)
        self._sweep(spot, cuts, tiles or self.head.tiles(first, last), top, total)
        self._flush(first, last, cuts)
        self._odd_rows(spot, np.isnan(total))

    def _sweep(self, spot: Spot, cuts: np.ndarray, tiles: Iterable[Tile], top: np.ndarray, total: np.ndarray) -> int:
        """All tiles of a block, its rows' figures written down; how many rows refute the normaliser."""
        rows, first = len(top), spot[2].start
        shift, inverse = np.empty(rows, np.float32), np.empty(rows, np.float32)
        statistics_passes.open_rows(top, total, shift, inverse)
        sums, seen = np.zeros((3, rows)), np.full(rows, LOWEST, np.float32)
        found = self.found
        values, keys = found.values[spot].numpy(), found.keys[spot].numpy()
        entropy, distance, shares = (t[spot].numpy() for t in (found.entropy, found.distance, found.shares))
        values.fill(LOWEST)
        keys.fill(-1)
        for tile in tiles:
            statistics_passes.tally(
                tile.scores.numpy(),
                tile.start,
                tile.low,
                tile.high,
                first + self.offset - tile.start,
                shift,
                inverse,
                self.bands,
                cuts - first,
                sums,
                seen,
                self.chunks,
                values,
                keys,
            )
        return statistics_passes.close_rows(
            top, total, self.sink, TOLERANCE, sums, seen, entropy, distance, shares, values, keys
        )

    def _flush(self, first: int, last: int, cuts: np.ndarray) -> None:
        begin, end = self.head.reach(first, last)
        cells = np.array([self._cell(r) - self.cell for r in cuts[:-1].tolist()])
        statistics_passes.flush(self.bands[: len(cells)], begin, end, cells, self.received, self.edges, self.picture)

    def _odd_rows(self, spot: Spot, odd: np.ndarray) -> None:
        """Comparing numbers finds no order in rows with NaN: their top keys are those that torch's sort gives."""
        values, keys = self.found.values[spot], self.found.keys[spot]
        if keys.shape[-1] == 0 or not odd.any():
            return
        which = torch.from_numpy(np.flatnonzero(odd))
        kept: tuple[Tensor, Tensor] | None = None
        for tile in self.head.tiles(spot[2].start, spot[2].stop):
            ahead = torch.arange(tile.stop - tile.start) - which[:, None]  # (odd rows, c)
            part = tile.scores[which].masked_fill_((ahead < tile.low) | (ahead >= tile.high), -torch.inf)
            kept = merge_best(kept, part, slice(tile.start, tile.stop), keys.shape[-1])
        if kept is not None:
            keys[which, : kept[1].shape[-1]] = kept[1]
        values[which] = torch.nan

    def _cell(self, row: int) -> int:
        return ((row + 1) * self.parts[0] - 1) // self.length

    def _cuts(self, first: int, last: int) -> np.ndarray:
        """The edges of a block's bands: where a row of the picture ends, and every BAND rows."""
        at = [first]
        while at[-1] < last:
            edge = (self._cell(at[-1]) + 1) * self.length // self.parts[0]
            at.append(min(last, edge, at[-1] + BAND))
        return np.array(at)
