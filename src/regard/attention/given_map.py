"""A map of weights that the model's own code computed. They are used unchanged and need not sum to 1.

Hand-written softmaxes produce such weights. If the code removes sinks, masks after the softmax or mixes heads, rows
may not sum to 1, and weights may be negative. There are no queries and keys, so memory is L × S.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.attention.kernels.statistics import pool_tile_weights
from regard.attention.map_statistics import MapStatistics, Progress, Statistics, cell_sizes, merge_top_k
from regard.attention.masks import Index, positions
from regard.attention.scores import score_tile_budget, working_dtype
from regard.checks import missing_number_error, numbers_there
from regard.errors import RegardError

OF_SCORES = ("query", "key", "rule", "near_rule", "scores", "row_max_sum", "sink_share")


class GivenMap(AttentionMap):
    """Weights (B, H, L, S) that the model's own code computed. Regions, `rows` and `dense` return them bit for bit.

    Statistics use the weights unchanged, except that `entropy` and `distance` first divide each row by its sum.
    Both are NaN in rows with a negative weight. `top` treats a key with weight 0 as masked.
    """

    given: Float[Tensor, "B H L S"]

    def __init__(self, weights: Float[Tensor, "B H L S"], *, offset: int | None = None, ndim: int = 4) -> None:
        """Keep the weights by reference. offset, ndim: as in `AttentionMap`."""
        if weights.ndim != 4 or not weights.is_floating_point():
            raise TypeError(f"weights: got {weights.dtype} of {weights.ndim} axes, expected 4 axes of floating point")
        self.given, self._attached_weights = weights.detach(), weights
        self.offset, self.ndim = offset, ndim
        self.full_shape = tuple(weights.shape)
        self.shape = self.full_shape[4 - ndim :]
        self.dtype, self.device = working_dtype(weights), weights.device
        self._known = None

    @staticmethod
    def of(weights: Float[Tensor, "*B L S"], offset: int | None) -> "GivenMap":
        """Make a map of weights of 2 to 4 axes. For arguments and errors, see `AttentionMap.of_weights`."""
        if not isinstance(weights, Tensor):
            raise TypeError(f"weights: got {type(weights).__name__}, expected a torch tensor")
        if not 2 <= weights.ndim <= 4:
            raise ValueError(f"weights: got shape {tuple(weights.shape)}, expected 2 to 4 axes (batch, heads, L, S)")
        offset = 0 if offset is None and weights.shape[-2] == weights.shape[-1] else offset
        return GivenMap(weights[(None,) * (4 - weights.ndim)], offset=offset, ndim=weights.ndim)

    def rows(self, batch: slice, rows: Int[Tensor, " r"]) -> Float[Tensor, "b H r S"]:
        """Return the given weights of some queries of some texts."""
        return self._weights_tile(batch, slice(None), rows, slice(None))

    def dense(self, *, differentiable: bool = False, dtype: torch.dtype | None = None) -> Float[Tensor, "..."]:
        """Return all weights as one tensor. differentiable: keep the autograd graph in which they were computed."""
        if dtype is not None and (dtype != torch.float32 or differentiable):
            return super().dense(differentiable=differentiable, dtype=dtype)  # which raises the error
        weights = self._shown(self._attached_weights.to(self.dtype)) if differentiable else self[...]
        return weights if dtype is None else weights.to(dtype)

    @property
    def valid(self) -> Bool[Tensor, "..."]:
        """Return which queries have a given weight other than 0, (B, H, L)."""
        return self._shown((self.given != 0).any(-1))

    def _cropped(self, batch: int, rows: slice, cols: slice, offset: int | None) -> "GivenMap":
        return GivenMap(self.given[batch : batch + 1, :, rows, cols], offset=offset, ndim=3)

    def _moved(self, target: torch.device | torch.dtype | str) -> "GivenMap":
        return GivenMap(self.given.to(target), offset=self.offset, ndim=self.ndim)

    def _weights_tile(self, batch: Index, heads: Index, rows: Index, cols: Index) -> Tensor:
        return self.given[batch][:, heads][:, :, rows][..., cols].to(self.dtype, copy=True)

    def _blocks(self, batch: Index, heads: Index, rows: Index, cols: Index, tile: Any) -> Tensor:
        result: Tensor = tile(batch, heads, rows, cols)  # needs no temporary memory
        return result

    def _statistics(self, wanted: Statistics, progress: Progress | None, map_count: int) -> MapStatistics:
        """Compute statistics of the given weights, a band of rows at a time."""
        batch, heads, length, size = self.full_shape
        received = self.given.new_zeros(batch, heads, size, dtype=self.dtype)
        parts = None if wanted.pooled is None else (min(wanted.pooled[0], length), min(wanted.pooled[1], size))
        pooled = None if parts is None else received.new_zeros(batch, heads, *parts)
        by_row: dict[str, list[Tensor]] = {"values": [], "keys": [], "entropy": [], "distance": []}
        step = max(1, score_tile_budget(self.given) // max(1, batch * heads * size))
        for start in range(0, max(1, length), step):
            rows, cols = slice(start, min(start + step, length)), slice(0, size)
            weights = self._weights_tile(slice(None), slice(None), rows, cols)
            if wanted.top is not None:
                values, keys = merge_top_k(None, weights.masked_fill(weights == 0, -torch.inf), cols, wanted.top)
                by_row["values"].append(values.masked_fill(keys == -1, 0.0))
                by_row["keys"].append(keys)
            row_sum = weights.sum(-1, keepdim=True)
            fractions = weights / torch.where(row_sum == 0, 1.0, row_sum)
            fractions = fractions.masked_fill((weights < 0).any(-1, keepdim=True), torch.nan)
            if wanted.entropy:
                by_row["entropy"].append(torch.special.entr(fractions).sum(-1))
            if wanted.distance:
                i, j = positions(rows, self.device)[:, None] + (self.offset or 0), positions(cols, self.device)
                by_row["distance"].append((fractions * (i - j).abs()).sum(-1))
            received += weights.sum(-2)
            if pooled is not None and parts is not None:
                pool_tile_weights(pooled, weights, rows, cols, length, size, parts)
            if progress is not None:
                progress(weights.shape[2] / max(1, length))
        if pooled is not None and parts is not None:
            pooled /= cell_sizes(length, parts[0], self.device)[:, None] * cell_sizes(size, parts[1], self.device)
        of_rows = {name: torch.cat(bands, 2) if bands else None for name, bands in by_row.items()}
        return MapStatistics(**of_rows, received=received if wanted.received else None, pooled=pooled, sink_share=None)


def _raise_no_scores(name: str, _: GivenMap) -> None:
    raise RegardError(f"{name}: this map has weights that a program computed, and not their queries, keys and scores")


for _name in OF_SCORES:
    setattr(GivenMap, _name, property(partial(_raise_no_scores, _name)))


def one_head(weights: AttentionMap, head: int) -> AttentionMap:
    """Return the map (.., 1, L, S) of one head, counted from 0. Raises IndexError if the head doesn't exist."""
    count = weights.full_shape[1]
    if not 0 <= head < count:
        raise IndexError(f"head {head} is out of range: {numbers_there('head', count, 'the map has')}")
    return _map_of_heads(weights, [head], max(3, weights.ndim))


