"""Compute a call with ablated edges: as if there were none, then again only the rows that lose any.

The rows come from the same kernels, under the same rule, with a mask of their own few rows. Where gradients are wanted,
or so many rows lose edges that little is saved, the whole call goes by the rule without the edges.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.kernels import dispatch
from regard.attention.map_statistics import KernelResult
from regard.attention.masks import Edges, Mask, select
from regard.attention.scores import ScoreRule, key_heads_of_index, score_tile_budget

MAX_ROW_FRACTION = 0.25  # of all rows: from here on one pass over everything is the faster one

Box = tuple[slice, slice, tuple[int, ...]]  # texts, heads and queries


def without_edges(rule: ScoreRule, removed: tuple[Edges, ...]) -> ScoreRule:
    """Return the rule that also gives the edges the score -inf."""
    return replace(rule, mask=(rule.mask or Mask()) & Mask(removed=removed))


def compute(
    query: Float[Tensor, "B H L D"],
    key: Float[Tensor, "B G S D"],
    value: Float[Tensor, "B G S E"],
    rule: ScoreRule,
    dropout: float,
    removed: tuple[Edges, ...],
) -> tuple[KernelResult, ScoreRule]:
    """Compute what `dispatch.compute` gives by the rule without the edges, and return that rule, too."""
    ablated = without_edges(rule, removed)
    boxes = row_boxes(removed, query.shape[1] // max(1, key.shape[1]))
    rows = sum((b.stop - b.start) * (h.stop - h.start) * len(numbers) for b, h, numbers in boxes)
    many = rows > MAX_ROW_FRACTION * query.shape[0] * query.shape[1] * query.shape[2]
    if many or dropout > 0 or dispatch.wants_gradient(query, key, value, rule):
        return dispatch.compute(query, key, value, ablated, dropout), ablated
    result = dispatch.compute(query, key, value, rule)
    for batch, heads, numbers in boxes:
        lines = (batch.stop - batch.start) * (heads.stop - heads.start)
        step = max(1, score_tile_budget(query) // max(1, lines * key.shape[2]))
        for start in range(0, len(numbers), step):
            rows_now = torch.tensor(numbers[start : start + step], device=query.device)
            _recompute_kernel_rows(query, key, value, ablated, batch, heads, rows_now, result)
    return result, ablated


def row_boxes(removed: Sequence[Edges], share: int) -> list[Box]:
    """Return the rows that lose edges, in runs of texts and heads whose keys are views; a row may be in two boxes.

    share: how many query heads have one key head.
    """
    rows: dict[tuple[tuple[int, ...], tuple[int, ...]], set[int]] = {}  # of the same texts and heads
    for edges in removed:
        rows.setdefault((edges.numbers("batch"), edges.numbers("heads")), set()).update(edges.numbers("queries"))
    texts: dict[tuple[tuple[int, ...], tuple[int, ...]], set[int]] = {}  # with the same heads and rows
    for (batch, heads), numbers in rows.items():
        texts.setdefault((heads, tuple(sorted(numbers))), set()).update(batch)
    return [
        (texts_run, heads_run, numbers)
        for (heads, numbers), batch in texts.items()
        for texts_run in _runs_of_rows(sorted(batch))
        for run in _runs_of_rows(heads)
        for heads_run in _runs_of_key_groups(run, share)
    ]


def _recompute_kernel_rows(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    rule: ScoreRule,
    batch: slice,
    heads: slice,
    rows: Tensor,
    result: KernelResult,
) -> None:
    """Compute rows of a run of texts and heads, and write them over those in the result."""
    whole = slice(0, key.shape[2])
    mask = None
    if rule.mask is not None:
        allowed = rule.mask.tile(batch, heads, rows, whole, query.device)
        mask = None if allowed is None else Mask(dense=(allowed,))
    bias = None if rule.bias is None else select(rule.bias, batch, heads, rows, whole)
    sinks = None if rule.sinks is None else rule.sinks[heads]
    again = dispatch.compute(
        query[batch, heads].index_select(2, rows),
        key_heads_of_index(key, query.shape[1], heads)[batch],
        key_heads_of_index(value, query.shape[1], heads)[batch],
        replace(rule, bias=bias, mask=mask, sinks=sinks),
    )
    result.output[batch, heads].index_copy_(2, rows, again.output)
    result.logsumexp[batch, heads].index_copy_(2, rows, again.logsumexp.to(result.logsumexp.dtype))
    if result.row_max_sum is not None:  # exp(score - logsumexp) / 1 is the weight; statistics check it as any other
        for tensor, values in zip(
            result.row_max_sum, (again.logsumexp, (again.logsumexp != -torch.inf).float()), strict=True
        ):
            tensor[batch, heads].index_copy_(2, rows, values.to(tensor.dtype))


def _runs_of_rows(numbers: Sequence[int]) -> Iterator[slice]:
    """Split rising numbers into runs of neighbours."""
    start = 0
    for n in range(1, len(numbers) + 1):
        if n == len(numbers) or numbers[n] != numbers[n - 1] + 1:
            yield slice(numbers[start], numbers[n - 1] + 1)
            start = n


def _runs_of_key_groups(run: slice, share: int) -> Iterator[slice]:
    """Yield a run of heads where it covers whole groups, else its heads one by one: keys of either are views."""
    if run.start % share == 0 and run.stop % share == 0:
        yield run
    else:
        yield from (slice(head, head + 1) for head in range(run.start, run.stop))
