"""The Numba passes of the statistics: a tile's weights are summed up as they are computed, and never stored.

Shapes: R rows and C columns of a tile, N bands of rows that each lie in one row of the pooled picture, T keys asked of
top, Q columns of the picture. A weight here is exp(score - shift), not yet divided by its row's sum.
"""

import math

import numpy as np

from regard.attention.kernels.cpu.vector import LN_2, LOG2_E, LOWEST, compiled, exp2, larger

CHUNK = 16  # columns that top looks at together: one vector of AVX-512; 32 and 64 were slower


@compiled()
def _sums_of_four_rows(x, y, z, u, band, shift, inverse, place):
    """Compute four rows' sums of weight, weight · log2 weight and weight · distance, and their largest scores.

    Their weights are added to the band. Four together, because the band is then read and written once for four rows,
    and four sums do not wait for each other.
    """
    a, b, c, d = shift[0], shift[1], shift[2], shift[3]
    f, g, h, k = inverse[0], inverse[1], inverse[2], inverse[3]
    sa = sb = sc = sd = np.float32(0.0)
    ea = eb = ec = ed = np.float32(0.0)
    da = db = dc = dd = np.float32(0.0)
    ma = mb = mc = md = LOWEST
    for j in range(len(band)):
        away = np.float32(place - np.int32(j))
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
        da += wa * abs(away)
        db += wb * abs(away + np.float32(1.0))
        dc += wc * abs(away + np.float32(2.0))
        dd += wd * abs(away + np.float32(3.0))
        ma = larger(ma, x[j])
        mb = larger(mb, y[j])
        mc = larger(mc, z[j])
        md = larger(md, u[j])
        band[j] += (wa * f + wb * g) + (wc * h + wd * k)
    return (sa, sb, sc, sd), (ea, eb, ec, ed), (da, db, dc, dd), (ma, mb, mc, md)


@compiled()
def _sums_of_one_row(x, band, shift, inverse, place):
    """Compute the same of one row: for what a band of positions leaves over of four."""
    s = e = d = np.float32(0.0)
    m = LOWEST
    for j in range(len(band)):
        t = (x[j] - shift) * LOG2_E
        w = exp2(t)
        s += w
        e += w * larger(t, np.float32(-127.0))
        d += w * abs(np.float32(place - np.int32(j)))
        m = larger(m, x[j])
        band[j] += w * inverse
    return s, e, d, m


@compiled()
def _next_largest_of_row(row, begin, end, value, place):
    """Return the largest number of row[begin:end] after (value, place), by falling value, then by rising place."""
    part = row[begin:end]
    most = LOWEST
    for j in range(len(part)):
        later = part[j] < value or (part[j] == value and begin + j > place)
        most = larger(most, part[j] if later else LOWEST)
    return most


@compiled()
def _update_top_from_tile(row, start, chunks, values, keys):
    """Update a row's top (scores, keys) with the columns start, start + 1, … of a tile.

    The tile's columns are taken by falling score, ties by rising key, until one does not beat what is kept. So each
    comes after all its equals, and most rows of most tiles end at once.
    """
    size, last = len(row), len(values) - 1
    count = size // CHUNK
    for n in range(count):
        most = LOWEST
        for j in range(CHUNK):
            most = larger(most, row[n * CHUNK + j])
        chunks[n] = most
    value, place = np.float32(np.inf), -1  # what was taken last
    if count * CHUNK < size:
        chunks[count] = _next_largest_of_row(row, count * CHUNK, size, value, place)
        count += 1
    maxima = chunks[:count]
    while True:
        most = LOWEST
        for n in range(len(maxima)):
            most = larger(most, maxima[n])
        if not most > values[last]:
            return
        n = 0
        while maxima[n] != most:
            n += 1
        begin, end = n * CHUNK, min(size, (n + 1) * CHUNK)
        place = begin if most < value else max(begin, place + 1)
        while row[place] != most:
            place += 1
        value = most
        maxima[n] = _next_largest_of_row(row, begin, end, value, place)
        at = last
        while at > 0 and values[at - 1] < value:
            values[at], keys[at] = values[at - 1], keys[at - 1]
            at -= 1
        values[at], keys[at] = value, start + place


