"""Compute the scores that a map's regions are read from: the same numbers whatever region is asked for.

A weight is exp(score - row maximum) / row sum. Products of different shapes round a score differently, at 10,000 by
1e-3: with a row sum from one of them and scores from another, weights of 1.001 would come out. So scores come from

- a product that rounds every number in one way (`kernels/cpu/fixed_order.py`): large maps on CPUs, and float64 there;
- a product in float64, whose rounding is far below what float32 can show: all else.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.masks import Index
from regard.attention.scores import Product, ScoreRule, grouped_product, score_tile, working_dtype
from regard.attention.softmax import finite_max

# Scores of a head, of at least so many queries, from which numba's half second of loading, once, is worth it: keys are
# not copied to float64 then.
CPU_SCORES, CPU_QUERIES = 1 << 20, 64


def dtype_of(query: Float[Tensor, "B H L D"], key: Float[Tensor, "B G S D"]) -> torch.dtype:
    """Return the dtype that a map's scores, row maxima and row sums are computed in."""
    if in_fixed_order(query, key) or query.device.type == "mps":  # which has no float64
        return working_dtype(query)
    return torch.float64


def scores(
    query: Float[Tensor, "B H L D"],
    key: Float[Tensor, "B G S D"],
    rule: ScoreRule,
    batch: Index,
    heads: Index,
    rows: Index,
    cols: Index,
) -> Float[Tensor, "b h r c"]:
    """Compute the scores of a region in `dtype_of`, -inf where the mask forbids. Arguments as in `score_tile`."""
    dtype = dtype_of(query, key)
    return score_tile(query, key, rule, batch, heads, rows, cols, dtype, product_of(query, key))


def weights(
    scores: Float[Tensor, "b h r c"],
    row_max: Float[Tensor, "b h r"],
    row_sum: Float[Tensor, "b h r"],
    dtype: torch.dtype,
) -> Float[Tensor, "b h r c"]:
    """Compute the weights of a region in dtype. Only the difference of score and maximum is rounded before exp.

    row_max, row_sum: over all keys that a query may attend to, its head's sink included.
    """
    exponentials = (scores - finite_max(row_max)[..., None]).to(dtype).exp_()
    return exponentials.div_(torch.where(row_sum == 0, 1.0, row_sum).to(dtype)[..., None])


def in_fixed_order(query: Tensor, key: Tensor) -> bool:
    """Return whether this map's scores come from the product that rounds in one way."""
    length, size = query.shape[2], key.shape[2]
    if query.device.type != "cpu" or torch.compiler.is_compiling():
        return False
    return query.dtype == torch.float64 or max(length, CPU_QUERIES) * size >= CPU_SCORES


def product_of(query: Tensor, key: Tensor) -> Product:
    """Return the product that this map's scores come from."""
    if not in_fixed_order(query, key):
        return grouped_product
    from regard.attention.kernels.cpu import fixed_order

    return fixed_order.grouped
