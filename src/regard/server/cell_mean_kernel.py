"""Compute means of CELL × CELL weights and the queries' row sums in one pass over their scores.

This is an online softmax (Milakov & Gimelshein 2018) with a separate sum for every CELL keys. Each sum is relative to
the row maximum up to its tile until the final row maximum is known.
"""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.kernels.cpu import tiles, vector
from regard.attention.kernels.cpu.vector import LANES, LOG2_E, LOWEST, add_up, compiled, exp2, larger
from regard.attention.kernels.matmul import product
from regard.attention.scores import ScoreRule

CELL = LANES  # number of queries, and of keys, per cell: one or two vectors per row
TILE = tiles.COLS // CELL


def tiled_cell_means(
    query: Float[Tensor, "L D"], key: Float[Tensor, "S D"], rule: ScoreRule, start: int, stop: int
) -> tuple[Float[Tensor, "rows cols"], Float[Tensor, " r"], Float[Tensor, " r"]]:
    """Compute (means, row maxima, row sums) of queries [start, stop) of one head, in float32, on the calling thread.

    Cells at the right and bottom edge may average fewer weights.
    """
    head = tiles.HeadTiles(query, key, rule, 0, 0, product())
    rows, size = stop - start, len(key)
    first, last = head.reach(start, stop)
    first -= first % CELL
    row_max, row_sum = np.full(rows, LOWEST, np.float32), np.zeros(rows, np.float32)
    starts = range(first, last, tiles.COLS)
    sums = np.empty((rows, len(starts) * TILE), np.float32)
    shifts = np.empty((len(starts), rows), np.float32)
    for n, tile in enumerate(head.tiles(start, stop, (first, last))):
        add_tile_to_cells(tile.scores.numpy(), tile.low, tile.high, row_max, row_sum, sums, n * TILE, shifts[n])
    sink = -np.inf if rule.sinks is None else rule.sinks[0].item()
    vector.add_sink(row_max, row_sum, np.float32(sink))
    means = np.zeros((-(-rows // CELL), -(-size // CELL)), np.float32)
    add_tile_cell_weights(sums, shifts, row_max, row_sum, means[:, first // CELL : -(-last // CELL)])
    means[:, :-1] /= CELL
    means[:, -1] /= size - (means.shape[1] - 1) * CELL
    means[:-1] /= CELL
    means[-1] /= rows - (len(means) - 1) * CELL
    means[np.flatnonzero(np.isnan(row_sum)) // CELL] = np.nan  # all its weights are NaN, even outside the band
    return torch.from_numpy(means), torch.from_numpy(row_max), torch.from_numpy(row_sum)


@compiled("void(f4[:,::1], i8, i8, f4[::1], f4[::1], f4[:,::1], i8, f4[::1])")
def add_tile_to_cells(scores, low, high, row_max, row_sum, sums, column, shift):
    """Add exp(score - row_max) of a tile to row_sum, and write the sum over every CELL columns to sums."""
    rows, cols = scores.shape
    line = np.empty(TILE * CELL, np.float32)  # a row's exponentials
    for r in range(rows):
        a = min(cols, max(0, low + r))
        b = max(a, min(cols, high + r))
        allowed = scores[r, a:b]
        best = LOWEST
        for j in range(len(allowed)):
            best = larger(best, allowed[j])
        old_max = row_max[r]
        new_max = larger(old_max, best)
        line[:a] = np.float32(0.0)
        line[b:] = np.float32(0.0)
        values = line[a:b]
        for j in range(len(allowed)):
            values[j] = exp2((allowed[j] - new_max) * LOG2_E)
        cells, part = sums[r, column : column + TILE], np.float32(0.0)
        for c in range(0, TILE, LANES):
            add_up(line, c * CELL, cells, c)
        for c in range(TILE):
            part += cells[c]
        shift[r] = new_max
        row_max[r] = new_max
        row_sum[r] = row_sum[r] * exp2((old_max - new_max) * LOG2_E) + part


@compiled("void(f4[:,::1], f4[:,::1], f4[::1], f4[::1], f4[:,:])")
def add_tile_cell_weights(sums, shifts, row_max, row_sum, cells):
    """Convert a tile's sums of exponentials to weights and add them to cells."""
    for n in range(len(shifts)):
        for r in range(len(row_max)):
            shift = shifts[n, r]
            if shift == LOWEST or row_sum[r] == np.float32(0.0):
                continue  # the row has no allowed key up to this tile
            factor = exp2((shift - row_max[r]) * LOG2_E) / row_sum[r]
            line, target = sums[r, n * TILE : (n + 1) * TILE], cells[r // CELL, n * TILE :]
            for c in range(min(TILE, len(target))):
                target[c] += line[c] * factor
