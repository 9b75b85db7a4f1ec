"""The definition of attention in float64, step by step with full matrices. All other code is tested against it.

    scores  = softcap(scale · query @ keyᵀ) + bias, -inf where masked
    weights = softmax(scores), where a sink joins the denominator only
    output  = weights @ value

Shapes: B batch, H query heads, G key/value heads (H % G == 0), L queries, S keys, D query/key width, E value width.
Read `attend.py` next, then `attention_map.py`.

Scaled dot product: Vaswani et al. 2017, "Attention Is All You Need". Sinks: Xiao et al. 2023, "Efficient Streaming
Language Models with Attention Sinks", here as one learned score per head.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Reference:
    """Every intermediate tensor of one attention call, in float64.

    valid: whether mask and bias allow a query at least one key, regardless of its scores. For a query with a score of
    NaN or +inf, the weights on all keys, the output and the logsumexp are NaN.
    """

    output: Float[Tensor, "B H L E"]
    logsumexp: Float[Tensor, "B H L"]
    valid: Bool[Tensor, "B H L"]
    scores: Float[Tensor, "B H L S"]
    weights: Float[Tensor, "B H L S"]
    sink_share: Float[Tensor, "B H L"]


def attention(
    query: Float[Tensor, "B H L D"],
    key: Float[Tensor, "B G S D"],
    value: Float[Tensor, "B G S E"],
    *,
    mask: Bool[Tensor, "..."] | None = None,
    bias: Float[Tensor, "..."] | None = None,
    causal: bool = False,
    window: tuple[int | None, int | None] | None = None,
    offset: int | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    sinks: Float[Tensor, " H"] | None = None,
) -> Reference:
    """Compute attention from its definition, in float64."""
    query, key, value = query.double(), key.double(), value.double()
    batch, heads, length, width = query.shape
    size = key.shape[2]
    if heads != key.shape[1]:  # skipped if equal: repeat_interleave would copy, which is large for a long text
        key = key.repeat_interleave(heads // key.shape[1], dim=1)  # (B, H, S, D)
        value = value.repeat_interleave(heads // value.shape[1], dim=1)  # (B, H, S, E)

    scores = query @ key.mT * (width**-0.5 if scale is None else scale)  # (B, H, L, S)
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if bias is not None:
        scores = scores + bias.double()

    allowed = torch.ones(length, size, dtype=torch.bool, device=query.device)
    offset = size - length if offset is None else offset
    i = torch.arange(length, device=query.device)[:, None] + offset  # position of each query among the keys
    j = torch.arange(size, device=query.device)[None, :]
    if causal:
        allowed = allowed & (j <= i)
    if window is not None:
        left, right = window
        allowed = allowed if left is None else allowed & (j >= i - left)
        allowed = allowed if right is None else allowed & (j <= i + right)
    if mask is not None:
        allowed = allowed & mask
    scores = scores.masked_fill(~allowed, -torch.inf)

    no_sink = torch.full((heads,), -torch.inf, device=query.device)
    sink = (no_sink if sinks is None else sinks).double()[None, :, None, None].expand(batch, heads, length, 1)
    not_forbidden = allowed if bias is None else allowed & (bias != -torch.inf)
    valid = not_forbidden.expand(scores.shape).any(-1)  # (B, H, L)
    joined = torch.cat([scores, sink], dim=-1)  # (B, H, L, S + 1)
    empty = (joined == -torch.inf).all(-1)  # neither a key nor a sink
    shares = joined.masked_fill(empty[..., None], 0.0).softmax(-1).masked_fill(empty[..., None], 0.0)
    weights = shares[..., :-1]
    logsumexp = joined.logsumexp(-1).masked_fill(
        shares.isnan().any(-1), torch.nan
    )  # torch returns +inf for a score of +inf
    return Reference(weights @ value, logsumexp, valid, scores, weights, shares[..., -1])


def top(scores: Float[Tensor, "B H L S"], k: int) -> Int[Tensor, "B H L k"]:
    """Return the k keys with the largest scores. Ties go to the smaller key. -1 fills up if fewer keys are allowed."""
    order = scores.sort(dim=-1, descending=True, stable=True)
    return order.indices[..., :k].masked_fill(order.values[..., :k] == -torch.inf, -1)


def entropy(weights: Float[Tensor, "B H L S"], sink_share: Float[Tensor, "B H L"]) -> Float[Tensor, "B H L"]:
    """Compute the entropy of each query's distribution in nats. The sink counts as one more key."""
    return torch.special.entr(weights).sum(-1) + torch.special.entr(sink_share)


def received(weights: Float[Tensor, "B H L S"]) -> Float[Tensor, "B H S"]:
    """Sum the weights that each key receives from all queries."""
    return weights.sum(-2)


def distance(scores: Float[Tensor, "B H L S"], offset: int = 0) -> Float[Tensor, "B H L"]:
    """Compute the mean |i - j| in positions, weighted by attention; 0 for a query that can't attend to any key.

    The weights on keys are normalized to sum to 1, so a sink has no effect.
    """
    length, size = scores.shape[-2:]
    empty = (scores == -torch.inf).all(-1, keepdim=True)
    weights = scores.masked_fill(empty, 0.0).softmax(-1).masked_fill(empty, 0.0)
    i = torch.arange(length, device=weights.device)[:, None] + offset
    j = torch.arange(size, device=weights.device)[None, :]
    return (weights * (i - j).abs()).sum(-1)


def pooled(weights: Float[Tensor, "B H L S"], rows: int, cols: int) -> Float[Tensor, "B H rows cols"]:
    """Compute the mean weight of each of rows × cols cells. Cell p covers [p·n // parts, (p + 1)·n // parts)."""
    length, size = weights.shape[-2:]
    if not rows or not cols:
        return weights.new_zeros(*weights.shape[:-2], rows, cols)
    down = [weights[..., p * length // rows : (p + 1) * length // rows, :].mean(-2) for p in range(rows)]
    strips = torch.stack(down, -2)  # the mean over a cell's rows, then over its columns
    return torch.stack([strips[..., c * size // cols : (c + 1) * size // cols].mean(-1) for c in range(cols)], -1)
