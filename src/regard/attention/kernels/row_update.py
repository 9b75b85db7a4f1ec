"""A call that lost edges: computed as if nothing were cut, then only the rows that lost any are computed again.

The rows come from the same kernels, under the same rule, with a mask of their own few rows. Where gradients are wanted,
or so many rows lost edges that little is saved, the whole call goes by the rule without the edges.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.edges import Edges
from regard.attention.kernels import dispatch
from regard.attention.kernels.result import KernelResult
from regard.attention.masks import Mask, select
from regard.attention.scores import ScoreRule, heads_of, tile_budget

SHARE = 0.25  # of all rows: from here on one pass over everything is the faster one

Box = tuple[slice, slice, tuple[int, ...]]  # texts, heads and queries


def without(rule: ScoreRule, removed: tuple[Edges, ...]) -> ScoreRule:
    """The rule that scores the edges -inf as well."""
    return replace(rule, mask=(rule.mask or Mask()) & Mask(removed=removed))


def compute(
    query: Float[Tensor, "B H L D"],
    key: Float[Tensor, "B G S D"],
    value: Float[Tensor, "B G S E"],
    rule: ScoreRule,
    dropout: float,
    removed: tuple[Edges, ...],
) -> KernelResult:
    """What `dispatch.compute` gives by the rule without the edges."""
    cut = without(rule, removed)
    found = boxes(removed, query.shape[1] // max(1, key.shape[1]))
    rows = sum((b.stop - b.start) * (h.stop - h.start) * len(numbers) for b, h, numbers in found)
    many = rows > SHARE * query.shape[0] * query.shape[1] * query.shape[2]
    if many or dropout > 0 or dispatch.wants_gradient(query, key, value, rule):
        return dispatch.compute(query, key, value, cut, dropout)
    result = dispatch.compute(query, key, value, rule)
    for batch, heads, numbers in found:
        lines = (batch.stop - batch.start) * (heads.stop - heads.start)
        step = max(1, tile_budget(query) // max(1, lines * key.shape[2]))
        for start in range(0, len(numbers), step):
            some = torch.tensor(numbers[start : start + step], device=query.device)
            _again(query, key, value, cut, batch, heads, some, result)
    return result


def boxes(removed: Sequence[Edges], share: int) -> list[Box]:
    """The rows that lose edges, in runs of texts and heads whose keys are views; some rows may be in two boxes.

    share: how many query heads have one key head.
    """
    rows: dict[tuple[tuple[int, ...], tuple[int, ...]], set[int]] = {}  # of the same texts and heads
    for edges in removed:
        rows.setdefault((edges.numbers("batch"), edges.numbers("heads")), set()).update(edges.numbers("queries"))
    texts: dict[tuple[tuple[int, ...], tuple[int, ...]], set[int]] = {}  # with the same heads and rows
    for (batch, heads), numbers in rows.items():
        texts.setdefault((heads, tuple(sorted(numbers))), set()).update(batch)
    return [
        (some, part, numbers)
        for (heads, numbers), batch in texts.items()
        for some in _runs(sorted(batch))
        for run in _runs(heads)
        for part in _whole_groups(run, share)
    ]


def _again(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    rule: ScoreRule,
    batch: slice,
    heads: slice,
    rows: Tensor,
    result: KernelResult,
) -> None:
    """Compute rows of a run of texts and heads and put them where the kernel left others."""
    whole = slice(0, key.shape[2])
    mask = None
    if rule.mask is not None:
        allowed = rule.mask.tile(batch, heads, rows, whole, query.device)
        mask = None if allowed is None else Mask(dense=(allowed,))
    bias = None if rule.bias is None else select(rule.bias, batch, heads, rows, whole)
    sinks = None if rule.sinks is None else rule.sinks[heads]
    again = dispatch.compute(
        query[batch, heads].index_select(2, rows),
        heads_of(key, query.shape[1], heads)[batch],
        heads_of(value, query.shape[1], heads)[batch],
        replace(rule, bias=bias, mask=mask, sinks=sinks),
    )
    result.output[batch, heads].index_copy_(2, rows, again.output)
    result.logsumexp[batch, heads].index_copy_(2, rows, again.logsumexp.to(result.logsumexp.dtype))
    if result.row_max_sum is not None:  # exp(score - logsumexp) / 1 is the weight; statistics check it as any other
        for tensor, own in zip(
            result.row_max_sum, (again.logsumexp, (again.logsumexp != -torch.inf).float()), strict=True
        ):
            tensor[batch, heads].index_copy_(2, rows, own.to(tensor.dtype))


def _runs(numbers: Sequence[int]) -> Iterator[slice]:
    """Rising numbers as runs of neighbours."""
    start = 0
    for n in range(1, len(numbers) + 1):
        if n == len(numbers) or numbers[n] != numbers[n - 1] + 1:
            yield slice(numbers[start], numbers[n - 1] + 1)
            start = n


def _whole_groups(run: slice, share: int) -> Iterator[slice]:
    """A run of heads where it covers whole groups, else its heads one by one: either has its keys without a copy."""
    if run.start % share == 0 and run.stop % share == 0:
        yield run
    else:
        yield from (slice(head, head + 1) for head in range(run.start, run.stop))
