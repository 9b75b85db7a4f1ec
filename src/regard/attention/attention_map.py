"""The attention matrix of one call, which computes the regions that you read.

    score  = softcap(scale · query · key) + bias, -inf where masked
    weight = exp(score - row_max) / row_sum

To compute a weight, you need only two numbers of its row, the maximum and the sum (`region_scores.py`). A region costs
its own size, and no L × S tensor exists. Statistics of the whole matrix take one blockwise pass in O(L + S) memory
(`kernels/statistics.py`). Source of row maximum and row sum: Milakov & Gimelshein 2018, "Online normalizer calculation
for softmax".
"""

import math
from dataclasses import replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention import region_scores
from regard.attention.arguments import DTYPES, four_axes, score_rule
from regard.attention.kernels import statistics
from regard.attention.map_statistics import MapStatistics, Progress, Statistics
from regard.attention.masks import Edges, Index, Mask, run_of_index, select
from regard.attention.region_scores import RowSums, ScoreView, parse_map_index
from regard.attention.scores import (
    ScoreRule,
    finite_max,
    score_tile,
    score_tile_budget,
    sink_column,
    sink_share,
    subtract_row_bias,
    valid_rows,
    working_dtype,
)
from regard.errors import RegardError
from regard.lazy import from_above
from regard.memory import require_memory
from regard.shown import Showable
from regard.tensor_file import MAP, Packer, Types, read_tensor_file, write_tensor_file

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray


FUNCTION_LIMIT = 1 << 24  # largest L × S for which a mask function is saved as a tensor: 16 MiB
MAP_TYPES: Types = {"ScoreRule": ScoreRule, "Mask": Mask, "Edges": Edges}


def map_fields(map: Any) -> dict[str, Any]:
    """Return the fields of a map to save in a file, for a `Packer`."""
    if map.given is not None:
        return {"type": "map", "weights": map.given, "offset": map.offset, "ndim": map.ndim}
    rule, length, size = map.rule, map.query.shape[2], map.key.shape[2]
    if rule.mask is not None and rule.mask.functions:
        if length * size > FUNCTION_LIMIT:
            raise ValueError(
                f"mask: a function of positions over {length} × {size} scores can't be saved: the limit is "
                f"{FUNCTION_LIMIT} scores. Use a mask of causal, window, padding and dense parts instead"
            )
        answers = Mask(functions=rule.mask.functions).materialise(1, 1, length, size, map.device)
        rule = replace(rule, mask=replace(rule.mask, dense=(*rule.mask.dense, answers), functions=()))
    return {"type": "map", "query": map.query, "key": map.key, "rule": rule, "offset": map.offset, "ndim": map.ndim}


MAX_ARRAY = 1 << 26  # largest number of weights that implicit conversion to an array computes
HELPS = "ask for a smaller region, or for statistics of all of it: top(), received(), pooled(), statistics()"


