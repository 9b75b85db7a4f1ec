"""Compute all statistics of the attention matrix in one pass on CPUs, with O(L + S) memory per worker.

The pass can start from the row maxima and row sums of a forward. Its own sums then check these.

Shapes: R rows and C columns of a tile, T keys of top, Q columns of the pooled picture, and N bands of rows, each inside
one row of the picture. A weight in this module is exp(score - shift), not yet divided by the row sum.
"""

import math
from collections.abc import Iterable
from functools import partial

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.kernels import threads
from regard.attention.kernels.cpu import vector
from regard.attention.kernels.cpu.tiles import COLS, ROWS, HeadTiles, Tile, split_into_thread_tasks
from regard.attention.kernels.cpu.vector import LN_2, LOG2_E, LOWEST, compiled, exp2, larger
from regard.attention.kernels.matmul import product
from regard.attention.map_statistics import MapStatistics, Progress, Statistics, cell_sizes, merge_top_k, spread_nan
from regard.attention.scores import ScoreRule

CHUNK = 16  # columns compared at once for top: one AVX-512 vector; 32 and 64 were slower


@compiled()
def _sums_of_four_rows(x, y, z, u, band, shift, inverse, offset):
    """Compute the sums of weight, weight · log2 weight and weight · distance, and the largest scores, of four rows.

    Their weights are added to the band. With four rows at once, the band is read and written once for all of them, and
    the four sums are independent instructions.
    """
    a, b, c, d = shift[0], shift[1], shift[2], shift[3]
    f, g, h, k = inverse[0], inverse[1], inverse[2], inverse[3]
    sa = sb = sc = sd = np.float32(0.0)
    ea = eb = ec = ed = np.float32(0.0)
    da = db = dc = dd = np.float32(0.0)
    ma = mb = mc = md = LOWEST
    for j in range(len(band)):
        gap = np.float32(offset - np.int32(j))
        ta, tb, tc, td = (x[j] - a) * LOG2_E, (y[j] - b) * LOG2_E, (z[j] - c) * LOG2_E, (u[j] - d) * LOG2_E
        wa, wb, wc, wd = exp2(ta), exp2(tb), exp2(tc), exp2(td)
        sa += wa
        sb += wb
        sc += wc
        sd += wd
        ea += wa * larger(ta, np.float32(-127.0))
        eb += wb * larger(tb, np.float32(-127.0))
        ec += wc * larger(tc, np.float32(-127.0))
        ed += wd * larger(td, np.float32(-127.0))
        da += wa * abs(gap)
        db += wb * abs(gap + np.float32(1.0))
        dc += wc * abs(gap + np.float32(2.0))
        dd += wd * abs(gap + np.float32(3.0))
        ma = larger(ma, x[j])
        mb = larger(mb, y[j])
        mc = larger(mc, z[j])
        md = larger(md, u[j])
        band[j] += (wa * f + wb * g) + (wc * h + wd * k)
    return (sa, sb, sc, sd), (ea, eb, ec, ed), (da, db, dc, dd), (ma, mb, mc, md)


@compiled()
def _sums_of_one_row(x, band, shift, inverse, offset):
    """Compute the same for one row, if there is no full group of four rows or they use different columns."""
    s = e = d = np.float32(0.0)
    m = LOWEST
    for j in range(len(band)):
        t = (x[j] - shift) * LOG2_E
        w = exp2(t)
        s += w
        e += w * larger(t, np.float32(-127.0))
        d += w * abs(np.float32(offset - np.int32(j)))
        m = larger(m, x[j])
        band[j] += w * inverse
    return s, e, d, m


@compiled()
def _next_largest_of_row(row, begin, end, value, index):
    """Return the entry of row[begin:end] after (value, index), ordered by descending value, then ascending index."""
    part = row[begin:end]
    best = LOWEST
    for j in range(len(part)):
        later = part[j] < value or (part[j] == value and begin + j > index)
        best = larger(best, part[j] if later else LOWEST)
    return best


