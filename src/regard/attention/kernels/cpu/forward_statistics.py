"""Output and all statistics of an attention call in one pass on CPUs, with two products and one exponential per score.

A worker processes a strip: some queries × all keys in their band. The strip stays in the cache until it is normalized:

    1. scores = query · keyᵀ, one product; softcap, bias and mask in place
    2. one pass converts them to weights and computes all statistics
    3. output = weights · value, one product, divided by the row sums

A forward and a separate statistics pass (`forward.py`, `statistics.py`) take three products and two exponentials.

Shapes: a strip has R queries × W keys, top has T keys, and the pooled picture has Q columns. Rows are grouped into N
bands. All rows of a band belong to the same row of the pooled picture.
A weight in this module is exp(score - row maximum), not divided by the row sum. Row r uses columns [low + r, high + r).
"""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.kernels import threads
from regard.attention.kernels.cpu import tiles
from regard.attention.kernels.cpu.statistics import flush_band, sort_nan_rows
from regard.attention.kernels.cpu.vector import LN_2, LOG2_E, LOWEST, at_least, compiled, exp2, larger, lowest_bit
from regard.attention.kernels.matmul import onednn, packed_for_onednn, product
from regard.attention.map_statistics import KernelResult, MapStatistics, Statistics, cell_sizes, spread_nan
from regard.attention.scores import ScoreRule

LANES = 16  # float32 values per AVX-512 vector
GROUP = 256  # columns per group; lane j has columns j, j + 16, j + 32, …, so its maximum needs no shuffle
PART = 1024  # columns summed in float32 before the sum is added to a float64 sum
TOGETHER = 8  # rows added to their band at once, which is then read and written only once for all of them
FLOOR = np.float32(-127.0)  # log2 weights below this are weight 0, and 0 · -inf must not be added


