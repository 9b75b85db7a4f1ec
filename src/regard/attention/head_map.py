"""A map of one head of another one, its tensors by reference."""

from dataclasses import replace

from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.attention.edges import Edges
from regard.attention.masks import Mask
from regard.attention.scores import heads_of


def one_head(weights: AttentionMap, head: int) -> AttentionMap:
    """The map (.., 1, L, S) of one head, counted from 0.

    Raises:
        IndexError: there is no such head.
    """
    count = weights.query.shape[1]
    if not 0 <= head < count:
        raise IndexError(f"head {head} is out of range: the map has heads 0 to {count - 1}")
    run, rule = slice(head, head + 1), weights.rule
    rule = replace(
        rule,
        bias=None if rule.bias is None else _own(rule.bias, run),
        mask=None if rule.mask is None else _masked(rule.mask, head),
        sinks=None if rule.sinks is None else rule.sinks[run],
    )
    key = heads_of(weights.key, count, run)
    return AttentionMap(weights.query[:, run], key, rule, offset=weights.offset, ndim=max(3, weights.ndim))


def _masked(mask: Mask, head: int) -> Mask:
    dense = tuple(_own(tensor, slice(head, head + 1)) for tensor in mask.dense)
    removed = tuple(_alone(edges) for edges in mask.removed if edges.heads is None or head in edges.heads)
    return replace(mask, dense=dense, removed=removed)


def _alone(edges: Edges) -> Edges:
    """The edges of one head that has them."""
    return replace(edges, shape=(edges.shape[0], 1, *edges.shape[2:]), heads=None)


def _own(tensor: Tensor, run: slice) -> Tensor:
    return tensor[:, run] if tensor.shape[1] > 1 else tensor