@compiled()
def _update_top_from_tile(row, start, chunks, values, keys):
    """Update a row's top scores and keys with the columns start, start + 1, … of a tile.

    Columns are inserted in order of descending score, then ascending key, until one doesn't beat the kept scores. So
    each is inserted after its equals, and in most tiles most rows stop at once.
    """
    size, last = len(row), len(values) - 1
    count = size // CHUNK
    for n in range(count):
        best = LOWEST
        for j in range(CHUNK):
            best = larger(best, row[n * CHUNK + j])
        chunks[n] = best
    value, index = np.float32(np.inf), -1  # the last inserted entry
    if count * CHUNK < size:
        chunks[count] = _next_largest_of_row(row, count * CHUNK, size, value, index)
        count += 1
    maxima = chunks[:count]
    while True:
        best = LOWEST
        for n in range(len(maxima)):
            best = larger(best, maxima[n])
        if not best > values[last]:
            return
        n = 0
        while maxima[n] != best:
            n += 1
        begin, end = n * CHUNK, min(size, (n + 1) * CHUNK)
        index = begin if best < value else max(begin, index + 1)
        while row[index] != best:
            index += 1
        value = best
        maxima[n] = _next_largest_of_row(row, begin, end, value, index)
        slot = last
        while slot > 0 and values[slot - 1] < value:
            values[slot], keys[slot] = values[slot - 1], keys[slot - 1]
            slot -= 1
        values[slot], keys[slot] = value, start + index


@compiled(
    "void(f4[:,::1], i8, i8, i8, i8, f4[::1], f4[::1], f4[:,::1], i8[::1], f8[:,::1], f4[::1], f4[::1], f4[:,::1], "
    "i8[:,::1])"
)
def add_tile(scores, start, low, high, offset, shift, inverse, bands, band_edges, sums, largest, chunks, values, keys):
    """Add a tile of scores to the row sums, the largest scores, the top lists and the bands' column sums."""
    cols = scores.shape[1]
    top_k = values.shape[1]
    for n in range(len(band_edges) - 1):
        r, end = band_edges[n], band_edges[n + 1]
        while r < end:
            count = 4 if r + 4 <= end else 1
            # columns that all these rows use: from the last row's first to the first row's last column
            a = min(cols, max(0, low + r + count - 1))
            b = max(a, min(cols, high + r))
            m = (LOWEST, LOWEST, LOWEST, LOWEST)
            if count == 4:
                s, e, d, m = _sums_of_four_rows(
                    scores[r, a:b],
                    scores[r + 1, a:b],
                    scores[r + 2, a:b],
                    scores[r + 3, a:b],
                    bands[n, start + a : start + b],
                    shift[r : r + 4],
                    inverse[r : r + 4],
                    np.int32(offset + r - a),
                )
                for i in range(4):
                    sums[0, r + i] += s[i]
                    sums[1, r + i] += e[i]
                    sums[2, r + i] += d[i]
            for i in range(r, r + count):
                best = m[i - r]
                first = min(cols, max(0, low + i))
                final = max(first, min(cols, high + i))
                for side in range(2):
                    if count == 1:
                        left, right = (first, final) if side == 0 else (final, final)
                    elif side == 0:
                        left, right = first, min(a, final)
                    else:
                        left, right = max(b, first), final
                    if left < right:
                        row_sums = _sums_of_one_row(
                            scores[i, left:right],
                            bands[n, start + left : start + right],
                            shift[i],
                            inverse[i],
                            np.int32(offset + i - left),
                        )
                        sums[0, i] += row_sums[0]
                        sums[1, i] += row_sums[1]
                        sums[2, i] += row_sums[2]
                        best = larger(best, row_sums[3])
                largest[i] = larger(largest[i], best)
                if top_k > 0 and best > values[i, top_k - 1]:
                    _update_top_from_tile(scores[i, first:final], start + first, chunks, values[i], keys[i])
            r += count


@compiled()
def flush_band(band, received, edges, picture):
    """Move a band's column sums into received and its picture row (Q,). edges (Q + 1,): of the picture's cells."""
    for j in range(len(band)):
        received[j] += band[j]
    for q in range(len(edges) - 1):
        cell = band[max(0, min(len(band), edges[q])) : max(0, min(len(band), edges[q + 1]))]
        total = 0.0
        for j in range(len(cell)):
            total += cell[j]
        picture[q] += total
    band[:] = np.float32(0.0)


@compiled("void(f4[:,::1], i8, i8, i8[::1], f8[::1], i8[::1], f8[:,::1])")
def flush_tile_bands(bands, first, last, cells, received, edges, picture):
    """Move the bands' columns [first, last) into received and the picture, and set them to 0."""
    for n in range(len(bands)):
        flush_band(bands[n, first:last], received[first:last], edges - first, picture[cells[n]])


