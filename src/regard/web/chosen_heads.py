"""Take some heads of an attention map, with its tensors by reference where that is possible."""

from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.attention.edges import Edges
from regard.attention.masks import Mask
from regard.checks import missing


def groups_of(heads: Sequence[int], count: int, groups: int) -> list[int]:
    """Return the key heads of some of a map's `count` query heads, as few as equal runs of query heads can share."""
    behind = [head * groups // count for head in heads]
    needed = sorted(set(behind))
    each = len(heads) // len(needed)
    return needed if behind == [group for group in needed for _ in range(each)] else behind


def of_heads(weights: AttentionMap, heads: Sequence[int] | None, layer: int) -> AttentionMap:
    """Return the map (h, L, S) of some heads, numbered anew from 0; None for all of them.

    Raises:
        RegardError: the layer has no such head.
    """
    count, groups = weights.query.shape[1], weights.key.shape[1]
    if heads is None or list(heads) == list(range(count)):
        return weights
    for head in heads:
        if not 0 <= head < count:
            raise missing("head", head, count, f"layer {layer} has")
    chosen, rule = list(heads), weights.rule
    rule = replace(
        rule,
        bias=None if rule.bias is None else _of_axis(rule.bias, chosen),
        mask=None if rule.mask is None else _of_mask(rule.mask, chosen),
        sinks=None if rule.sinks is None else rule.sinks[chosen],
    )
    key = weights.key[:, groups_of(chosen, count, groups)]
    return AttentionMap(weights.query[:, chosen], key, rule, offset=weights.offset, ndim=weights.ndim)


def _of_mask(mask: Mask, heads: list[int]) -> Mask:
    dense = tuple(_of_axis(tensor, heads) for tensor in mask.dense)
    removed = tuple(edges for each in mask.removed if (edges := _of_edges(each, heads)) is not None)
    return replace(mask, dense=dense, removed=removed)


def _of_edges(edges: Edges, heads: list[int]) -> Edges | None:
    shape = (edges.shape[0], len(heads), *edges.shape[2:])
    if edges.heads is None:
        return replace(edges, shape=shape)
    numbers = tuple(new for new, old in enumerate(heads) if old in edges.heads)
    return replace(edges, shape=shape, heads=numbers) if numbers else None


def _of_axis(tensor: Tensor, heads: list[int]) -> Tensor:
    return tensor[:, heads] if tensor.shape[1] > 1 else tensor