def of_heads(weights: AttentionMap, heads: Sequence[int] | None, layer: int) -> AttentionMap:
    """Return the map (h, L, S) of the selected heads, renumbered from 0. heads: None for all."""
    count = weights.full_shape[1]
    if heads is None or list(heads) == list(range(count)):
        return weights
    for head in heads:
        if not 0 <= head < count:
            raise missing_number_error("head", head, count, f"layer {layer} has")
    return _map_of_heads(weights, heads, weights.ndim)


def key_heads_of_queries(heads: Sequence[int], count: int, groups: int) -> list[int]:
    """Return the key heads for some of `count` query heads, without repeats if each serves the same number of them."""
    key_heads = [head * groups // count for head in heads]
    distinct = sorted(set(key_heads))
    run_length = len(heads) // len(distinct)
    return distinct if key_heads == [group for group in distinct for _ in range(run_length)] else key_heads


def _map_of_heads(weights: AttentionMap, heads: Sequence[int], ndim: int) -> AttentionMap:
    run = _heads_as_index(heads)
    if isinstance(weights, GivenMap):
        return GivenMap(weights.given[:, run], offset=weights.offset, ndim=ndim)

    def of_heads(tensor: Tensor) -> Tensor:
        return tensor[:, run] if tensor.shape[1] > 1 else tensor

    count, groups, rule, mask = weights.full_shape[1], weights.key.shape[1], weights.rule, weights.rule.mask
    if mask is not None:
        removed = tuple(part for edges in mask.removed if (part := edges.of_heads(heads)) is not None)
        mask = replace(mask, dense=tuple(map(of_heads, mask.dense)), removed=removed)
    bias, sinks = None if rule.bias is None else of_heads(rule.bias), None if rule.sinks is None else rule.sinks[run]
    rule = replace(rule, bias=bias, mask=mask, sinks=sinks)
    key = weights.key[:, _heads_as_index(key_heads_of_queries(heads, count, groups))]
    return AttentionMap(weights.query[:, run], key, rule, offset=weights.offset, ndim=ndim)


def _heads_as_index(numbers: Sequence[int]) -> slice | list[int]:
    """Return numbers as an index. Consecutive numbers become a slice, which avoids a copy."""
    run = range(numbers[0], numbers[0] + len(numbers))
    return slice(run.start, run.stop) if list(numbers) == list(run) else list(numbers)
