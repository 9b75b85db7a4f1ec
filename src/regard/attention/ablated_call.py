"""Compute one attention call with the ablations and patches of the enclosing `ablating` blocks.

The changes are applied in this order: patch value vectors, leave ablated edges out of the softmax, patch rows of
weights and compute their outputs, then change head outputs in the order of the list passed to `ablating`.

If edges are ablated, only the rows that lose edges are computed again, with the same kernels and score rule and a mask
for these rows. If gradients are needed, or if so many rows lose edges that this would save little time, the whole call
is computed without the edges.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.ablation import Ablation, CallPatch, EdgeAblation, GivenWeights, HeadAblation, OpenAblations
from regard.attention.kernels import dispatch
from regard.attention.map_statistics import KernelResult, Statistics
from regard.attention.masks import AXES, Edges, Mask, select
from regard.attention.recording import layer_of_call_path
from regard.attention.scores import ScoreRule, key_heads_of_index, score_tile_budget
from regard.errors import OutOfRangeError

MAX_ROW_FRACTION = 0.25  # fraction of rows above which one pass over all rows is faster

Box = tuple[slice, slice, tuple[int, ...]]  # texts, heads and queries


def compute(
    query: Float[Tensor, "B H L D"],
    key: Float[Tensor, "B G S D"],
    value: Float[Tensor, "B G S E"],
    rule: ScoreRule,
    dropout: float,
    removed: tuple[Edges, ...],
) -> tuple[KernelResult, ScoreRule]:
    """Compute a call like `dispatch.compute`, but without the removed edges. Returns (result, rule without them)."""
    mask = (rule.mask or Mask()) & Mask(removed=removed)
    ablated = replace(rule, mask=mask)
    boxes = row_boxes(removed, query.shape[1] // max(1, key.shape[1]))
    rows = sum((b.stop - b.start) * (h.stop - h.start) * len(numbers) for b, h, numbers in boxes)
    many = rows > MAX_ROW_FRACTION * query.shape[0] * query.shape[1] * query.shape[2]
    if many or dropout > 0 or dispatch.wants_gradient(query, key, value, rule):
        return dispatch.compute(query, key, value, ablated, dropout), ablated
    result = dispatch.compute(query, key, value, rule)
    for batch, heads, numbers in boxes:
        lines, all_keys = (batch.stop - batch.start) * (heads.stop - heads.start), slice(0, key.shape[2])
        step = max(1, score_tile_budget(query) // max(1, lines * key.shape[2]))
        for start in range(0, len(numbers), step):
            indices = torch.tensor(numbers[start : start + step], device=query.device)
            allowed = mask.tile(batch, heads, indices, all_keys, query.device)
            recomputed = dispatch.compute(
                query[batch, heads].index_select(2, indices),
                key_heads_of_index(key, query.shape[1], heads)[batch],
                key_heads_of_index(value, query.shape[1], heads)[batch],
                replace(
                    rule,
                    bias=None if rule.bias is None else select(rule.bias, batch, heads, indices, all_keys),
                    mask=None if allowed is None else Mask(dense=(allowed,)),
                    sinks=None if rule.sinks is None else rule.sinks[heads],
                ),
            )
            changes = [(result.output, recomputed.output), (result.logsumexp, recomputed.logsumexp)]
            if result.row_max_sum is not None:  # the weight is exp(score - logsumexp) / 1
                ones = (recomputed.logsumexp != -torch.inf).float()
                changes += zip(result.row_max_sum, (recomputed.logsumexp, ones), strict=True)
            for tensor, values in changes:
                tensor[batch, heads].index_copy_(2, indices, values.to(tensor.dtype))
    return result, ablated


def row_boxes(removed: Sequence[Edges], share: int) -> list[Box]:
    """Return the rows that lose edges, grouped into boxes whose keys can be sliced without a copy. Boxes may overlap.

    share: the number of query heads per key head.
    """
    rows: dict[tuple[tuple[int, ...], tuple[int, ...]], set[int]] = {}  # rows by (texts, heads)
    for edges in removed:
        rows.setdefault((edges.numbers("batch"), edges.numbers("heads")), set()).update(edges.numbers("queries"))
    texts: dict[tuple[tuple[int, ...], tuple[int, ...]], set[int]] = {}  # texts by (heads, rows)
    for (batch, heads), numbers in rows.items():
        texts.setdefault((heads, tuple(sorted(numbers))), set()).update(batch)
    return [
        (texts_run, slice(head, head + count), numbers)
        for (heads, numbers), batch in texts.items()
        for texts_run in _runs_of_rows(sorted(batch))
        for run in _runs_of_rows(heads)
        # one box for a run of whole head groups, otherwise one box per head: both slice keys without a copy
        for count in (run.stop - run.start if run.start % share == run.stop % share == 0 else 1,)
        for head in range(run.start, run.stop, count)
    ]


def _runs_of_rows(numbers: Sequence[int]) -> Iterator[slice]:
    """Split ascending text or head numbers into runs of consecutive numbers."""
    start = 0
    for n in range(1, len(numbers) + 1):
        if n == len(numbers) or numbers[n] != numbers[n - 1] + 1:
            yield slice(numbers[start], numbers[n - 1] + 1)
            start = n


Shape = tuple[int, int, int, int]  # (B, H, L, S)


class CallAblations(NamedTuple):
    """The ablations and patches that apply to one call. Their indices were checked against its shape.

    outputs: the changes to head outputs, in order. weights: the patched rows of weights, or None.
    """

    ablations: tuple[Ablation, ...] = ()
    values: tuple[CallPatch, ...] = ()
    removed: tuple[Edges, ...] = ()
    weights: GivenWeights | None = None
    outputs: tuple[HeadAblation | CallPatch, ...] = ()

    def run(
        self,
        query: Float[Tensor, "B H L D"],
        key: Float[Tensor, "B G S D"],
        value: Float[Tensor, "B G S E"],
        rule: ScoreRule,
        dropout: float,
        wanted: Statistics | None,
        offset: int | None,
    ) -> tuple[Tensor, Tensor, Tensor, ScoreRule, KernelResult]:
        """Compute the call with these changes. Returns query, key, value and rule for its map, and the result."""
        if self.values:
            value = value.clone()  # the tensor may belong to a key/value cache
            for patch in self.values:
                patch.put(value)
        if self.removed:
            result, rule = compute(query, key, value, rule, dropout, self.removed)
        else:
            result = dispatch.compute_with_statistics(query, key, value, rule, dropout, wanted, offset)
        if self.weights is not None:
            self.weights.check(rule, query.device)
            output = self.weights.put_outputs(result.output, value)
            query, key = self.weights.as_scores(query, key, rule)
            # the row sums and statistics belong to the unpatched weights
            result = KernelResult(output, result.logsumexp, result.kernel)
        if wanted is not None and result.statistics is None:
            result = dispatch.add_statistics(query, key, rule, result, wanted, offset)
        if self.outputs:
            result = result._replace(output=_changed_outputs(result.output, self.outputs))
        return query, key, value, rule, result


def ablations_of_call(blocks: tuple[OpenAblations, ...], path: str, shape: Shape, key_heads: int) -> CallAblations:
    """Register the current call in every block. Returns the changes that apply to it.

    blocks: the enclosing `ablating` blocks. path, shape (B, H, L, S), key_heads: of the call.
    """
    ablations = tuple(ablation for block in blocks for ablation in block.match(path, layer_of_call_path(path)))
    for ablation in ablations:
        of_values = isinstance(ablation, CallPatch) and ablation.what == "values"
        _check_ablation_range(ablation, path, (shape[0], key_heads, *shape[2:]) if of_values else shape)
    removed = tuple(_edges(ablation, shape) for ablation in ablations if isinstance(ablation, EdgeAblation))
    patches = [ablation for ablation in ablations if isinstance(ablation, CallPatch)]
    values = tuple(ablation for ablation in patches if ablation.what == "values")
    outputs = tuple(
        ablation
        for ablation in ablations
        if isinstance(ablation, HeadAblation) or (isinstance(ablation, CallPatch) and ablation.what == "head_outputs")
    )
    return CallAblations(ablations, values, removed, _weights_given_by_patches(ablations, shape), outputs)


def _changed_outputs(output: Tensor, changes: tuple[HeadAblation | CallPatch, ...]) -> Float[Tensor, "B H L E"]:
    """Set the output of ablated heads to zero and insert patched rows. Works in place unless gradients are needed."""
    if output.requires_grad:
        output = output.clone()  # autograd may have saved it for the backward pass
    for change in changes:
        if isinstance(change, CallPatch):
            change.put(output)
            continue
        for text in range(output.shape[0]) if change.batch is None else change.batch:
            for head in range(output.shape[1]) if change.heads is None else change.heads:
                output[text, head] = 0.0
    return output


def _weights_given_by_patches(ablations: tuple[Ablation, ...], shape: Shape) -> GivenWeights | None:
    """Return the rows of weights set by patches, without edges ablated after them; None if no patch sets weights."""
    weights = GivenWeights()
    for ablation in ablations:
        if isinstance(ablation, EdgeAblation):
            edges = _edges(ablation, shape)
            weights.remove(*(edges.numbers(axis) for axis in AXES))
        elif isinstance(ablation, CallPatch) and ablation.what == "weights":
            weights.take(ablation, shape)
    return weights if weights.rows else None


def _edges(ablation: EdgeAblation, shape: Shape) -> Edges:
    return Edges(shape, *(getattr(ablation, axis) for axis in AXES))


def _check_ablation_range(ablation: Ablation, path: str, shape: Shape) -> None:
    for axis, size in zip(AXES, shape, strict=True):
        numbers = getattr(ablation, axis, None)
        if numbers and numbers[-1] >= size:
            subject = f"the call {path!r}" if path else "this call"
            allowed = f"0 to {size - 1}" if size else "none, it is empty"
            message = f"{axis}: got {numbers[-1]}, expected numbers that {subject} has: {allowed}"
            raise OutOfRangeError(message, axis=axis, given=numbers[-1], size=size)