@compiled()
def _strip_lane_maxima(row, chunks):
    """Write the largest score of each lane, for each complete group of a row."""
    for g in range(len(row) // GROUP):
        part, target = row[g * GROUP : (g + 1) * GROUP], chunks[g * LANES : (g + 1) * LANES]
        for j in range(LANES):
            best = part[j]
            for b in range(1, GROUP // LANES):
                x = part[b * LANES + j]
                best = x if x > best else best
            target[j] = best


@compiled()
def _exponentiate_strip_row(row, row_max, gaps):
    """Convert scores to weights, in place. Returns the sums of weight, weight · log2 weight and weight · gaps."""
    s = e = d = np.float32(0.0)
    for j in range(len(row)):
        t = (row[j] - row_max) * LOG2_E
        w = exp2(t)
        row[j] = w
        s += w
        e += w * (FLOOR if t < FLOOR else t)
        d += w * gaps[j]
    return s, e, d


@compiled()
def _insert_top_score(value, key, values, keys):
    """Insert a score into a row's top list if it is large enough. Order: descending score, then ascending key."""
    slot = len(values) - 1
    if not (value > values[slot] or (value == values[slot] and key < keys[slot])):
        return
    while slot > 0 and (value > values[slot - 1] or (value == values[slot - 1] and key < keys[slot - 1])):
        values[slot], keys[slot] = values[slot - 1], keys[slot - 1]
        slot -= 1
    values[slot], keys[slot] = value, key


@compiled()
def _top_of_strip_row(row, start, chunks, lanes, values, keys):
    """Write a row's top scores and keys, with keys counted from start. Returns the row's largest score.

    The T-th largest of the 16 lane maxima is a lower bound for the T largest scores. Of thousands of scores, about 11
    candidates reach this bound, in few groups.
    """
    groups, top_k = len(row) // GROUP, len(values)
    best = LOWEST
    for j in range(LANES):
        lanes[j] = LOWEST
    for g in range(groups):
        part = chunks[g * LANES : (g + 1) * LANES]
        for j in range(LANES):
            lanes[j] = part[j] if part[j] > lanes[j] else lanes[j]
    for j in range(LANES):
        best = larger(best, lanes[j])
    for j in range(groups * GROUP, len(row)):
        best = row[j] if row[j] > best else best
    if top_k == 0:
        return best
    bound = LOWEST
    if top_k <= LANES:
        bound = best
        for j in range(LANES):
            above = 0
            for i in range(LANES):
                above += lanes[i] > lanes[j]
            if above < top_k and lanes[j] < bound:
                bound = lanes[j]
    for g in range(groups):
        if top_k > LANES:
            bound = larger(bound, values[top_k - 1])
        if at_least(chunks, g * LANES, bound) != 0:
            for first in range(g * GROUP, (g + 1) * GROUP, LANES):
                hits = at_least(row, first, bound)
                while hits != 0:
                    column = first + lowest_bit(hits)
                    hits &= hits - 1
                    _insert_top_score(row[column], start + column, values, keys)
    for column in range(groups * GROUP, len(row)):
        if row[column] >= bound:
            _insert_top_score(row[column], start + column, values, keys)
    return best


@compiled()
def _strip_row_has_nan(row):
    has_nan = False
    for j in range(len(row)):
        has_nan |= row[j] != row[j]
    return has_nan


@compiled()
def _add_eight_strip_rows(a, b, c, d, e, f, g, h, inverse, band):
    """Add the weights of eight rows, each row times its factor, to the column sums."""
    i0, i1, i2, i3 = inverse[0], inverse[1], inverse[2], inverse[3]
    i4, i5, i6, i7 = inverse[4], inverse[5], inverse[6], inverse[7]
    for j in range(len(band)):
        left = (a[j] * i0 + b[j] * i1) + (c[j] * i2 + d[j] * i3)
        right = (e[j] * i4 + f[j] * i5) + (g[j] * i6 + h[j] * i7)
        band[j] += left + right


@compiled()
def _add_one_strip_row(row, inverse, band):
    """Add the weights of one row, times its factor, to the column sums."""
    for j in range(len(band)):
        band[j] += row[j] * inverse


@compiled(
    "void(f4[:,::1], i8, i8, i8, i8, f4[::1], i8[::1], i8[::1], f4, f4[::1], f4[::1], f8[::1], i8[::1], f8[:,::1], "
    "f4[:,::1], i8[:,::1], f4[::1], f4[::1], f4[::1], f4[::1], f4[::1], f4[::1], f4[::1])"
)
def read_off_strip_statistics(
    strip, start, low, high, base, gaps, band_edges, cells, sink, chunks, band, received, cell_edges, picture, values,
    keys, entropy, distance, shares, inverse, row_max, row_sum, logsumexp,
):  # fmt: skip
    """Convert a strip's scores (R, W) to weights relative to the row maximum, in place, and write all statistics."""
    size = strip.shape[1]
    lanes = np.empty(LANES, np.float32)
    for n in range(len(band_edges) - 1):
        r = band_edges[n]
        band_first, band_last = size, 0
        while r < band_edges[n + 1]:
            count = TOGETHER if r + TOGETHER <= band_edges[n + 1] else 1
            finite, first, last = True, size, 0  # columns outside [first, last) are 0 in all these rows
            for i in range(r, r + count):
                a = min(size, max(0, low + i))
                b = max(a, min(size, high + i))
                # extended to complete groups: unused columns inside get score -inf, columns outside get weight 0
                begin, end = a // GROUP * GROUP, min(size, -(-b // GROUP) * GROUP)
                strip[i, :begin] = np.float32(0.0)
                strip[i, begin:a] = np.float32(-np.inf)
                strip[i, b:end] = np.float32(-np.inf)
                strip[i, end:] = np.float32(0.0)
                first, last = min(first, begin), max(last, end)
                row = strip[i, begin:end]
                _strip_lane_maxima(row, chunks)
                values[i, :], keys[i, :] = LOWEST, -1
                best = _top_of_strip_row(row, start + begin, chunks, lanes, values[i], keys[i])
                if best == LOWEST and not _strip_row_has_nan(row):  # no allowed key
                    row[:] = np.float32(0.0)
                    weight = np.float32(0.0 if sink == np.float32(-np.inf) else 1.0)
                    shares[i], row_sum[i], row_max[i], logsumexp[i] = weight, weight, sink, sink
                    inverse[i], entropy[i], distance[i] = np.float32(0.0), np.float32(0.0), np.float32(0.0)
                    values[i, :] = np.float32(0.0)
                    continue
                s, e, d, j = 0.0, 0.0, 0.0, 0
                while j < len(row):  # the loop's remainder has separate sums, as adding it to large ones loses digits
                    stop = min(len(row), j + PART) // 32 * 32
                    stop = stop if stop > j else len(row)
                    offset = base - i + begin + j
                    x, y, z = _exponentiate_strip_row(row[j:stop], best, gaps[offset : offset + stop - j])
                    s, e, d, j = s + x, e + y, d + z, stop
                top_max, total, factor, share = np.float64(best), s, 1.0, 0.0
                if sink != np.float32(-np.inf):
                    top_max = max(np.float64(best), np.float64(sink))
                    factor = math.exp(np.float64(best) - top_max)
                    total = s * factor + math.exp(np.float64(sink) - top_max)
                    share = math.exp(np.float64(sink) - top_max) / total
                scaled = factor / total
                inverse[i], row_max[i], row_sum[i] = scaled, top_max, total
                logsumexp[i] = top_max + math.log(total)
                mean = -scaled * (LN_2 * e + math.log(scaled) * s) if scaled != 0.0 else 0.0
                if share > 0.0:
                    mean -= share * math.log(share)
                entropy[i], distance[i], shares[i] = mean, d / s, share
                for t in range(values.shape[1]):
                    value = math.exp(np.float64(values[i, t]) - np.float64(best)) * scaled if keys[i, t] >= 0 else 0.0
                    values[i, t] = value
                finite = finite and scaled == scaled
            if count == TOGETHER and finite:
                _add_eight_strip_rows(
                    strip[r, first:last],
                    strip[r + 1, first:last],
                    strip[r + 2, first:last],
                    strip[r + 3, first:last],
                    strip[r + 4, first:last],
                    strip[r + 5, first:last],
                    strip[r + 6, first:last],
                    strip[r + 7, first:last],
                    inverse[r : r + TOGETHER],
                    band[first:last],
                )
            else:
                for i in range(r, r + count):  # NaN · 0 is NaN, so skip the columns that a NaN row doesn't use
                    a = min(size, max(0, low + i))
                    b = max(a, min(size, high + i))
                    _add_one_strip_row(strip[i, a:b], inverse[i], band[a:b])
            band_first, band_last = min(band_first, first), max(band_last, last)
            r += count
        if band_first < band_last:
            flush_band(
                band[band_first:band_last], received[band_first:band_last], cell_edges - band_first, picture[cells[n]]
            )


STRIP, STRIP_SLICED = 1 << 20, 1 << 21  # largest strip, in scores, with a packed key or slices of the key
MIN_STRIP_ROWS, MAX_STRIP_ROWS = 64, 256  # rows per strip
BAND = 64  # rows summed in float32 before they are added to the columns' float64 sums


def fits(query: Float[Tensor, "B H L D"], key: Float[Tensor, "B G S D"], rule: ScoreRule) -> bool:
    """Return whether the strips of a call fit into the cache. `forward.fits` must be true as well."""
    longest, size = query.shape[2], key.shape[2]
    if rule.mask is None or (rule.mask.low is None and rule.mask.high is None):
        return MIN_STRIP_ROWS * size <= STRIP_SLICED
    starts = range(0, longest, MIN_STRIP_ROWS)
    ranges = (rule.mask.key_range(start, min(longest, start + MIN_STRIP_ROWS), size) for start in starts)
    return MIN_STRIP_ROWS * max(last - first for first, last in ranges) <= STRIP_SLICED


def compute(
    query: Float[Tensor, "B H L D"],
    key: Float[Tensor, "B G S D"],
    value: Float[Tensor, "B G S E"],
    rule: ScoreRule,
    wanted: Statistics,
    offset: int | None,
) -> KernelResult:
    """Compute output, row maxima, row sums and the requested statistics of a call that `fits`, without gradients."""
    query, key, value, rule = query.detach(), key.detach(), value.detach(), rule.detached()
    batch, heads, length = query.shape[:3]
    size = key.shape[2]
    top = 0 if wanted.top is None else min(wanted.top, size)
    values, keys = torch.empty(batch, heads, length, top), torch.empty(batch, heads, length, top, dtype=torch.int64)
    logsumexp, row_max, row_sum, entropy, distance, shares = (torch.empty(batch, heads, length) for _ in range(6))
    output = query.new_empty(batch, heads, length, value.shape[-1])
    results = output, (row_max, row_sum, logsumexp, values, keys, entropy, distance, shares)
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
    for (b, h, _, _), (own_received, own_picture) in zip(tasks, sums, strict=True):  # in a fixed order
        received[b, h] += torch.from_numpy(own_received)
        picture[b, h] += torch.from_numpy(own_picture)
    picture /= cell_sizes(length, geometry.parts[0], picture.device)[:, None] * cell_sizes(
        size, geometry.parts[1], picture.device
    )
    spread_nan(row_sum.isnan(), values, received, picture)
    sums_of_keys = received.float(), None if offset is None else distance, picture.float()
    statistics = MapStatistics(values, keys, entropy, *sums_of_keys, None if rule.sinks is None else shares)
    return KernelResult(output, logsumexp, "one-sweep-cpu", (row_max, row_sum), statistics.only(wanted))


@dataclass(frozen=True)
class _Geometry:
    """Distances and cell edges for the statistics. parts: rows and columns of the pooled picture, P and Q.

    gaps: |distance| of row r and key j, at index origin - r + j. row_cells (L,): each query's row of the picture.
    row_edges: the first query of each row of the picture except row 0. cell_edges (Q + 1,): first key of each column.
    """

    parts: tuple[int, int]
    gaps: np.ndarray
    origin: int
    row_cells: np.ndarray
    row_edges: np.ndarray
    cell_edges: np.ndarray

    @staticmethod
    def of(length: int, size: int, wanted: Statistics, offset: int) -> "_Geometry":
        parts = (1, 1) if wanted.pooled is None else (min(wanted.pooled[0], length), min(wanted.pooled[1], size))
        origin = length - 1
        gaps = np.abs(np.arange(length + size) - origin - offset).astype(np.float32)
        row_cells = ((np.arange(length) + 1) * parts[0] - 1) // length
        row_edges, cell_edges = (np.arange(p + 1) * n // p for p, n in zip(parts, (length, size), strict=True))
        return _Geometry(parts, gaps, origin, row_cells, row_edges[1:-1], cell_edges)

    def band_edges(self, first: int, last: int) -> np.ndarray:
        """Return the edges of a strip's bands. A band ends with a row of the picture and has at most BAND rows."""
        edges = self.row_edges[np.searchsorted(self.row_edges, first) : np.searchsorted(self.row_edges, last)]
        return np.unique(np.concatenate([np.arange(first, last, BAND), edges, [last]]))


def _strip_rows_of_head(
    head: tiles.HeadTiles, value: Float[Tensor, "S E"], geometry: _Geometry, results: tuple[Tensor, tuple[Tensor, ...]],
    start: int, stop: int,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Compute queries [start, stop) of one head, strip by strip. Returns their sums by key and for the picture.

    results: output (B, H, L, E), and the results per row: values and keys (B, H, L, T), the others (B, H, L).
    """
    output, of_rows = results
    size = len(head.key)
    received, picture = np.zeros(size), np.zeros(geometry.parts)
    chunks = np.empty((size // GROUP + 1) * LANES, np.float32)
    band = np.zeros(size, np.float32)
    sink = np.float32(-np.inf if head.rule.sinks is None else head.rule.sinks[head.head].item())
    strips, packed = _strips(head, start, stop)
    # the largest first: smaller strips then reuse its memory, while growing ones would need new pages each time
    for first, last, begin, end in sorted(strips, key=lambda strip: strip[2] - strip[3]):
        query = (head.query[first:last].float() * head.rule.scale).contiguous()
        scores = head.product(query, head.key[begin:end] if packed is None else packed)
        head.apply(scores, slice(first, last), slice(begin, end))
        inverse = np.empty(last - first, np.float32)
        block = head.batch, head.head, slice(first, last)
        edges = geometry.band_edges(first, last)
        low, high = head.band(first, begin)
        row_max, row_sum, logsumexp, values, keys, *others = (tensor[block].numpy() for tensor in of_rows)
        read_off_strip_statistics(
            scores.numpy(), begin, low, high, geometry.origin - first + begin, geometry.gaps,
            edges - first, geometry.row_cells[edges[:-1]], sink, chunks, band[begin:end], received[begin:end],
            geometry.cell_edges - begin, picture, values, keys, *others, inverse, row_max, row_sum, logsumexp,
        )  # fmt: skip
        mixed = head.product(scores, value[begin:end].t())
        output[block].copy_(mixed.mul_(torch.from_numpy(inverse)[:, None]))
        sort_nan_rows(head, first, last, np.isnan(row_sum), torch.from_numpy(keys))
        del scores, mixed  # free their memory for the next strip, which would need new pages otherwise
    return received, picture


def _strips(head: tiles.HeadTiles, start: int, stop: int) -> tuple[list[tuple[int, int, int, int]], Tensor | None]:
    """Split queries [start, stop) into strips (first, last) with their keys (begin, end).

    If all strips use all keys, also return the key in oneDNN's packed layout, which can't be sliced; else None.
    """
    size, strips, first = len(head.key), [], start
    full_range = head.reach(start, stop)
    dense = head.product is onednn and all(head.reach(row, row + 1) == (0, size) for row in (start, stop - 1))
    while first < stop:
        begin, end = full_range if dense else head.reach(first, min(stop, first + MAX_STRIP_ROWS))
        width = max(1, end - begin)
        fitting = (STRIP if dense else STRIP_SLICED) // width // MIN_STRIP_ROWS * MIN_STRIP_ROWS
        rows = max(MIN_STRIP_ROWS, min(MAX_STRIP_ROWS, fitting))
        last = min(stop, first + rows)
        begin, end = head.reach(first, last)
        # extended to complete groups of columns: extra columns get weight 0
        begin = min(begin, size - 1) // GROUP * GROUP
        end = max(begin + 1, min(size, -(-end // GROUP) * GROUP))
        strips.append((first, last, begin, end))
        first = last
    packed = packed_for_onednn(head.key, strips[0][1] - start) if dense else None
    return strips, packed
