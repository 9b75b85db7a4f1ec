"""The general kernel, for any mask, bias, dtype and device. It needs O(L + S) memory and has its own backward pass.

Forward: blocks of queries × blocks of keys with a running row maximum and row sum, as in Rabe & Staats 2021,
"Self-attention Does Not Need O(n²) Memory". Backward: scores are recomputed, as in Dao et al. 2022,
"FlashAttention".
"""

from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.kernels.cpu import forward as cpu
from regard.attention.map_statistics import KernelResult
from regard.attention.masks import select
from regard.attention.scores import (
    ScoreRule,
    add_sink_to_rows,
    finite_max,
    grouped_product,
    key_blocks,
    key_heads_of_index,
    matmul,
    query_blocks,
    score_tile,
    sink_column,
    softmax_rescaling,
    softmax_weights,
    working_dtype,
)


def forward(
    query: Float[Tensor, "B H L D"],
    key: Float[Tensor, "B G S D"],
    value: Float[Tensor, "B G S E"],
    rule: ScoreRule,
    dropout: float = 0.0,
    tiles: bool = False,
) -> KernelResult:
    """Compute output and logsumexp of any attention call. Gradients flow to the output."""
    seed = int(torch.randint(2**62, ())) if dropout > 0 else None
    base_rule = replace(rule, bias=None, sinks=None)
    output, logsumexp = _Blockwise.apply(query, key, value, rule.bias, rule.sinks, base_rule, dropout, seed, tiles)
    return KernelResult(output, logsumexp, "blockwise-cpu" if tiles else "blockwise")


class _Blockwise(torch.autograd.Function):
    """Autograd function of a call. Tensors that need gradients are separate arguments, everything else is in `rule`."""

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        bias: Any,
        sinks: Any,
        rule: ScoreRule,
        dropout: float,
        seed: Any,
        tiles: bool,
    ) -> tuple[Tensor, Tensor]:
        full_rule = replace(rule, bias=bias, sinks=sinks)
        if tiles:
            output, logsumexp = cpu.forward(query, key, value, full_rule)[:2]
        else:
            output, logsumexp = _blockwise_forward(query, key, value, full_rule, dropout, seed)
        ctx.save_for_backward(query, key, value, bias, sinks, output, logsumexp)
        ctx.rule, ctx.dropout, ctx.seed = rule, dropout, seed
        ctx.mark_non_differentiable(logsumexp)
        return output, logsumexp

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor, _: Any) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():  # in a backward pass, only with create_graph=True
            raise RuntimeError(
                "attend: its gradient cannot be differentiated again (create_graph=True); what can be is "
                "weights.dense(differentiable=True) @ value"
            )
        query, key, value, bias, sinks, output, logsumexp = ctx.saved_tensors
        rule = replace(ctx.rule, bias=bias, sinks=sinks)
        grads = backward(query, key, value, rule, output, logsumexp, grad_output, ctx.dropout, ctx.seed)
        return (*grads, None, None, None, None)


def _blockwise_forward(
    query: Tensor, key: Tensor, value: Tensor, rule: ScoreRule, dropout: float, seed: int | None
) -> tuple[Tensor, Tensor]:
    dtype = working_dtype(query)
    output = query.new_empty(*query.shape[:3], value.shape[-1])
    logsumexp = query.new_empty(query.shape[:3], dtype=dtype)
    for batch, heads, rows in query_blocks(query, key):
        row_max = torch.full_like(logsumexp[batch, heads, rows], -torch.inf)
        row_sum = torch.zeros_like(row_max)
        weighted = row_max.new_zeros(*row_max.shape, value.shape[-1])  # Σ exp(score - row_max) · value
        for cols in key_blocks(query, key, rule, batch, heads, rows):
            scores = score_tile(query, key, rule, batch, heads, rows, cols)
            new_max = torch.maximum(row_max, scores.amax(-1))
            weights = torch.exp(scores - finite_max(new_max)[..., None])
            after_dropout = (
                weights
                if seed is None
                else weights * _tile_dropout_factors(weights, dropout, seed, batch, heads, rows, cols)
            )
            v = key_heads_of_index(value, query.shape[1], heads)[batch][:, :, cols].to(dtype)
            factor = softmax_rescaling(row_max, new_max)
            row_sum = row_sum * factor + weights.sum(-1)
            weighted = weighted * factor[..., None] + grouped_product(after_dropout, v)
            row_max = new_max
        sink = sink_column(rule, heads, dtype)
        if sink is not None:
            before = row_max
            row_max, row_sum = add_sink_to_rows(before, row_sum, sink)
            weighted = weighted * softmax_rescaling(before, row_max)[..., None]
        weighted = weighted / torch.where(row_sum == 0, 1.0, row_sum)[..., None]
        output[batch, heads, rows] = weighted.to(output.dtype)
        logsumexp[batch, heads, rows] = finite_max(row_max) + torch.log(row_sum)  # -inf for an empty sum
    return output, logsumexp