class AttentionMap(Showable):
    """Weights (B, H, L, S) of one attention call, without the leading axes if the call has none.

    `m[b, h, 10:20, :]` is an exact dense region in fp32 or better, detached and before dropout. No L × S tensor exists
    until you read the whole matrix. Row maxima and row sums are computed once, from the same scores as the regions.
    shape: the axes of the call. dtype: of scores and weights, float32 or float64. device: where they are computed.
    full_shape: with all four axes. given: the stored weights (B, H, L, S) of a `GivenMap`.
    """

    given: Float[Tensor, "B H L S"] | None = None
    _kept: Float[Tensor, "B H L S"] | None = None  # all weights, while `weights_kept` lasts

    def __init__(
        self, query: Float[Tensor, "B H L D"], key: Float[Tensor, "B G S D"], rule: ScoreRule, *,
        offset: int | None = None, ndim: int = 4,
        row_max_sum: tuple[Float[Tensor, "B H L"], Float[Tensor, "B H L"]] | None = None,
        known: MapStatistics | None = None,
    ) -> None:  # fmt: skip
        """Keep query, key and rule by reference. offset: position of query 0 among the keys, None for cross-attention.

        ndim: the number of axes of (B, H, L, S) to show, counted from the right. The others have size 1.
        row_max_sum: each query's (row maximum, row sum) from a kernel. Statistics check them before use.
        known: statistics that were computed with the output, with all four axes.
        """
        self.query, self.key, self.rule = query.detach(), key.detach(), rule.detached()
        self.offset, self.ndim = offset, ndim
        self.full_shape = (*query.shape[:3], key.shape[2])
        self.shape: tuple[int, ...] = self.full_shape[4 - ndim :]
        self.dtype, self.device = working_dtype(query), query.device
        self._attached = query, key, rule
        self._from_kernel, self._known = row_max_sum, known

    @cached_property
    def near_rule(self) -> ScoreRule:
        """Return the rule for computing weights. It shifts each row's scores towards 0, which doesn't change them."""
        return self.rule if self.rule.bias is None else subtract_row_bias(self.query, self.key, self.rule)

    @cached_property
    def _rows(self) -> RowSums:
        return RowSums(self.query, self.key, self.near_rule)

    @staticmethod
    def of_weights(weights: Float[Tensor, "*B L S"], offset: int | None = None) -> "AttentionMap":
        """Make a map of weights that your code computed, with 2 to 4 axes. Rows need not sum to 1 (see `GivenMap`).

        offset: position of query 0 among the keys; by default 0 if L = S, else None for cross-attention.

        Raises:
            TypeError, ValueError: weights aren't a floating-point tensor with 2 to 4 axes.
        """
        return from_above("GivenMap").of(weights, offset)

    @staticmethod
    def of_query_key(query: Float[Tensor, "*B L D"], key: Float[Tensor, "*G S D"], **options: Any) -> "AttentionMap":
        """Make a map from queries and keys. options: arguments of `regard.attend`, such as `causal` and `mask`.

        Raises the errors of `regard.attend`.
        """
        ndim = query.ndim if isinstance(query, Tensor) else 0
        query, key, _ = four_axes(query, key, key)
        rule, offset = score_rule(query, key.shape[2], **options)
        return AttentionMap(query, key, rule, offset=offset, ndim=ndim)

    @staticmethod
    def of_fields(
        query: Any = None, key: Any = None, rule: Any = None, *, offset: int | None, ndim: int, weights: Any = None
    ) -> "AttentionMap":
        """Make a map from the fields of a file. They are checked like the arguments of `attend`.

        Raises:
            TypeError, ValueError: the fields don't fit each other.
        """
        if weights is not None:
            return from_above("GivenMap")(weights, offset=offset, ndim=ndim)
        query, key, _ = four_axes(query, key, key)
        arguments = {name: getattr(rule, name) for name in ("scale", "softcap", "bias", "mask", "sinks")}
        checked, _ = score_rule(query, key.shape[2], offset=offset, **arguments)
        return AttentionMap(query, key, checked, offset=offset, ndim=ndim)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape}, dtype={self.dtype}, device={str(self.device)!r})"

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Float[Tensor, "..."]:
        """Compute the weights of a region, numpy-style. Raises IndexError for a wrong index, as numpy does."""
        return self._region(index, self._weights_tile)

    def __array__(self, dtype: "DTypeLike | None" = None, copy: bool | None = None) -> "NDArray[Any]":
        """Compute all weights for numpy. Raises RegardError above 2^26 weights: ask for a region, or for `dense()`."""
        weights = self._as_tensor().cpu()
        array = (weights.float() if weights.dtype == torch.bfloat16 else weights).numpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __dlpack__(self, **options: Any) -> Any:
        """Compute all weights for `torch.as_tensor`, up to 2^26 weights, as for numpy."""
        return self._as_tensor().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[Any, int]:
        """Return the device of the weights for `__dlpack__`."""
        return torch.empty(0, device=self.device).__dlpack_device__()

    def _as_tensor(self) -> Tensor:
        if math.prod(self.shape) > MAX_ARRAY:
            raise RegardError(f"{math.prod(self.shape):,} weights as one array: {HELPS}, or call dense()")
        return self[...]

    def rows(self, batch: slice, rows: Int[Tensor, " r"]) -> Float[Tensor, "b H r S"]:
        """Compute the weights of some queries of some texts, like `m[batch, :, rows]`, without caching anything."""
        heads, cols = slice(0, self.full_shape[1]), slice(0, self.full_shape[3])
        scores = region_scores.scores(self.query, self.key, self.near_rule, batch, heads, rows, cols)
        return region_scores.weights_of_whole_rows(scores, self.near_rule, heads, self.dtype)[0]

    @property
    def scores(self) -> "ScoreView":
        """Return a view of the same matrix before the softmax, already scaled: `m.scores[...]`, a `ScoreView`."""
        return ScoreView(self)

    def dense(self, *, differentiable: bool = False, dtype: torch.dtype | None = None) -> Float[Tensor, "..."]:
        """Compute all weights as one tensor, with memory L × S. differentiable: exact weights with gradients.

        dtype: torch.float32 computes scores and softmax in float32, as eager attention does, in half the time. For
        scores up to 90 (MiniLM), errors reach 3e-6 instead of 9e-8. Default: as precise as regions.

        Raises:
            ValueError: dtype isn't torch.float32, or is combined with differentiable.
        """
        if dtype is not None:
            if dtype != torch.float32 or differentiable:
                raise ValueError(f"dense: dtype={dtype}: use torch.float32, without differentiable=True")
            converted = self if self.dtype == dtype else self.to(dtype)
            query, key, rule = converted.query, converted.key, converted.near_rule

            def tile(batch: Index, heads: Index, rows: Index, cols: Index) -> Tensor:
                scores = score_tile(query, key, rule, batch, heads, rows, cols, dtype)
                if scores.shape[-1] == 0 or (rule.mask is None and rule.bias is None and rule.sinks is None):
                    return scores.softmax(-1)
                return region_scores.weights_of_whole_rows(scores, rule, heads, dtype)[0]

            return self._shown(converted._blocks(*self._everything(), tile))
        if not differentiable:
            return self[...]
        query, key, rule = self._attached
        region = self._everything()
        size = 3 * math.prod(self.full_shape) * self.dtype.itemsize
        require_memory(size, self.device, "dense(differentiable=True)", HELPS)
        scores = score_tile(query, key, subtract_row_bias(query, key, rule), *region)
        empty = (scores == -torch.inf).all(-1, keepdim=True)
        sink = sink_column(rule, region[1], scores.dtype)
        if sink is not None:
            scores = torch.cat([scores, sink[..., None].expand(*scores.shape[:-1], 1)], -1)
        weights = torch.where(empty, 0.0, torch.where(empty, 0.0, scores).softmax(-1))
        return self._shown(weights[..., : self.full_shape[3]])

    def row_max_sum(self) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
        """Compute (row maximum, row sum) of each query, (B, H, L): a weight is exp(score - maximum) / sum.

        Sinks are included. A row without any key or sink has (-inf, 0).
        """
        row_max, row_sum = self._rows.of(*self._everything()[:3])
        row_max = row_max if self.near_rule.row_bias is None else row_max.double() + self.near_rule.row_bias[..., 0]
        rounded = row_max.to(self.dtype)
        row_sum = row_sum * torch.exp(finite_max(row_max) - finite_max(rounded.to(row_max.dtype)))
        return self._shown(rounded), self._shown(row_sum.to(self.dtype))

    @property
    def sink_share(self) -> Float[Tensor, "..."]:
        """Return the fraction of each query's attention to its head's sink, (B, H, L). The weights sum to the rest."""
        row_max, row_sum = self._rows.of(*self._everything()[:3])
        share = sink_share(self.rule, slice(0, self.full_shape[1]), row_max, row_sum)
        return self._shown((torch.zeros_like(row_max) if share is None else share).to(self.dtype))

    @property
    def valid(self) -> Bool[Tensor, "..."]:
        """Return which queries can attend to a key, (B, H, L). Sinks don't matter."""
        return self._shown(valid_rows(self.query, self.key, self.rule))

    def top(self, k: int) -> tuple[Float[Tensor, "..."], Int[Tensor, "..."]]:
        """Return (values, keys) of each query's k largest weights, (B, H, L, min(k, S)). Ties go to the smaller key.

        If a query can attend to fewer keys, the rest has weight 0 and key -1. Raises ValueError unless k >= 1.
        """
        largest = self._compute(Statistics.only(top=k))
        return self._shown_result(largest.values), self._shown_result(largest.keys)

    def entropy(self) -> Float[Tensor, "..."]:
        """Compute the entropy of each query's distribution in nats, (B, H, L). A sink counts as a key."""
        return self._shown_result(self._compute(Statistics.only(entropy=True)).entropy)

    def received(self) -> Float[Tensor, "..."]:
        """Sum the weights that each key receives from all queries, (B, H, S), per query head.

        Heads that share a key head aren't merged. Attention to sinks isn't included: each head's sum is the number of
        queries that attend to any key, minus the sum of its sink shares.
        """
        return self._shown_result(self._compute(Statistics.only(received=True)).received)

    def distance(self) -> Float[Tensor, "..."]:
        """Compute the mean |i - j| in positions, weighted by the weights on keys, (B, H, L), per query head.

        A sink has no position, so its share is left out and the weights on keys are rescaled to sum to 1. The distance
        of a query that can't attend to any key is 0.

        Raises:
            ValueError: cross-attention, because queries and keys are in different sequences.
        """
        if self.offset is None:
            raise ValueError(
                "distance: queries and keys are in different sequences (cross-attention), so |i - j| means nothing; "
                "pass an offset to attend() if they are in one"
            )
        return self._shown_result(self._compute(Statistics.only(distance=True)).distance)

    def pooled(self, rows: int, cols: int, progress: Progress | None = None) -> Float[Tensor, "..."]:
        """Shrink the matrix to at most rows × cols cells. Each cell is the exact mean of its weights."""
        return self._shown_result(self._compute(Statistics.only(pooled=(rows, cols)), progress).pooled)

    def statistics(
        self, top: int = 8, pooled: tuple[int, int] = (256, 256), progress: Progress | None = None
    ) -> MapStatistics:
        """Compute all statistics in one pass. distance is None if positions are unknown (cross-attention).

        progress: called during the pass, from any thread, with the fraction completed since the last call.
        """
        return self._compute(Statistics(top, pooled), progress).map(self._shown)

    def keep_statistics(self, wanted: Statistics, alike: int = 1) -> "AttentionMap":
        """Compute missing statistics and store them in the map. Returns the map itself.

        alike: the number of maps of this size for which statistics will be computed.
        """
        if self._known is None or self._known.answer(wanted, *self.full_shape[2:]) is None:
            self._known = self._compute(wanted, map_count=alike)
        return self

    def crop(self, batch: int, rows: slice, cols: slice) -> "AttentionMap":
        """Return the map of one text of a batch, (H, rows, cols). The softmax is over the keys cols only.

        Use it to remove padding: keys outside cols must be masked for all of these rows. The map keeps its statistics
        if all rows and columns are selected.
        """
        batch = range(self.full_shape[0])[batch]
        if rows.step not in (None, 1) or cols.step not in (None, 1):
            raise RegardError("crop: takes slices without a step")
        rows = slice(*rows.indices(self.full_shape[2])[:2])
        cols = slice(*cols.indices(self.full_shape[3])[:2])
        offset = None if self.offset is None else self.offset + rows.start - cols.start
        cropped = self._cropped(batch, rows, cols, offset)
        if self._known is not None and cropped.full_shape[2:] == self.full_shape[2:]:
            cropped._known = self._known.map(lambda t: t[batch : batch + 1])
        return cropped

    def to(self, target: torch.device | torch.dtype | str) -> "AttentionMap":
        """Return the same map on another device, or with queries and keys in another floating-point dtype.

        Raises:
            TypeError: target is neither a device nor a supported dtype.
            RuntimeError: torch has no device of this name.
        """
        if not isinstance(target, (torch.device, torch.dtype, str)):
            raise TypeError(f"to: got {target!r}, expected a device such as 'cpu' or a dtype such as torch.float64")
        if isinstance(target, torch.dtype) and target not in DTYPES:
            raise TypeError(f"to: got {target}, expected float64, float32, bfloat16 or float16")
        return self._moved(target)

    def save(self, file: str | Path) -> None:
        """Write the map to a safetensors file atomically. The file stores query, key and rule in O(L + S), not L × S.

        A `GivenMap` stores its weights.

        Raises:
            RegardError: the file can't be written.
            ValueError: the mask is a function and covers too many scores to save.
        """
        packer = Packer()
        write_tensor_file(file, MAP, packer.pack("map", map_fields(self)), packer.tensors)

    @staticmethod
    def load(file: str | Path, *, verify: bool = True) -> "AttentionMap":
        """Read a map written by `save`, onto the CPU. Raises RegardError if the file is damaged or has no map.

        verify: False opens a large file immediately, without comparing its checksum. Default: True.
        """
        types = {MAP: MAP_TYPES | {"map": AttentionMap.of_fields}}
        return cast(AttentionMap, read_tensor_file(file, types, verify=verify))

    def _cropped(self, batch: int, rows: slice, cols: slice, offset: int | None) -> "AttentionMap":
        query, key = self.query[batch : batch + 1, :, rows], self.key[batch : batch + 1, :, cols]
        return type(self)(query, key, self.rule.crop(batch, rows, cols), offset=offset, ndim=3)

    def _moved(self, target: torch.device | torch.dtype | str) -> "AttentionMap":
        query, key = self.query.to(target), self.key.to(target)
        return type(self)(query, key, self.rule.to(query.device), offset=self.offset, ndim=self.ndim)

    def _everything(self) -> tuple[slice, slice, slice, slice]:
        b, h, length, size = self.full_shape
        return slice(0, b), slice(0, h), slice(0, length), slice(0, size)

    def _shown(self, full: Tensor) -> Tensor:
        return full.reshape(full.shape[4 - self.ndim :])

    def _shown_result(self, full: Tensor | None) -> Tensor:
        assert full is not None
        return self._shown(full)

    def _compute(self, wanted: Statistics, progress: Progress | None = None, map_count: int = 1) -> MapStatistics:
        """Return statistics of the whole attention matrix, from the known statistics if they suffice."""
        if self.offset is None:
            wanted = replace(wanted, distance=False)
        if self._known is not None and (known := self._known.answer(wanted, *self.full_shape[2:])):
            if progress is not None:
                progress(1.0)
            return known
        return self._statistics(wanted, progress, map_count)

    def _statistics(self, wanted: Statistics, progress: Progress | None, map_count: int) -> MapStatistics:
        rows = self._from_kernel
        return statistics.compute(self.query, self.key, self.rule, wanted, self.offset, rows, progress, map_count)

    def _region(self, index: Any, tile: Any) -> Tensor:
        """Compute the region of the attention matrix that a numpy-style index selects."""
        ranges, finish = parse_map_index(index, self.shape, self.device)
        hidden = 4 - self.ndim
        batch, heads, rows, cols = [slice(0, 1)] * hidden + ranges
        return self._blocks(batch, heads, rows, cols, tile)[(0,) * hidden + finish]

    def _scores_tile(self, batch: Index, heads: Index, rows: Index, cols: Index) -> Tensor:
        return region_scores.scores(self.query, self.key, self.rule, batch, heads, rows, cols).to(self.dtype)

    def _weights_tile(self, batch: Index, heads: Index, rows: Index, cols: Index) -> Tensor:
        if self._kept is not None:
            return select(self._kept, batch, heads, rows, cols)
        size, whole = self.full_shape[3], cols == slice(0, self.full_shape[3])
        if whole and self.rule.mask is not None:
            cols = self.rule.mask.keys_of_rows(rows, size)
        scores = region_scores.scores(self.query, self.key, self.near_rule, batch, heads, rows, cols)
        if not whole or size == 0 or not isinstance(cols, slice):
            return region_scores.weights(scores, *self._rows.of(batch, heads, rows), self.dtype)
        unseen = cols.start, size - cols.stop
        weights, *sums = region_scores.weights_of_whole_rows(scores, self.near_rule, heads, self.dtype, unseen)
        self._rows.keep(batch, heads, rows, *sums)
        return weights

    def _blocks(self, batch: Index, heads: Index, rows: Index, cols: Index, tile: Any) -> Tensor:
        """Compute a region one band of rows at a time, so temporary memory is needed for one band only."""
        sizes = [
            len(range(*x.indices(n))) if isinstance(x, slice) else len(x)
            for x, n in zip((batch, heads, rows, cols), self.full_shape, strict=True)
        ]
        on_cpu = self.device.type == "cpu"
        budget = region_scores.CACHED if on_cpu else score_tile_budget(self.query)
        if math.prod(sizes) <= budget or self._kept is not None:
            return tile(batch, heads, rows, cols)
        purpose = f"a region of {' × '.join(map(str, sizes))} weights"
        require_memory(math.prod(sizes) * self.dtype.itemsize, self.device, purpose, HELPS)
        answer = torch.empty(sizes, dtype=self.dtype, device=self.device)
        head_step = 1 if on_cpu else sizes[1]  # converts each head's keys only once
        row_step = max(1, budget // max(1, sizes[0] * head_step * sizes[3]))
        for h, r in product(range(0, sizes[1], head_step), range(0, sizes[2], row_step)):
            some_heads, band = run_of_index(heads, h, head_step), run_of_index(rows, r, row_step)
            answer[:, h : h + head_step, r : r + row_step] = tile(batch, some_heads, band, cols)
        return answer
