"""Take some heads, or one, out of the map of many, with its tensors by reference where they are consecutive."""

from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.attention.given_map import GivenMap
from regard.attention.masks import Mask
from regard.checks import missing_number_error, numbers_there


def one_head(weights: AttentionMap, head: int) -> AttentionMap:
    """Return the map (.., 1, L, S) of one head, counted from 0. Raises IndexError where there is no such head."""
    count = weights.full_shape[1]
    if not 0 <= head < count:
        raise IndexError(f"head {head} is out of range: {numbers_there('head', count, 'the map has')}")
    return _map_of_heads(weights, [head], max(3, weights.ndim))


def of_heads(weights: AttentionMap, heads: Sequence[int] | None, layer: int) -> AttentionMap:
    """Return the map (h, L, S) of some heads, numbered anew from 0; None for all of them."""
    count = weights.full_shape[1]
    if heads is None or list(heads) == list(range(count)):
        return weights
    for head in heads:
        if not 0 <= head < count:
            raise missing_number_error("head", head, count, f"layer {layer} has")
    return _map_of_heads(weights, heads, weights.ndim)


def key_heads_of_queries(heads: Sequence[int], count: int, groups: int) -> list[int]:
    """Return the key heads of some of a map's `count` query heads, as few as equal runs of query heads can share."""
    behind = [head * groups // count for head in heads]
    needed = sorted(set(behind))
    run_length = len(heads) // len(needed)
    return needed if behind == [group for group in needed for _ in range(run_length)] else behind


def _map_of_heads(weights: AttentionMap, heads: Sequence[int], ndim: int) -> AttentionMap:
    run = _heads_as_index(heads)
    if isinstance(weights, GivenMap):
        return weights.of_heads(run, ndim)
    count, groups, rule = weights.full_shape[1], weights.key.shape[1], weights.rule
    rule = replace(
        rule,
        bias=None if rule.bias is None else _score_tensor_of_heads(rule.bias, run),
        mask=None if rule.mask is None else _mask_of_heads(rule.mask, heads),
        sinks=None if rule.sinks is None else rule.sinks[run],
    )
    key = weights.key[:, _heads_as_index(key_heads_of_queries(heads, count, groups))]
    return AttentionMap(weights.query[:, run], key, rule, offset=weights.offset, ndim=ndim)


def _heads_as_index(numbers: Sequence[int]) -> slice | list[int]:
    """Numbers as an index: a slice where they are consecutive, which copies nothing."""
    run = range(numbers[0], numbers[0] + len(numbers))
    return slice(run.start, run.stop) if list(numbers) == list(run) else list(numbers)


def _mask_of_heads(mask: Mask, heads: Sequence[int]) -> Mask:
    dense = tuple(_score_tensor_of_heads(tensor, _heads_as_index(heads)) for tensor in mask.dense)
    removed = tuple(in_heads for ablated in mask.removed if (in_heads := ablated.of_heads(heads)) is not None)
    return replace(mask, dense=dense, removed=removed)


def _score_tensor_of_heads(tensor: Tensor, index: slice | list[int]) -> Tensor:
    return tensor[:, index] if tensor.shape[1] > 1 else tensor
