"""The Numba passes of the forward: a tile of scores becomes weights relative to its rows' running maximum, in place.

Shapes: R rows and C columns of a tile, E value width. Source of the running (max, sum): Milakov & Gimelshein 2018.
"""

import math

import numpy as np

from regard.attention.kernels.cpu.vector import LOG2_E, LOWEST, compiled, exp2, larger


@compiled("void(f4[:,::1], i8, i8, f4[::1], f4[::1], f4[:,::1], f4[:,::1], b1)")
def absorb(scores, low, high, top, total, mixed, pending, first):
    """Turn scores (R, C) into exp(score - running max) and bring top, total (R,) and mixed (R, E) up to date.

    Row r uses columns [low + r, high + r); the others become 0. pending (R, E) is the last tile's weights @ value: it
    is added here, where mixed is rescaled anyway.
    """
    rows, cols = scores.shape
    width = mixed.shape[1]
    for r in range(rows):
        a = min(cols, max(0, low + r))
        b = max(a, min(cols, high + r))
        row = scores[r, a:b]  # a slice of its own: only indices from 0 on spare LLVM the test for negative ones
        best = LOWEST
        for j in range(len(row)):
            best = larger(best, row[j])
        old = top[r]
        new = larger(old, best)
        part = np.float32(0.0)
        for j in range(len(row)):
            weight = exp2((row[j] - new) * LOG2_E)
            row[j] = weight
            part += weight
        scores[r, :a] = np.float32(0.0)
        scores[r, b:] = np.float32(0.0)
        top[r] = new
        if first:
            total[r] = part
        else:
            fade = exp2((old - new) * LOG2_E)
            total[r] = total[r] * fade + part
            for e in range(width):
                mixed[r, e] = (mixed[r, e] + pending[r, e]) * fade


@compiled("void(f4[:,::1], i8, i8, f4[::1], f4[::1])")
def gauge(scores, low, high, top, total):
    """Bring the rows' (max, sum) up to date with a tile, and leave the scores as they are."""
    rows, cols = scores.shape
    for r in range(rows):
        a = min(cols, max(0, low + r))
        b = max(a, min(cols, high + r))
        row = scores[r, a:b]
        best = LOWEST
        for j in range(len(row)):
            best = larger(best, row[j])
        old = top[r]
        new = larger(old, best)
        part = np.float32(0.0)
        for j in range(len(row)):
            part += exp2((row[j] - new) * LOG2_E)
        top[r] = new
        total[r] = total[r] * exp2((old - new) * LOG2_E) + part


@compiled("void(f4[::1], f4[::1], f4)")
def settle(top, total, sink):
    """Let the sink (-inf for none) join the sums: it is all that rows have which may attend to nothing."""
    for r in range(len(top)):
        if top[r] == LOWEST:
            top[r] = sink
            total[r] = np.float32(0.0 if sink == np.float32(-np.inf) else 1.0)
        elif sink != np.float32(-np.inf):
            new = larger(top[r], sink)
            total[r] = total[r] * np.float32(math.exp(top[r] - new)) + np.float32(math.exp(sink - new))
            top[r] = new


@compiled("void(f4[:,::1], f4[:,::1], f4[::1], f4[::1], f4, f4[:,::1], f4[::1])")
def finish(mixed, pending, top, total, sink, output, logsumexp):
    """Divide by the sums: output (R, E), logsumexp (R,), and top and total with the sink in them."""
    rows, width = mixed.shape
    for r in range(rows):
        before = top[r]
        if before == LOWEST:
            for e in range(width):
                output[r, e] = np.float32(0.0)
            logsumexp[r] = sink
            top[r] = sink
            total[r] = np.float32(0.0 if sink == np.float32(-np.inf) else 1.0)
            continue
        share = np.float32(1.0)
        if sink != np.float32(-np.inf):
            share = np.float32(math.exp(before - larger(before, sink)))
            total[r] = total[r] * share + np.float32(math.exp(sink - larger(before, sink)))
            top[r] = larger(before, sink)
        share = share / total[r]
        for e in range(width):
            output[r, e] = (mixed[r, e] + pending[r, e]) * share
        logsumexp[r] = np.float32(np.float64(top[r]) + math.log(np.float64(total[r])))
