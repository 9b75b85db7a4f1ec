"""Shrink one head's attention matrix to means of small equal cells, band by band, in one walk over its scores.

The walk finds row maxima and row sums as well, which the map keeps: regions that are read later don't wait for them.
"""

from collections.abc import Iterator
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention import region_scores
from regard.attention.attention_map import AttentionMap
from regard.attention.kernels import cpu as compiled
from regard.attention.kernels import threads
from regard.attention.kernels.cpu import forward as cpu

CELL = 16  # queries and keys of a cell
ROWS = 512  # queries that a thread computes at a time, a multiple of CELL
BLOCKS = 4  # for each thread, between two checks whether the walk is still wanted
WEIGHTS = 1 << 26  # of a band, if whole rows are read


def cell_means(weights: AttentionMap, start: int = 0) -> Iterator[tuple[int, Float[Tensor, "rows cols"]]]:
    """Yield (first query, means of CELL × CELL weights) of a map of one head, band after band of queries.

    Each band but the last has a multiple of ROWS queries.
    The last cells of a row or column are means of as many weights as there are. In float32 or the map's own dtype.
    start: the query to begin with, a multiple of CELL.
    """
    query, key, length = weights.query, weights.key, weights.query.shape[2]
    if region_scores.dtype_of(query, key) != torch.float32 or not cpu.fits(query, key, key, weights.rule):
        step = max(1, WEIGHTS // max(1, key.shape[2]) // ROWS) * ROWS
        alone = (slice(0, 1),) * (weights.ndim - 2)
        for first in range(start, length, step):  # on any device and in any dtype: whole rows are read
            region = weights[(*alone, slice(first, min(first + step, length)), slice(None))]
            yield first, region_cell_means(region.reshape(region.shape[-2:]), CELL).cpu()
        return
    query, key, rule = query[0, 0].detach(), key[0, 0].detach(), weights.near_rule
    step, compute = ROWS * BLOCKS * threads.worker_thread_count(), compiled.cell_means.tiled_cell_means
    for first in range(start, length, step):
        last = min(first + step, length)
        blocks = range(first, last, ROWS)
        tasks = [partial(compute, query, key, rule, block, min(block + ROWS, last)) for block in blocks]
        results = threads.run_on_worker_threads(tasks)
        row_max, row_sum = (torch.cat([result[n] for result in results]) for n in (1, 2))
        weights._rows.keep(slice(0, 1), slice(0, 1), slice(first, last), row_max, row_sum)
        yield first, torch.cat([means for means, _, _ in results])


def region_cell_means(region: Float[Tensor, "r c"], cell: int) -> Float[Tensor, "rows cols"]:
    """Compute the means of cell × cell numbers; cells at the ends are means of fewer numbers."""
    if cell == 1:
        return region
    return _mean_of_cell_rows(_mean_of_cell_rows(region, cell).mT, cell).mT.contiguous()


def _mean_of_cell_rows(numbers: Float[Tensor, "r c"], cell: int) -> Float[Tensor, "rows c"]:
    whole = numbers.shape[0] // cell * cell
    parts = [numbers[:whole].reshape(-1, cell, numbers.shape[1]).mean(1)]
    return torch.cat(parts + ([numbers[whole:].mean(0, keepdim=True)] if whole < len(numbers) else []))
