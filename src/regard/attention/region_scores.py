"""The scores that a map's regions are read from, and their rows' normalisers: alike whatever region is asked for.

A weight is exp(score - row maximum) / row sum. Products of different shapes round a score differently, at 10,000 by
1e-3: with a normaliser from one of them and scores from another, weights of 1.001 would come out. So they come from

- a product that rounds every number in one way (`cpu.fixed`): large maps on CPUs, and float64 there;
- scores in float64, whose rounding is far below what float32 can show: all else.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.kernels.cpu import forward as cpu
from regard.attention.masks import Index
from regard.attention.scores import Product, ScoreRule, finite, grouped_product, normaliser, score_tile, working_dtype

# Scores of a head, of at least so many queries, from which numba's half second of loading, once, is worth it: keys are
# not copied to float64 then.
CPU_SCORES, CPU_QUERIES = 1 << 20, 64


def dtype_of(query: Float[Tensor, "B H L D"], key: Float[Tensor, "B G S D"]) -> torch.dtype:
    """The dtype that a map's scores and normalisers are computed in."""
    if _fixed(query, key) or query.device.type == "mps":  # which has no float64
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
    """Scores of a region in `dtype_of`, -inf where the mask forbids."""
    dtype = dtype_of(query, key)
    return score_tile(query, key, rule, batch, heads, rows, cols, dtype, _product(query, key))


def normalise(
    query: Float[Tensor, "B H L D"], key: Float[Tensor, "B G S D"], rule: ScoreRule, batch: int, head: int, rows: Index
) -> tuple[Float[Tensor, " r"], Float[Tensor, " r"]]:
    """What `scores.normaliser` gives for queries of one head, of the very scores that `scores` gives."""
    large = isinstance(rows, slice) and (rows.stop - rows.start) * key.shape[2] >= CPU_SCORES
    if isinstance(rows, slice) and large and _fixed(query, key) and cpu.fits(query, key, key, rule):
        from regard.attention.kernels.cpu import row_sums as fast  # numba is loaded when it is first needed

        return fast.rows(query, key, rule, batch, head, rows.start, rows.stop)
    one = slice(batch, batch + 1), slice(head, head + 1)
    dtype, product = dtype_of(query, key), _product(query, key)
    top, total = normaliser(query, key, rule, *one, rows, dtype, product)
    return top[0, 0], total[0, 0]


def weigh(
    scores: Float[Tensor, "b h r c"], top: Float[Tensor, "b h r"], total: Float[Tensor, "b h r"], dtype: torch.dtype
) -> Float[Tensor, "b h r c"]:
    """Weights in dtype; 0 in rows that may attend to nothing. Only the difference is rounded to dtype before exp."""
    weights = (scores - finite(top)[..., None]).to(dtype).exp_()
    return weights.div_(torch.where(total == 0, 1.0, total).to(dtype)[..., None])


def _fixed(query: Tensor, key: Tensor) -> bool:
    """Whether this map's scores come from the product that rounds in one way."""
    length, size = query.shape[2], key.shape[2]
    if query.device.type != "cpu" or torch.compiler.is_compiling():
        return False
    return query.dtype == torch.float64 or max(length, CPU_QUERIES) * size >= CPU_SCORES


def _product(query: Tensor, key: Tensor) -> Product:
    if not _fixed(query, key):
        return grouped_product
    from regard.attention.kernels.cpu import fixed_order

    return fixed_order.grouped