@compiled("i8(f4[::1], f4[::1], f4, f8, f8[:,::1], f4[::1], f4[::1], f4[::1], f4[::1], f4[:,::1], i8[:,::1])")
def finish_tile_rows(row_max, row_sum, sink, tolerance, sums, largest, entropy, distance, shares, values, keys):
    """Convert the sums to statistics. Returns the number of rows whose row maximum or row sum was wrong.

    In such a row, weights and sink share don't sum to 1, or a score is far above the row maximum.
    """
    refuted = 0
    for r in range(len(row_max)):
        if row_max[r] == np.float32(-np.inf):
            refuted += largest[r] != LOWEST
            entropy[r] = distance[r] = shares[r] = np.float32(0.0)
            for t in range(values.shape[1]):
                values[r, t] = np.float32(0.0)
            continue
        total = np.float64(row_sum[r])
        share = 0.0 if sink == np.float32(-np.inf) else math.exp(np.float64(sink) - np.float64(row_max[r])) / total
        on_keys = sums[0, r] / total
        if not (abs(on_keys + share - 1.0) <= tolerance and largest[r] <= row_max[r] + np.float32(1.0)):
            refuted += 1
        mean = math.log(total) * on_keys - LN_2 * sums[1, r] / total
        if share > 0.0:
            mean -= share * math.log(share)
        entropy[r] = mean
        distance[r] = sums[2, r] / sums[0, r] if sums[0, r] != 0.0 else 0.0
        shares[r] = share
        for t in range(values.shape[1]):
            score = np.float64(values[r, t]) - np.float64(row_max[r])
            values[r, t] = math.exp(score) / total if keys[r, t] >= 0 else 0.0
    return refuted


Block = tuple[int, int, slice]  # batch, head, rows
KernelRows = tuple[Float[Tensor, "B H L"], Float[Tensor, "B H L"]]

BAND = 64  # rows summed in float32 before they are added to the columns' float64 sums
CELLS = 64  # largest number of picture rows per block: each needs a temporary number for every key
TOLERANCE = 4e-6  # allowed difference of a row's sum from 1: the rounding error of 10^5 weights in float32
MAX_KEPT_SCORES = 1 << 21  # scores of a block that are kept instead of recomputed after its row sums (8 MiB)


def compute(
    query: Float[Tensor, "B H L D"],
    key: Float[Tensor, "B G S D"],
    rule: ScoreRule,
    wanted: Statistics,
    offset: int | None,
    kernel_rows: KernelRows | None = None,
    progress: Progress | None = None,
) -> MapStatistics:
    """Compute the requested statistics of any attention call that `forward.fits` accepts."""
    query, key, rule = query.detach(), key.detach(), rule.detached()
    batch, heads, length = query.shape[:3]
    size = key.shape[2]
    tops = 0 if wanted.top is None else min(wanted.top, size)
    parts = (1, 1) if wanted.pooled is None else (min(wanted.pooled[0], length), min(wanted.pooled[1], size))
    values, keys = torch.zeros(batch, heads, length, tops), torch.full((batch, heads, length, tops), -1)
    entropy, distance, shares = (torch.zeros(batch, heads, length) for _ in range(3))
    of_rows = values, keys, entropy, distance, shares  # every task writes its own rows
    multiply = product()
    row_ranges = split_into_thread_tasks(batch * heads, length, threads.worker_thread_count())
    tasks = [(b, h, *span) for b in range(batch) for h in range(heads) for span in reversed(row_ranges)]

    def task(b: int, h: int, start: int, stop: int) -> "_RowSpan":
        head = HeadTiles.of(query, key, rule, b, h, multiply)
        row_span = _RowSpan(head, offset or 0, parts, length, of_rows, start, stop, kernel_rows).run()
        if progress is not None:
            progress((stop - start) / (batch * heads * length))
        return row_span

    row_spans = threads.run_on_worker_threads([partial(task, *arguments) for arguments in tasks])
    received = torch.zeros(batch, heads, size, dtype=torch.float64)
    picture = torch.zeros(batch, heads, *parts, dtype=torch.float64)
    for (b, h, _, _), row_span in zip(tasks, row_spans, strict=True):  # in a fixed order
        received[b, h] += torch.from_numpy(row_span.received)
        picture[b, h, row_span.cell : row_span.cell + len(row_span.picture)] += torch.from_numpy(row_span.picture)
    picture /= cell_sizes(length, parts[0], picture.device)[:, None] * cell_sizes(size, parts[1], picture.device)
    spread_nan(entropy.isnan(), values, received, picture)
    sums_of_keys = received.float(), None if offset is None else distance, picture.float()
    return MapStatistics(values, keys, entropy, *sums_of_keys, None if rule.sinks is None else shares).only(wanted)


