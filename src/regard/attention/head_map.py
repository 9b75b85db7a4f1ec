"""Take the map of one head out of the map of many, with its tensors by reference."""

from dataclasses import replace

from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.attention.edges import Edges
from regard.attention.masks import Mask
from regard.attention.scores import heads_of


def one_head(weights: AttentionMap, head: int) -> AttentionMap:
    """Return the map (.., 1, L, S) of one head, counted from 0.

    Raises:
        IndexError: there is no such head.
    """
    count = weights.query.shape[1]
    if not 0 <= head < count:
        raise IndexError(f"head {head} is out of range: the map has heads 0 to {count - 1}")
    run, rule = slice(head, head + 1), weights.rule
    rule = replace(
        rule,
        bias=None if rule.bias is None else _head_axis(rule.bias, run),
        mask=None if rule.mask is None else _mask_of_head(rule.mask, head),
        sinks=None if rule.sinks is None else rule.sinks[run],
    )
    key = heads_of(weights.key, count, run)
    return AttentionMap(weights.query[:, run], key, rule, offset=weights.offset, ndim=max(3, weights.ndim))


def _mask_of_head(mask: Mask, head: int) -> Mask:
    dense = tuple(_head_axis(tensor, slice(head, head + 1)) for tensor in mask.dense)
    removed = tuple(_edges_of_head(edges) for edges in mask.removed if edges.heads is None or head in edges.heads)
    return replace(mask, dense=dense, removed=removed)


def _edges_of_head(edges: Edges) -> Edges:
    """Return edges that the head has as the edges of a call with one head."""
    return replace(edges, shape=(edges.shape[0], 1, *edges.shape[2:]), heads=None)


def _head_axis(tensor: Tensor, run: slice) -> Tensor:
    return tensor[:, run] if tensor.shape[1] > 1 else tensor
