"""The Numba passes of the forward: a tile of scores becomes exp(score - row maximum), in place.

Shapes: R rows and C columns of a tile, E value width. Row r uses columns [low + r, high + r) of a tile; rows that have
seen no score yet have the row maximum LOWEST. Source of the running row maximum and row sum: Milakov & Gimelshein 2018,
"Online normalizer calculation for softmax".
"""

import math

import numpy as np

from regard.attention.kernels.cpu.vector import LOG2_E, LOWEST, compiled, exp2, larger


@compiled("void(f4[:,::1], i8, i8, f4[::1], f4[::1], f4[:,::1], f4[:,::1], b1)")
def exponentiate_tile(scores, low, high, row_max, row_sum, weighted, pending, first):
    """Turn scores into exp(score - row_max), 0 in unused columns; update row_max, row_sum and weighted."""
    rows, cols = scores.shape
    width = weighted.shape[1]
    for r in range(rows):
        a = min(cols, max(0, low + r))
        b = max(a, min(cols, high + r))
        row = scores[r, a:b]  # a slice of its own: only indices from 0 on spare LLVM the test for negative ones
        best = LOWEST
        for j in range(len(row)):
            best = larger(best, row[j])
        old_max = row_max[r]
        new_max = larger(old_max, best)
        part = np.float32(0.0)
        for j in range(len(row)):
            weight = exp2((row[j] - new_max) * LOG2_E)
            row[j] = weight
            part += weight
        scores[r, :a] = np.float32(0.0)
        scores[r, b:] = np.float32(0.0)
        row_max[r] = new_max
        if first:
            row_sum[r] = part
        else:
            rescaling = exp2((old_max - new_max) * LOG2_E)
            row_sum[r] = row_sum[r] * rescaling + part
            for e in range(width):
                weighted[r, e] = (weighted[r, e] + pending[r, e]) * rescaling


@compiled("void(f4[:,::1], i8, i8, f4[::1], f4[::1])")
def update_tile_row_sums(scores, low, high, row_max, row_sum):
    """Update row_max and row_sum (R,) with a tile of scores (R, C), which stay as they are.

    Row r uses columns [low + r, high + r) of them.
    """
    rows, cols = scores.shape
    for r in range(rows):
        a = min(cols, max(0, low + r))
        b = max(a, min(cols, high + r))
        row = scores[r, a:b]
        best = LOWEST
        for j in range(len(row)):
            best = larger(best, row[j])
        old_max = row_max[r]
        new_max = larger(old_max, best)
        part = np.float32(0.0)
        for j in range(len(row)):
            part += exp2((row[j] - new_max) * LOG2_E)
        row_max[r] = new_max
        row_sum[r] = row_sum[r] * exp2((old_max - new_max) * LOG2_E) + part


@compiled("void(f4[::1], f4[::1], f4)")
def add_sink(row_max, row_sum, sink):
    """Join the sink's score (-inf for none) to row_max and row_sum: it is all that rows have which see no key."""
    for r in range(len(row_max)):
        if row_max[r] == LOWEST:
            row_max[r] = sink
            row_sum[r] = np.float32(0.0 if sink == np.float32(-np.inf) else 1.0)
        elif sink != np.float32(-np.inf):
            new_max = larger(row_max[r], sink)
            row_sum[r] = row_sum[r] * np.float32(math.exp(row_max[r] - new_max)) + np.float32(math.exp(sink - new_max))
            row_max[r] = new_max


@compiled("void(f4[:,::1], f4[:,::1], f4[::1], f4[::1], f4, f4[:,::1], f4[::1])")
def divide_tile_by_sums(weighted, pending, row_max, row_sum, sink, output, logsumexp):
    """Write output (R, E) and logsumexp (R,), and join the sink (-inf for none) to row_max and row_sum.

    weighted + pending (R, E): exponentials @ value over all tiles.
    """
    rows, width = weighted.shape
    for r in range(rows):
        before = row_max[r]
        if before == LOWEST:
            for e in range(width):
                output[r, e] = np.float32(0.0)
            logsumexp[r] = sink
            row_max[r] = sink
            row_sum[r] = np.float32(0.0 if sink == np.float32(-np.inf) else 1.0)
            continue
        factor = np.float32(1.0)
        if sink != np.float32(-np.inf):
            factor = np.float32(math.exp(before - larger(before, sink)))
            row_sum[r] = row_sum[r] * factor + np.float32(math.exp(sink - larger(before, sink)))
            row_max[r] = larger(before, sink)
        factor = factor / row_sum[r]
        for e in range(width):
            output[r, e] = (weighted[r, e] + pending[r, e]) * factor
        logsumexp[r] = np.float32(np.float64(row_max[r]) + math.log(np.float64(row_sum[r])))
