"""The blockwise forward on CPUs. It takes about half the time of PyTorch's fused kernel if oneDNN is faster than MKL.

Tiles as in Dao et al. 2022, "FlashAttention", with the running row maximum and row sum of Milakov & Gimelshein 2018.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.kernels import cpu as compiled
from regard.attention.kernels import threads
from regard.attention.kernels.matmul import product
from regard.attention.map_statistics import KernelResult
from regard.attention.scores import ScoreRule

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
FLOOR = -1e37  # scores at or below this count as masked


def fits(query: Tensor, key: Tensor, value: Tensor, rule: ScoreRule, dropout: float = 0.0) -> bool:
    """Return whether `forward` supports a call: on a CPU, up to float32, no dropout, no empty tensors.

    A query's biases may not all be near the lowest float32, which means "no score yet" in the passes.

    query, key, value, rule, dropout: of the call, as in `dispatch.compute`.
    """
    if query.device.type != "cpu" or query.dtype not in DTYPES or dropout > 0 or torch.compiler.is_compiling():
        return False
    if 0 in query.shape or 0 in key.shape or value.shape[-1] == 0:
        return False
    if rule.bias is None:
        return True
    low = rule.bias <= FLOOR
    finite = low & (rule.bias != -torch.inf)  # a query whose other keys are masked may have only these
    return not (bool(finite.any()) and (rule.mask is not None or bool((low.all(-1) & finite.any(-1)).any())))


def forward(
    query: Float[Tensor, "B H L D"], key: Float[Tensor, "B G S D"], value: Float[Tensor, "B G S E"], rule: ScoreRule
) -> KernelResult:
    """Compute output, logsumexp, row maxima and row sums, the last three in float32, without gradients.

    Only separate row maxima and row sums keep the precision of scores in the thousands.

    query, key, value, rule: of a call that `fits`, as in `dispatch.compute`.
    """
    batch, heads, length = query.shape[:3]
    output = query.new_empty(batch, heads, length, value.shape[-1])
    logsumexp, row_max, row_sum = (torch.empty(batch, heads, length) for _ in range(3))
    result = KernelResult(output, logsumexp, "blockwise-cpu", (row_max, row_sum))
    forward_rows(query, key, value, rule, range(batch), range(heads), slice(0, length), result)
    return result


def forward_rows(
    query: Float[Tensor, "B H L D"],
    key: Float[Tensor, "B G S D"],
    value: Float[Tensor, "B G S E"] | None,
    rule: ScoreRule,
    texts: Sequence[int],
    heads: Sequence[int],
    rows: slice,
    result: KernelResult,
) -> None:
    """Write the results of `forward` for the selected texts, heads and queries into the result of the whole call.

    query, key, value, rule: as in `forward`. Without a value, only row maxima and row sums are computed.
    texts, heads, rows: the selected texts, heads and queries.
    """
    call = query.detach(), key.detach(), None if value is None else value.detach(), rule.detached()
    task, multiply, workers = partial(_forward_rows_of_head, *call), product(), threads.worker_thread_count()
    parts = compiled.tiles.split_into_thread_tasks(len(texts) * len(heads), rows.stop - rows.start, workers)
    threads.run_on_worker_threads(
        [
            partial(task, b, h, rows.start + start, rows.start + stop, multiply, result)
            for b in texts
            for h in heads
            for start, stop in reversed(parts)  # longest first: with a causal mask, this is the last
        ]
    )


def _forward_rows_of_head(
    query: Tensor,
    key: Tensor,
    value: Tensor | None,
    rule: ScoreRule,
    b: int,
    h: int,
    start: int,
    stop: int,
    multiply: Callable[[Tensor, Tensor], Tensor],
    result: KernelResult,
) -> None:
    """Compute queries [start, stop) of one head in blocks of rows, each with all its keys."""
    assert result.row_max_sum is not None
    tiles, vector = compiled.tiles, compiled.vector
    output, logsumexp, (row_max, row_sum) = result.output, result.logsumexp, result.row_max_sum
    head = tiles.HeadTiles.of(query, key, rule, b, h, multiply)
    sink = np.float32(-np.inf if rule.sinks is None else rule.sinks[h].item())
    rows = tiles.rows_per_tile_block(query.shape[0] * query.shape[1], query.shape[2])
    if value is not None:
        v = tiles.contiguous_float32_rows(value[b, h // (query.shape[1] // key.shape[1])])  # (S, E)
    for first in range(start, stop, rows):
        last = min(first + rows, stop)
        block = b, h, slice(first, last)
        block_max, block_sum, block_logsumexp = (t[block].numpy() for t in (row_max, row_sum, logsumexp))
        block_max.fill(np.finfo(np.float32).min)
        block_sum.fill(0.0)
        if value is None:
            for tile in head.tiles(first, last):
                vector.update_tile_row_sums(tile.scores.numpy(), tile.low, tile.high, block_max, block_sum)
            vector.add_sink(block_max, block_sum, sink)
            continue
        weighted = np.zeros((last - first, v.shape[1]), np.float32)
        pending, first_tile = weighted, True
        for tile in head.tiles(first, last):
            vector.exponentiate_tile(
                tile.scores.numpy(), tile.low, tile.high, block_max, block_sum, weighted, pending, first_tile
            )
            pending = multiply(tile.scores, v[tile.start : tile.stop].t()).numpy()
            first_tile = False
        if first_tile:
            pending = np.zeros_like(weighted)
        in_place = output.dtype == torch.float32
        block_output = output[block].numpy() if in_place else np.empty_like(weighted)
        vector.divide_tile_by_sums(weighted, pending, block_max, block_sum, sink, block_output, block_logsumexp)
        if not in_place:
            output[block].copy_(torch.from_numpy(block_output))
