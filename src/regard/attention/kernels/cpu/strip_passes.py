"""The Numba passes of a strip: its scores become weights in place, and every statistic is read off on the way.

A strip is R queries × the W keys that any of them may see; it stays in the cache from its product to its output.
Shapes beside these: T keys asked of top, N bands of rows that each lie in one row of the pooled picture, Q its columns.
A weight here is exp(score - row maximum), not yet divided by its row's sum. Row r uses columns [low + r, high + r).
"""

import math

import numpy as np

from regard.attention.kernels.cpu.vector import LN_2, LOG2_E, LOWEST, at_least, compiled, exp2, larger, lowest_bit

LANES = 16  # numbers of a vector of AVX-512
GROUP = 256  # columns of a group; lane j of it has columns j, j + 16, j + 32, …: its maximum needs no shuffle
PART = 1024  # columns summed up in float32 before they join a float64 sum
TOGETHER = 8  # rows that are added to their band at once, so that it is read and written once for all of them
FLOOR = np.float32(-127.0)  # of log2 weight: below it the weight is 0, and 0 · -inf must not be added


@compiled()
def _strip_lane_maxima(row, chunks):
    """Write the largest score of each lane of each whole group of a row."""
    for g in range(len(row) // GROUP):
        part, into = row[g * GROUP : (g + 1) * GROUP], chunks[g * LANES : (g + 1) * LANES]
        for j in range(LANES):
            most = part[j]
            for b in range(1, GROUP // LANES):
                x = part[b * LANES + j]
                most = x if x > most else most
            into[j] = most


@compiled()
def _exponentiate_strip_row(row, row_max, away):
    """Turn scores into weights, in place; return the sums of weight, weight · log2 weight and weight · away."""
    s = e = d = np.float32(0.0)
    for j in range(len(row)):
        t = (row[j] - row_max) * LOG2_E
        w = exp2(t)
        row[j] = w
        s += w
        e += w * (FLOOR if t < FLOOR else t)
        d += w * away[j]
    return s, e, d


@compiled()
def _insert_top_score(value, key, values, keys):
    """Put a score among a row's top, by falling score, ties by rising key, if it belongs there."""
    at = len(values) - 1
    if not (value > values[at] or (value == values[at] and key < keys[at])):
        return
    while at > 0 and (value > values[at - 1] or (value == values[at - 1] and key < keys[at - 1])):
        values[at], keys[at] = values[at - 1], keys[at - 1]
        at -= 1
    values[at], keys[at] = value, key


@compiled()
def _top_of_strip_row(row, start, chunks, lanes, values, keys):
    """Find a row's top (scores, keys), keys counted from start, and return its largest score.

    Of the 16 lanes' maxima over the whole row at least T reach the T-th largest of them, so nothing below that is among
    the T largest scores: some 11 candidates are left of thousands, and few groups have one.
    """
    groups, wanted = len(row) // GROUP, len(values)
    most = LOWEST
    for j in range(LANES):
        lanes[j] = LOWEST
    for g in range(groups):
        part = chunks[g * LANES : (g + 1) * LANES]
        for j in range(LANES):
            lanes[j] = part[j] if part[j] > lanes[j] else lanes[j]
    for j in range(LANES):
        most = larger(most, lanes[j])
    for j in range(groups * GROUP, len(row)):
        most = row[j] if row[j] > most else most
    if wanted == 0:
        return most
    bound = LOWEST
    if wanted <= LANES:
        bound = most
        for j in range(LANES):
            above = 0
            for i in range(LANES):
                above += lanes[i] > lanes[j]
            if above < wanted and lanes[j] < bound:
                bound = lanes[j]
    for g in range(groups):
        if wanted > LANES:
            bound = larger(bound, values[wanted - 1])
        if at_least(chunks, g * LANES, bound) != 0:
            for first in range(g * GROUP, (g + 1) * GROUP, LANES):
                hits = at_least(row, first, bound)
                while hits != 0:
                    at = first + lowest_bit(hits)
                    hits &= hits - 1
                    _insert_top_score(row[at], start + at, values, keys)
    for at in range(groups * GROUP, len(row)):
        if row[at] >= bound:
            _insert_top_score(row[at], start + at, values, keys)
    return most


@compiled()
def _strip_row_has_nan(row):
    has_nan = False
    for j in range(len(row)):
        has_nan |= row[j] != row[j]
    return has_nan


@compiled()
def _add_eight_strip_rows(a, b, c, d, e, f, g, h, inverse, band):
    """Add eight rows' weights, each times its own factor, to the sums of their columns."""
    i0, i1, i2, i3 = inverse[0], inverse[1], inverse[2], inverse[3]
    i4, i5, i6, i7 = inverse[4], inverse[5], inverse[6], inverse[7]
    for j in range(len(band)):
        left = (a[j] * i0 + b[j] * i1) + (c[j] * i2 + d[j] * i3)
        right = (e[j] * i4 + f[j] * i5) + (g[j] * i6 + h[j] * i7)
        band[j] += left + right


@compiled()
def _add_one_strip_row(row, inverse, band):
    """Add one row's weights to the sums of their columns."""
    for j in range(len(band)):
        band[j] += row[j] * inverse


@compiled()
def _flush_strip_band(band, received, edges, picture):
    """Move a band's column sums into received and into its row of the picture (Q,); edges (Q + 1,) are of its cells."""
    for j in range(len(band)):
        received[j] += band[j]
    for q in range(len(edges) - 1):
        cell = band[max(0, min(len(band), edges[q])) : max(0, min(len(band), edges[q + 1]))]
        total = 0.0
        for j in range(len(cell)):
            total += cell[j]
        picture[q] += total
    band[:] = np.float32(0.0)


@compiled(
    "void(f4[:,::1], i8, i8, i8, i8, f4[::1], i8[::1], i8[::1], f4, f4[::1], f4[::1], f8[::1], i8[::1], f8[:,::1], "
    "f4[:,::1], i8[:,::1], f4[::1], f4[::1], f4[::1], f4[::1], f4[::1], f4[::1], f4[::1])"
)
def read_off_strip_statistics(
    strip, start, low, high, place, away, band_edges, cells, sink, chunks, band, received, cell_edges, picture, values,
    keys, entropy, distance, shares, inverse, row_max, row_sum, logsumexp,
):  # fmt: skip
    """Turn a strip's scores (R, W) into weights relative to their row's maximum, in place, and write all statistics."""
    size = strip.shape[1]
    lanes = np.empty(LANES, np.float32)
    for n in range(len(band_edges) - 1):
        r = band_edges[n]
        band_first, band_last = size, 0
        while r < band_edges[n + 1]:
            together = TOGETHER if r + TOGETHER <= band_edges[n + 1] else 1
            finite, first, last = True, size, 0  # columns beyond [first, last) are 0 in all rows taken together
            for i in range(r, r + together):
                a = min(size, max(0, low + i))
                b = max(a, min(size, high + i))
                # whole groups, as far as there are: unused columns in them get the score -inf, those beyond weight 0
                begin, end = a // GROUP * GROUP, min(size, -(-b // GROUP) * GROUP)
                strip[i, :begin] = np.float32(0.0)
                strip[i, begin:a] = np.float32(-np.inf)
                strip[i, b:end] = np.float32(-np.inf)
                strip[i, end:] = np.float32(0.0)
                first, last = min(first, begin), max(last, end)
                row = strip[i, begin:end]
                _strip_lane_maxima(row, chunks)
                values[i, :], keys[i, :] = LOWEST, -1
                most = _top_of_strip_row(row, start + begin, chunks, lanes, values[i], keys[i])
                if most == LOWEST and not _strip_row_has_nan(row):  # it sees no key
                    row[:] = np.float32(0.0)
                    alone = np.float32(0.0 if sink == np.float32(-np.inf) else 1.0)
                    shares[i], row_sum[i], row_max[i], logsumexp[i] = alone, alone, sink, sink
                    inverse[i], entropy[i], distance[i] = np.float32(0.0), np.float32(0.0), np.float32(0.0)
                    values[i, :] = np.float32(0.0)
                    continue
                s, e, d, j = 0.0, 0.0, 0.0, 0
                while j < len(row):  # the rest of a loop over vectors has sums of its own: large ones would swallow it
                    stop = min(len(row), j + PART) // 32 * 32
                    stop = stop if stop > j else len(row)
                    at = place - i + begin + j
                    x, y, z = _exponentiate_strip_row(row[j:stop], most, away[at : at + stop - j])
                    s, e, d, j = s + x, e + y, d + z, stop
                top_max, whole, factor, share = np.float64(most), s, 1.0, 0.0
                if sink != np.float32(-np.inf):
                    top_max = max(np.float64(most), np.float64(sink))
                    factor = math.exp(np.float64(most) - top_max)
                    whole = s * factor + math.exp(np.float64(sink) - top_max)
                    share = math.exp(np.float64(sink) - top_max) / whole
                scaled = factor / whole
                inverse[i], row_max[i], row_sum[i] = scaled, top_max, whole
                logsumexp[i] = top_max + math.log(whole)
                mean = -scaled * (LN_2 * e + math.log(scaled) * s) if scaled != 0.0 else 0.0
                if share > 0.0:
                    mean -= share * math.log(share)
                entropy[i], distance[i], shares[i] = mean, d / s, share
                for t in range(values.shape[1]):
                    value = math.exp(np.float64(values[i, t]) - np.float64(most)) * scaled if keys[i, t] >= 0 else 0.0
                    values[i, t] = value
                finite = finite and scaled == scaled
            if together == TOGETHER and finite:
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
                for i in range(r, r + together):  # NaN · 0 is NaN: a row with it may not reach columns it does not use
                    a = min(size, max(0, low + i))
                    b = max(a, min(size, high + i))
                    _add_one_strip_row(strip[i, a:b], inverse[i], band[a:b])
            band_first, band_last = min(band_first, first), max(band_last, last)
            r += together
        if band_first < band_last:
            _flush_strip_band(
                band[band_first:band_last], received[band_first:band_last], cell_edges - band_first, picture[cells[n]]
            )
