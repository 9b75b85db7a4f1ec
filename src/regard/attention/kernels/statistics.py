"""Compute statistics of a whole attention matrix in one blockwise pass, for any mask, dtype and device."""

import math
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.kernels import cpu as compiled
from regard.attention.kernels.cpu import forward as cpu
from regard.attention.map_statistics import (
    MapStatistics,
    Progress,
    Statistics,
    cell_sizes,
    merge_top_k,
    picture_cells_of_run,
    spread_nan,
)
from regard.attention.masks import positions
from regard.attention.scores import (
    ScoreRule,
    key_blocks,
    query_blocks,
    row_max_sum,
    score_tile,
    sink_share,
    softmax_weights,
    subtract_row_bias,
    working_dtype,
)

# Number of scores from which the compiled CPU pass is worth loading, which takes half a second once.
CPU_SCORES = 1 << 20


def compute(
    query: Float[Tensor, "B H L D"],
    key: Float[Tensor, "B G S D"],
    rule: ScoreRule,
    wanted: Statistics,
    offset: int | None,
    kernel_rows: tuple[Float[Tensor, "B H L"], Float[Tensor, "B H L"]] | None = None,
    progress: Progress | None = None,
    map_count: int = 1,
) -> MapStatistics:
    """Compute the requested statistics with the fastest routine for these arguments."""
    rule = subtract_row_bias(query, key, rule)
    if map_count * math.prod(query.shape[:3]) * key.shape[2] >= CPU_SCORES and cpu.fits(query, key, key, rule):
        rows = kernel_rows if rule.row_bias is None else None  # kernel rows belong to scores without row_bias
        result = compiled.statistics.compute(query, key, rule, wanted, offset, rows, progress)
    else:
        result = blockwise(query, key, rule, wanted, offset, progress)
    return result if rule.sinks is None else with_distances_beside_sinks(query, key, rule, result, offset)


def with_distances_beside_sinks(
    query: Float[Tensor, "B H L D"],
    key: Float[Tensor, "B G S D"],
    rule: ScoreRule,
    result: MapStatistics,
    offset: int | None,
) -> MapStatistics:
    """Recompute the distances of queries whose sink takes all attention. Their weights are too small to average.

    Distances use weights normalized over the keys, so computing them without the sink gives the same result.

    query, key, rule, offset: as in `compute`. result: the statistics, with the sinks.
    """
    if result.distance is None or result.sink_share is None:
        return result
    sink_only = result.sink_share == 1.0
    if not bool(sink_only.any()):
        return result
    distances = compute(query, key, replace(rule, sinks=None), Statistics.only(distance=True), offset).distance
    assert distances is not None
    return replace(result, distance=torch.where(sink_only, distances, result.distance))


def blockwise(
    query: Float[Tensor, "B H L D"],
    key: Float[Tensor, "B G S D"],
    rule: ScoreRule,
    wanted: Statistics,
    offset: int | None,
    progress: Progress | None = None,
) -> MapStatistics:
    """Compute statistics on any device, tile by tile. Row maxima and row sums come first, then sums over weights.

    query, key, rule, wanted, offset, progress: as in `compute`.
    """
    batch_size, head_count, length = query.shape[:3]
    size, dtype, device = key.shape[2], working_dtype(query), query.device

    def zeros(*tail: int) -> Tensor:
        return torch.zeros(batch_size, head_count, *tail, dtype=dtype, device=device)

    tops = None if wanted.top is None else min(wanted.top, size)
    values = None if tops is None else zeros(length, tops)
    keys = None if tops is None else zeros(length, tops).long() - 1
    entropy = zeros(length) if wanted.entropy else None
    received = zeros(size) if wanted.received else None
    distance = zeros(length) if wanted.distance and offset is not None else None
    parts = None if wanted.pooled is None else (min(wanted.pooled[0], length), min(wanted.pooled[1], size))
    pooled = None if parts is None else zeros(*parts)
    shares = None if rule.sinks is None else zeros(length)
    nan_rows = zeros(length).bool()

    for batch, heads, rows in query_blocks(query, key):
        block = batch, heads, rows
        blocks = [*key_blocks(query, key, rule, *block)]
        cached = [score_tile(query, key, rule, *block, cols) for cols in blocks] if len(blocks) == 1 else []
        row_max, row_sum = row_max_sum(query, key, rule, *block, known=cached)
        nan_rows[block] = row_sum.isnan()
        share = sink_share(rule, heads, row_max, row_sum)
        largest: tuple[Tensor, Tensor] | None = None
        on_keys = torch.zeros_like(row_sum)
        for cols in blocks:
            scores = cached[0] if cached else score_tile(query, key, rule, *block, cols)
            weights = softmax_weights(scores, row_max, row_sum)
            if tops is not None:
                largest = merge_top_k(largest, scores, cols, tops)
            if entropy is not None:
                entropy[block] += torch.special.entr(weights).sum(-1)
            if received is not None:
                received[batch, heads, cols] += weights.sum(-2)
            if distance is not None:
                i, j = positions(rows, device)[:, None] + (offset or 0), positions(cols, device)[None, :]
                distance[block] += (weights * (i - j).abs()).sum(-1)
                on_keys += weights.sum(-1)
            if pooled is not None and parts is not None:
                pool_tile_weights(pooled[batch, heads], weights, rows, cols, length, size, parts)
        if values is not None and keys is not None and largest is not None:
            count = largest[1].shape[-1]
            values[batch, heads, rows, :count] = softmax_weights(largest[0], row_max, row_sum)
            keys[batch, heads, rows, :count] = largest[1]
        if distance is not None:  # 0 for a query without keys, not 0 / 0
            distance[block] /= torch.where(on_keys == 0, 1.0, on_keys)
        if share is not None and shares is not None:
            shares[block] = share
            if entropy is not None:
                entropy[block] += torch.special.entr(share)
        if progress is not None:
            progress(row_sum.numel() / (batch_size * head_count * length))
    if pooled is not None and parts is not None:
        pooled /= cell_sizes(length, parts[0], device)[:, None] * cell_sizes(size, parts[1], device)
    spread_nan(nan_rows, values, received, pooled)
    return MapStatistics(values, keys, entropy, received, distance, pooled, shares)


def pool_tile_weights(
    picture: Tensor, weights: Tensor, rows: slice, cols: slice, length: int, size: int, parts: tuple[int, int]
) -> None:
    """Add a tile's weights to the pooled cells that it overlaps.

    picture: (b, h, *parts), sums of weights. rows, cols: the tile's queries and keys, out of length and size.
    """
    across = picture_cells_of_run(rows, length, parts[0], weights.device)
    down = picture_cells_of_run(cols, size, parts[1], weights.device)
    band = weights.new_zeros(*weights.shape[:-1], parts[1]).index_add_(3, down, weights)
    picture.index_add_(2, across, band)