class _RowSpan:
    """Queries [start, stop) of one head. received (S,) and picture (rows from cell on, Q) are sums in float64."""

    def __init__(
        self,
        head: HeadTiles,
        offset: int,
        parts: tuple[int, int],
        length: int,
        of_rows: tuple[Tensor, ...],
        start: int,
        stop: int,
        kernel_rows: KernelRows | None,
    ) -> None:
        self.head, self.offset, self.of_rows, self.start, self.stop = head, offset, of_rows, start, stop
        self.kernel_rows, self.parts, self.length = kernel_rows, parts, length
        self.size = head.key.shape[0]
        sinks = head.rule.sinks
        self.sink = np.float32(-np.inf if sinks is None else sinks[head.head].item())
        self.cell = self._picture_row(start)
        self.received = np.zeros(self.size)
        self.picture = np.zeros((self._picture_row(stop - 1) + 1 - self.cell, parts[1]))
        self.cell_edges = np.arange(parts[1] + 1) * self.size // parts[1]
        self.chunks = np.empty(COLS // CHUNK + 1, np.float32)
        cell = length // parts[0]  # queries in the smallest row of the picture
        self.rows = min(ROWS, CELLS * cell)
        self.bands = np.zeros((self.rows // BAND + self.rows // cell + 2, self.size), np.float32)

    def run(self) -> "_RowSpan":
        """Compute the statistics of all blocks of rows. Returns the span itself."""
        for first in range(self.start, self.stop, self.rows):
            self._run_block(first, min(first + self.rows, self.stop))
        return self

    def _run_block(self, first: int, last: int) -> None:
        """Compute a block of rows with the forward's row sums. If they are wrong, compute it again with its own."""
        block = self.head.batch, self.head.head, slice(first, last)
        edges = [first]  # of bands: at ends of picture rows, and at least every BAND rows
        while edges[-1] < last:
            next_cell = (self._picture_row(edges[-1]) + 1) * self.length // self.parts[0]
            edges.append(min(last, next_cell, edges[-1] + BAND))
        band_edges = np.array(edges)
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
        _, keys, *_ = self.of_rows
        sort_nan_rows(self.head, first, last, np.isnan(row_sum), keys[block])

    def _add_tiles(
        self, block: Block, band_edges: np.ndarray, tiles: Iterable[Tile], row_max: np.ndarray, row_sum: np.ndarray
    ) -> int:
        """Sum all tiles of a block and write its rows' statistics. Returns the number of rows with wrong row sums."""
        rows, first = len(row_max), block[2].start
        empty = row_max == -np.inf  # shift and inverse must be finite for these rows too
        shift = np.where(empty, np.float32(0.0), row_max)
        inverse = np.divide(np.float32(1.0), row_sum, out=np.ones(rows, np.float32), where=~empty)
        sums, largest = np.zeros((3, rows)), np.full(rows, LOWEST, np.float32)
        values, keys, entropy, distance, shares = (tensor[block].numpy() for tensor in self.of_rows)
        values.fill(LOWEST)
        keys.fill(-1)
        for tile in tiles:
            offset = first + self.offset - tile.start
            add_tile(
                tile.scores.numpy(), tile.start, tile.low, tile.high, offset, shift, inverse, self.bands,
                band_edges - first, sums, largest, self.chunks, values, keys,
            )  # fmt: skip
        return finish_tile_rows(
            row_max, row_sum, self.sink, TOLERANCE, sums, largest, entropy, distance, shares, values, keys
        )

    def _flush_bands(self, first: int, last: int, band_edges: np.ndarray) -> None:
        begin, end = self.head.reach(first, last)
        cells = np.array([self._picture_row(r) - self.cell for r in band_edges[:-1].tolist()])
        flush_tile_bands(self.bands[: len(cells)], begin, end, cells, self.received, self.cell_edges, self.picture)

    def _picture_row(self, row: int) -> int:
        return ((row + 1) * self.parts[0] - 1) // self.length


def sort_nan_rows(head: HeadTiles, start: int, stop: int, has_nan: np.ndarray, keys: Int[Tensor, "r T"]) -> None:
    """Write the top keys of those queries in [start, stop) that have NaN, in torch's sort order."""
    if keys.shape[-1] == 0 or not has_nan.any():
        return
    rows = torch.from_numpy(np.flatnonzero(has_nan))
    largest: tuple[Tensor, Tensor] | None = None
    for tile in head.tiles(start, stop):
        ahead = torch.arange(tile.stop - tile.start) - rows[:, None]  # (rows with NaN, c)
        part = tile.scores[rows].masked_fill_((ahead < tile.low) | (ahead >= tile.high), -torch.inf)
        largest = merge_top_k(largest, part, slice(tile.start, tile.stop), keys.shape[-1])
    keys[rows] = -1
    if largest is not None:
        keys[rows, : largest[1].shape[-1]] = largest[1]
