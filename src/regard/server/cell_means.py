"""Shrink one head's attention matrix to means of square cells, band by band, in one pass over its scores.

The pass also stores row maxima and row sums in the map, so later reads of regions needn't compute them.
"""

from collections.abc import Iterator
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from regard import server
from regard.attention import region_scores
from regard.attention.attention_map import AttentionMap
from regard.attention.kernels import threads
from regard.attention.kernels.cpu import forward as cpu

CELL = 16  # number of queries, and of keys, per cell
ROWS = 512  # queries per task of a thread, a multiple of CELL
BLOCKS = 4  # tasks per thread in each yielded band
WEIGHTS = 1 << 26  # largest number of weights per band if whole rows are computed


def cell_means(weights: AttentionMap, start: int = 0) -> Iterator[tuple[int, Float[Tensor, "rows cols"]]]:
    """Yield (first query, means of CELL × CELL weights) for each band of queries of a map with one head.

    The number of queries per band is a multiple of ROWS, except in the last band.
    Cells at the right and bottom edge may average fewer weights. Means are in float32 or the map's dtype.
    start: the query to begin with, a multiple of CELL.
    """
    query, key, length = weights.query, weights.key, weights.query.shape[2]
    if region_scores.dtype_of(query, key) != torch.float32 or not cpu.fits(query, key, key, weights.rule):
        step = max(1, WEIGHTS // max(1, key.shape[2]) // ROWS) * ROWS
        first_axes = (slice(0, 1),) * (weights.ndim - 2)
        for first in range(start, length, step):  # any device, any dtype
            region = weights[(*first_axes, slice(first, min(first + step, length)), slice(None))]
            yield first, region_cell_means(region.reshape(region.shape[-2:]), CELL).cpu()
        return
    query, key, rule = query[0, 0].detach(), key[0, 0].detach(), weights.near_rule
    step, compute = ROWS * BLOCKS * threads.worker_thread_count(), server.cell_mean_kernel.tiled_cell_means
    for first in range(start, length, step):
        last = min(first + step, length)
        blocks = range(first, last, ROWS)
        tasks = [partial(compute, query, key, rule, block, min(block + ROWS, last)) for block in blocks]
        results = threads.run_on_worker_threads(tasks)
        row_max, row_sum = (torch.cat([result[n] for result in results]) for n in (1, 2))
        weights._rows.keep(slice(0, 1), slice(0, 1), slice(first, last), row_max, row_sum)
        yield first, torch.cat([means for means, _, _ in results])


def region_cell_means(region: Float[Tensor, "r c"], cell: int) -> Float[Tensor, "rows cols"]:
    """Compute the means of cell × cell weights. Cells at the right and bottom edge may average fewer weights."""
    if cell == 1:
        return region
    return _mean_of_cell_rows(_mean_of_cell_rows(region, cell).mT, cell).mT.contiguous()


def _mean_of_cell_rows(numbers: Float[Tensor, "r c"], cell: int) -> Float[Tensor, "rows c"]:
    end = numbers.shape[0] // cell * cell
    parts = [numbers[:end].reshape(-1, cell, numbers.shape[1]).mean(1)]
    return torch.cat(parts + ([numbers[end:].mean(0, keepdim=True)] if end < len(numbers) else []))