def backward(
    query: Float[Tensor, "B H L D"],
    key: Float[Tensor, "B G S D"],
    value: Float[Tensor, "B G S E"],
    rule: ScoreRule,
    output: Float[Tensor, "B H L E"],
    logsumexp: Float[Tensor, "B H L"],
    grad_output: Float[Tensor, "B H L E"],
    dropout: float = 0.0,
    seed: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
    """Compute gradients of query, key, value, bias and sinks from a forward's output and logsumexp."""
    dtype = working_dtype(query)
    grad_query = torch.zeros_like(query, dtype=dtype)
    grad_key, grad_value = torch.zeros_like(key, dtype=dtype), torch.zeros_like(value, dtype=dtype)
    grad_bias = None if rule.bias is None else torch.zeros_like(rule.bias, dtype=dtype)
    grad_sinks = None if rule.sinks is None else torch.zeros_like(rule.sinks, dtype=dtype)
    uncapped = replace(rule, softcap=None, bias=None, mask=None)
    for batch, heads, rows in query_blocks(query, key):
        grad = grad_output[batch, heads, rows].to(dtype)  # (b, h, r, E)
        lse = logsumexp[batch, heads, rows]
        delta = (grad * output[batch, heads, rows].to(dtype)).sum(-1)  # (b, h, r): Σ weight · grad_weight
        q = query[batch, heads, rows].to(dtype)
        sink = sink_column(rule, heads, dtype)
        if grad_sinks is not None and sink is not None:
            share = torch.where(lse == -torch.inf, 0.0, torch.exp(sink - finite_max(lse)))
            grad_sinks[heads] -= (share * delta).sum((0, 2))
        for cols in key_blocks(query, key, rule, batch, heads, rows):
            scores = score_tile(query, key, rule, batch, heads, rows, cols)
            weights = softmax_weights(scores, lse, torch.ones_like(lse))
            k = key_heads_of_index(key, query.shape[1], heads)[batch][:, :, cols].to(dtype)
            v = key_heads_of_index(value, query.shape[1], heads)[batch][:, :, cols].to(dtype)
            grad_weights = grouped_product(grad, v.mT)
            after_dropout = weights
            if seed is not None:
                keep = _tile_dropout_factors(weights, dropout, seed, batch, heads, rows, cols)
                after_dropout, grad_weights = weights * keep, grad_weights * keep
            _add_group_sums(grad_value, query.shape[1], batch, heads, cols, after_dropout, grad)
            grad_scores = weights * (grad_weights - delta[..., None])
            if grad_bias is not None:
                part = select(grad_bias, batch, heads, rows, cols)
                part += grad_scores.sum_to_size(part.shape)
            if rule.softcap is not None:
                raw = score_tile(query, key, uncapped, batch, heads, rows, cols)
                grad_scores = grad_scores * (1 - torch.tanh(raw / rule.softcap) ** 2)
            grad_scores = grad_scores * rule.scale
            grad_query[batch, heads, rows] += grouped_product(grad_scores, k)
            _add_group_sums(grad_key, query.shape[1], batch, heads, cols, grad_scores, q)
    return (
        grad_query.to(query.dtype),
        grad_key.to(key.dtype),
        grad_value.to(value.dtype),
        None if grad_bias is None or rule.bias is None else grad_bias.to(rule.bias.dtype),
        None if grad_sinks is None or rule.sinks is None else grad_sinks.to(rule.sinks.dtype),
    )


def _add_group_sums(
    grads: Tensor, heads: int, batch: slice, index: slice, cols: slice, tile: Tensor, rows: Tensor
) -> None:
    """Add tileᵀ @ rows, (b, h, c, x), to the gradient of the key or value heads of the query heads in index."""
    share, product = heads // grads.shape[1], matmul(tile.mT, rows)
    first, last = index.start // share, (index.stop - 1) // share + 1
    if last - first != product.shape[1]:
        product = product.unflatten(1, (last - first, -1)).sum(2)
    grads[batch, first:last, cols] += product


def _tile_dropout_factors(
    weights: Tensor, dropout: float, seed: int, batch: slice, heads: slice, rows: slice, cols: slice
) -> Tensor:
    """Draw the dropout factors of a tile, 0 or 1 / (1 - dropout). They are the same in forward and backward."""
    if dropout >= 1:
        return torch.zeros_like(weights)
    tile_seed = hash((seed, batch.start, heads.start, rows.start, cols.start)) % 2**62
    generator = torch.Generator(device=weights.device).manual_seed(tile_seed)
    keep = torch.rand(weights.shape, generator=generator, device=weights.device) >= dropout
    return keep.to(weights.dtype) / (1 - dropout)
