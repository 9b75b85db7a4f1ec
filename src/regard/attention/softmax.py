"""The softmax of a row of scores from its row maximum and row sum.

    row_max = max(scores)
    row_sum = sum(exp(scores - row_max)), a sink's score joining both
    weight  = exp(score - row_max) / row_sum

Both are updated block by block: where the maximum rises from m to m', the sum so far is multiplied by exp(m - m').
Source: Milakov & Gimelshein 2018, "Online normalizer calculation for softmax".
A row that may attend to nothing has the row maximum -inf, the row sum 0 and the weights 0.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.masks import Index
from regard.attention.scores import ScoreRule, key_blocks, score_tile


def row_max_sum(
    query: Float[Tensor, "B H L D"],
    key: Float[Tensor, "B G S D"],
    rule: ScoreRule,
    batch: Index,
    heads: Index,
    rows: Index,
    dtype: torch.dtype | None = None,
) -> tuple[Float[Tensor, "b h r"], Float[Tensor, "b h r"]]:
    """Compute (row maximum, row sum) of queries over all their keys, sinks included.

    query, key, rule, batch, heads, dtype: as in `score_tile`. rows: the queries.
    """
    empty = score_tile(query, key, rule, batch, heads, rows, slice(0, 0), dtype)  # (b, h, r, 0): its shape and dtype
    row_max = empty.new_full(empty.shape[:-1], -torch.inf)
    row_sum = torch.zeros_like(row_max)
    for cols in key_blocks(query, key, rule, batch, heads, rows):
        scores = score_tile(query, key, rule, batch, heads, rows, cols, dtype)
        new_max = torch.maximum(row_max, scores.amax(-1))
        row_sum = row_sum * softmax_rescaling(row_max, new_max) + torch.exp(
            scores - finite_max(new_max)[..., None]
        ).sum(-1)
        row_max = new_max
    sink = sink_column(rule, heads, row_max.dtype)
    return (row_max, row_sum) if sink is None else add_sink_to_rows(row_max, row_sum, sink)


def softmax_weights(scores: Float[Tensor, "b h r c"], row_max: Tensor, row_sum: Tensor) -> Float[Tensor, "b h r c"]:
    """Compute the weights of a region from its scores."""
    return torch.exp(scores - finite_max(row_max)[..., None]) / torch.where(row_sum == 0, 1.0, row_sum)[..., None]


def softmax_rescaling(old_max: Tensor, new_max: Tensor) -> Tensor:
    """Compute what a sum of exp(score - old_max) is multiplied by for new_max; 0 where nothing was summed."""
    return torch.where(old_max == -torch.inf, 0.0, torch.exp(old_max - finite_max(new_max)))


def finite_max(row_max: Tensor) -> Tensor:
    """Replace the -inf of wholly masked rows by 0, so that a row maximum may be subtracted."""
    return torch.where(row_max == -torch.inf, 0.0, row_max)


def sink_column(rule: ScoreRule, heads: Index, dtype: torch.dtype) -> Float[Tensor, "1 h 1"] | None:
    """Return the sinks of a tile's heads, broadcastable to (b, h, r); None without sinks."""
    return None if rule.sinks is None else rule.sinks[heads].to(dtype)[None, :, None]


def add_sink_to_rows(row_max: Tensor, row_sum: Tensor, sink: Tensor) -> tuple[Tensor, Tensor]:
    """Join a sink's score to row maxima and row sums: it is all there is where a query may attend to nothing."""
    new_max = torch.maximum(row_max, sink)
    with_sink = row_sum * softmax_rescaling(row_max, new_max) + torch.exp(sink - finite_max(new_max))
    return new_max, torch.where(new_max == -torch.inf, 0.0, with_sink)


def sink_share(rule: ScoreRule, heads: Index, row_max: Tensor, row_sum: Tensor) -> Tensor | None:
    """Compute the part of queries' attention that their head's sink takes, (b, h, r); None without sinks."""
    sink = sink_column(rule, heads, row_max.dtype)
    return None if sink is None else torch.where(row_sum == 0, 0.0, torch.exp(sink - row_max) / row_sum)