@compiled(
    "void(f4[:,::1], i8, i8, i8, i8, f4[::1], f4[::1], f4[:,::1], i8[::1], f8[:,::1], f4[::1], f4[::1], f4[:,::1], "
    "i8[:,::1])"
)
def add_tile(scores, start, low, high, place, shift, inverse, bands, band_edges, sums, largest, chunks, values, keys):
    """Add a tile of scores to its rows' sums, largest weights, and its bands' columns."""
    cols = scores.shape[1]
    top_k = values.shape[1]
    for n in range(len(band_edges) - 1):
        r, end = band_edges[n], band_edges[n + 1]
        while r < end:
            together = 4 if r + 4 <= end else 1
            # columns that all of these rows use: from the last row's first to the first row's last
            a = min(cols, max(0, low + r + together - 1))
            b = max(a, min(cols, high + r))
            m = (LOWEST, LOWEST, LOWEST, LOWEST)
            if together == 4:
                s, e, d, m = _sums_of_four_rows(
                    scores[r, a:b],
                    scores[r + 1, a:b],
                    scores[r + 2, a:b],
                    scores[r + 3, a:b],
                    bands[n, start + a : start + b],
                    shift[r : r + 4],
                    inverse[r : r + 4],
                    np.int32(place + r - a),
                )
                for i in range(4):
                    sums[0, r + i] += s[i]
                    sums[1, r + i] += e[i]
                    sums[2, r + i] += d[i]
            for i in range(r, r + together):
                most = m[i - r]
                first = min(cols, max(0, low + i))
                final = max(first, min(cols, high + i))
                for side in range(2):
                    if together == 1:
                        left, right = (first, final) if side == 0 else (final, final)
                    elif side == 0:
                        left, right = first, min(a, final)
                    else:
                        left, right = max(b, first), final
                    if left < right:
                        one = _sums_of_one_row(
                            scores[i, left:right],
                            bands[n, start + left : start + right],
                            shift[i],
                            inverse[i],
                            np.int32(place + i - left),
                        )
                        sums[0, i] += one[0]
                        sums[1, i] += one[1]
                        sums[2, i] += one[2]
                        most = larger(most, one[3])
                largest[i] = larger(largest[i], most)
                if top_k > 0 and most > values[i, top_k - 1]:
                    _update_top_from_tile(scores[i, first:final], start + first, chunks, values[i], keys[i])
            r += together


@compiled("void(f4[:,::1], i8, i8, i8[::1], f8[::1], i8[::1], f8[:,::1])")
def flush_tile_bands(bands, first, last, cells, received, edges, picture):
    """Move the bands' columns [first, last) into received and the picture, and set them to 0."""
    for n in range(len(bands)):
        band = bands[n, first:last]
        into = received[first:last]
        for j in range(len(band)):
            into[j] += band[j]
        for q in range(len(edges) - 1):
            cell = bands[n, max(first, edges[q]) : max(first, min(last, edges[q + 1]))]
            cell_sum = 0.0
            for j in range(len(cell)):
                cell_sum += cell[j]
            picture[cells[n], q] += cell_sum
        band[:] = np.float32(0.0)


@compiled("void(f4[::1], f4[::1], f4[::1], f4[::1])")
def begin_tile_rows(row_max, row_sum, shift, inverse):
    """Write shift, what scores are lowered by, and inverse, what weights are multiplied by.

    Both are of row_max and row_sum, each (R,), and finite also for rows that may attend to nothing.
    """
    for r in range(len(row_max)):
        empty = row_max[r] == np.float32(-np.inf)
        shift[r] = np.float32(0.0) if empty else row_max[r]
        inverse[r] = np.float32(1.0) if empty else np.float32(1.0) / row_sum[r]


@compiled("i8(f4[::1], f4[::1], f4, f8, f8[:,::1], f4[::1], f4[::1], f4[::1], f4[::1], f4[:,::1], i8[:,::1])")
def finish_tile_rows(row_max, row_sum, sink, tolerance, sums, largest, entropy, distance, shares, values, keys):
    """Turn the sums into statistics, and count the rows whose row maximum or row sum they refute.

    Such a row's weights and sink share do not sum to 1, or one of its scores is far above its row maximum.
    """
    refuted = 0
    for r in range(len(row_max)):
        if row_max[r] == np.float32(-np.inf):
            refuted += largest[r] != LOWEST
            entropy[r] = distance[r] = shares[r] = np.float32(0.0)
            for t in range(values.shape[1]):
                values[r, t] = np.float32(0.0)
            continue
        whole = np.float64(row_sum[r])
        share = 0.0 if sink == np.float32(-np.inf) else math.exp(np.float64(sink) - np.float64(row_max[r])) / whole
        on_keys = sums[0, r] / whole
        if not (abs(on_keys + share - 1.0) <= tolerance and largest[r] <= row_max[r] + np.float32(1.0)):
            refuted += 1
        mean = math.log(whole) * on_keys - LN_2 * sums[1, r] / whole
        if share > 0.0:
            mean -= share * math.log(share)
        entropy[r] = mean
        distance[r] = sums[2, r] / sums[0, r] if sums[0, r] != 0.0 else 0.0
        shares[r] = share
        for t in range(values.shape[1]):
            score = np.float64(values[r, t]) - np.float64(row_max[r])
            values[r, t] = math.exp(score) / whole if keys[r, t] >= 0 else 0.0
    return refuted
