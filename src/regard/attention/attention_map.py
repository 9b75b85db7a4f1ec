"""The attention matrix of one call, computed region by region when it is asked for.

    score  = softcap(scale · query · key) + bias, -inf where the mask forbids
    weight = exp(score - row_max) / row_sum

Of the rest of its row a weight needs two numbers only, row maximum and row sum (`region_scores.py`): a region costs its
own size, and no tensor of L × S exists. Statistics of the whole matrix take one blockwise pass in O(L + S) memory
(`kernels/statistics.py`). Source of row maximum and row sum: Milakov & Gimelshein 2018, "Online normalizer calculation
for softmax".
"""

import math
from dataclasses import replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

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


FUNCTION_LIMIT = 1 << 24  # scores of a mask function that are written out: 16 MiB, a map of 4096 × 4096
MAP_TYPES: Types = {"ScoreRule": ScoreRule, "Mask": Mask, "Edges": Edges}


def map_fields(map: Any) -> dict[str, Any]:
    """Return what a file holds of a map, for a `Packer`."""
    if map.given is not None:
        return {"type": "map", "weights": map.given, "offset": map.offset, "ndim": map.ndim}
    rule, length, size = map.rule, map.query.shape[2], map.key.shape[2]
    if rule.mask is not None and rule.mask.functions:
        if length * size > FUNCTION_LIMIT:
            raise ValueError(
                f"mask: given a function of positions over {length} × {size} scores, which cannot be saved; it needs "
                f"at most {FUNCTION_LIMIT} scores, or a mask of causal, window, padding and dense parts"
            )
        answers = Mask(functions=rule.mask.functions).materialise(1, 1, length, size, map.device)
        rule = replace(rule, mask=replace(rule.mask, dense=(*rule.mask.dense, answers), functions=()))
    return {"type": "map", "query": map.query, "key": map.key, "rule": rule, "offset": map.offset, "ndim": map.ndim}


MAX_ARRAY = 1 << 26  # weights that become an array without being asked for by name
HELPS = "ask for a smaller region, or for statistics of all of it: top(), received(), pooled(), statistics()"


class AttentionMap(Showable):
    """Weights (B, H, L, S) of one attention call; without the leading axes where the call had none.

    `m[b, h, 10:20, :]` is an exact dense region in fp32 or better, detached and before dropout. Nothing of size L × S
    exists until it is asked for. Row maxima and row sums are computed once, from the scores that regions are read from.
    shape: the axes that are shown. dtype: what scores and weights are computed in, float32 or float64. device: where.
    full_shape: with all four axes. given: the weights (B, H, L, S) themselves, of a `GivenMap`.
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

        ndim: how many of the axes (B, H, L, S) to show, counted from the right; the others have size 1.
        row_max_sum: each query's (row maximum, row sum) from a kernel: a start for statistics, which check them.
        known: statistics of all its axes that were computed with the output, to answer from.
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
        """The rule that weights are computed by: the same weights, and scores near 0."""
        return self.rule if self.rule.bias is None else subtract_row_bias(self.query, self.key, self.rule)

    @cached_property
    def _rows(self) -> RowSums:
        return RowSums(self.query, self.key, self.near_rule)

    @staticmethod
    def of_weights(weights: Float[Tensor, "*B L S"], offset: int | None = None) -> "AttentionMap":
        """Make a map of weights that a program computed, of 2 to 4 axes; rows need not sum to 1 (`GivenMap`).

        offset: position of query 0 among the keys; by default 0 if L = S, else None for cross-attention.

        Raises:
            TypeError, ValueError: weights are no floating-point tensor, or have fewer or more axes.
        """
        return from_above("GivenMap").of(weights, offset)

    @staticmethod
    def of_query_key(query: Float[Tensor, "*B L D"], key: Float[Tensor, "*G S D"], **how: Any) -> "AttentionMap":
        """Make the map of queries and keys. how: `causal`, `mask`, `scale` and others, as `regard.attend` takes them.

        Errors are those of `regard.attend`.
        """
        ndim = query.ndim if isinstance(query, Tensor) else 0
        query, key, _ = four_axes(query, key, key)
        rule, offset = score_rule(query, key.shape[2], **how)
        return AttentionMap(query, key, rule, offset=offset, ndim=ndim)

    @staticmethod
    def of_fields(
        query: Any = None, key: Any = None, rule: Any = None, *, offset: int | None, ndim: int, weights: Any = None
    ) -> "AttentionMap":
        """Make a map of the fields that a file holds, checked like the arguments of `attend`.

        Raises:
            TypeError, ValueError: they don't fit each other.
        """
        if weights is not None:
            return from_above("GivenMap")(weights, offset=offset, ndim=ndim)
        query, key, _ = four_axes(query, key, key)
        own = {name: getattr(rule, name) for name in ("scale", "softcap", "bias", "mask", "sinks")}
        checked, _ = score_rule(query, key.shape[2], offset=offset, **own)
        return AttentionMap(query, key, checked, offset=offset, ndim=ndim)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape}, dtype={self.dtype}, device={str(self.device)!r})"

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Float[Tensor, "..."]:
        """Compute the weights of a region, numpy-style. Raises IndexError and TypeError as a tensor would."""
        return self._region(index, self._weights_tile)

    def __array__(self, dtype: "DTypeLike | None" = None, copy: bool | None = None) -> "NDArray[Any]":
        """Compute all weights for numpy. Raises RegardError above 2^26 weights: ask for a region, or for `dense()`."""
        weights = self._as_tensor().cpu()
        array = (weights.float() if weights.dtype == torch.bfloat16 else weights).numpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __dlpack__(self, **options: Any) -> Any:
        """Compute all weights for `torch.as_tensor`, up to 2^26 of them, as for numpy."""
        return self._as_tensor().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[Any, int]:
        """Name the device of the weights, for `__dlpack__`."""
        return torch.empty(0, device=self.device).__dlpack_device__()

    def _as_tensor(self) -> Tensor:
        if math.prod(self.shape) > MAX_ARRAY:
            raise RegardError(f"{math.prod(self.shape):,} weights as one array: {HELPS}, or call dense()")
        return self[...]

    def rows(self, batch: slice, rows: Int[Tensor, " r"]) -> Float[Tensor, "b H r S"]:
        """Compute the weights of some queries of some texts, as `m[batch, :, rows]` does, and remember nothing."""
        heads, cols = slice(0, self.full_shape[1]), slice(0, self.full_shape[3])
        scores = region_scores.scores(self.query, self.key, self.near_rule, batch, heads, rows, cols)
        return region_scores.weights_of_whole_rows(scores, self.near_rule, heads, self.dtype)[0]

    @property
    def scores(self) -> "ScoreView":
        """The same matrix before the softmax, already scaled: `m.scores[...]`, as `ScoreView` describes it."""
        return ScoreView(self)

    def dense(self, *, differentiable: bool = False, dtype: torch.dtype | None = None) -> Float[Tensor, "..."]:
        """Compute all weights as one tensor: memory L × S. differentiable: exact, and gradients flow through it.

        dtype: torch.float32 computes scores and softmax in float32, as eager attention does, in half the time. For
        scores up to 90 (MiniLM), errors reach 3e-6 instead of 9e-8. Default: as precise as regions.

        Raises:
            ValueError: another dtype, or a dtype with differentiable.
        """
        if dtype is not None:
            if dtype != torch.float32 or differentiable:
                raise ValueError(f"dense: given dtype={dtype}, takes torch.float32 only, without differentiable=True")
            own = self if self.dtype == dtype else self.to(dtype)
            query, key, rule = own.query, own.key, own.near_rule

            def tile(batch: Index, heads: Index, rows: Index, cols: Index) -> Tensor:
                scores = score_tile(query, key, rule, batch, heads, rows, cols, dtype)
                if scores.shape[-1] == 0 or (rule.mask is None and rule.bias is None and rule.sinks is None):
                    return scores.softmax(-1)
                return region_scores.weights_of_whole_rows(scores, rule, heads, dtype)[0]

            return self._shown(own._blocks(*self._everything(), tile))
        if not differentiable:
            return self[...]
        query, key, rule = self._attached
        whole = self._everything()
        require_memory(
            3 * math.prod(self.full_shape) * self.dtype.itemsize, self.device, "dense(differentiable=True)", HELPS
        )
        scores = score_tile(query, key, subtract_row_bias(query, key, rule), *whole)
        empty = (scores == -torch.inf).all(-1, keepdim=True)
        sink = sink_column(rule, whole[1], scores.dtype)
        if sink is not None:
            scores = torch.cat([scores, sink[..., None].expand(*scores.shape[:-1], 1)], -1)
        weights = torch.where(empty, 0.0, torch.where(empty, 0.0, scores).softmax(-1))
        return self._shown(weights[..., : self.full_shape[3]])

    def row_max_sum(self) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
        """Compute (row maximum, row sum) of each query, (B, H, L): a weight is exp(score - maximum) / sum.

        Sinks are included; (-inf, 0) where there is no key and no sink.
        """
        row_max, row_sum = self._rows.of(*self._everything()[:3])
        row_max = row_max if self.near_rule.row_bias is None else row_max.double() + self.near_rule.row_bias[..., 0]
        rounded = row_max.to(self.dtype)
        row_sum = row_sum * torch.exp(finite_max(row_max) - finite_max(rounded.to(row_max.dtype)))
        return self._shown(rounded), self._shown(row_sum.to(self.dtype))

    @property
    def sink_share(self) -> Float[Tensor, "..."]:
        """The part of each query's attention that its head's sink takes, (B, H, L): weights + sink share sum to 1."""
        row_max, row_sum = self._rows.of(*self._everything()[:3])
        share = sink_share(self.rule, slice(0, self.full_shape[1]), row_max, row_sum)
        return self._shown((torch.zeros_like(row_max) if share is None else share).to(self.dtype))

    @property
    def valid(self) -> Bool[Tensor, "..."]:
        """(B, H, L): False where a query may attend to no key, whether or not there is a sink that takes all."""
        return self._shown(valid_rows(self.query, self.key, self.rule))

    def top(self, k: int) -> tuple[Float[Tensor, "..."], Int[Tensor, "..."]]:
        """Return (values, keys) of each query's k largest weights, (B, H, L, min(k, S)); ties go to the smaller key.

        Where a query may attend to fewer keys, the rest is weight 0 and key -1. Raises ValueError unless k >= 1.
        """
        largest = self._compute(Statistics.only(top=k))
        return self._one(largest.values), self._one(largest.keys)

    def entropy(self) -> Float[Tensor, "..."]:
        """Compute the entropy of each query's distribution in nats, (B, H, L); a sink's share is one more outcome."""
        return self._one(self._compute(Statistics.only(entropy=True)).entropy)

    def received(self) -> Float[Tensor, "..."]:
        """Sum the weights that each key gets from all queries, (B, H, S): one number for every query head.

        Heads that share a key head are not joined. What sinks take is missing: each head's sum is the number of queries
        that attend to something, less the sum of its sink shares.
        """
        return self._one(self._compute(Statistics.only(received=True)).received)

    def distance(self) -> Float[Tensor, "..."]:
        """Compute the mean |i - j| in positions, weighted by the weights on keys, (B, H, L), for every query head.

        A sink has no position: its share is left out and the weights on keys count as if they summed to 1. 0 for a
        query that attends to no key.

        Raises:
            ValueError: cross-attention, where positions are not of one sequence.
        """
        if self.offset is None:
            raise ValueError(
                "distance: queries and keys are of different sequences (cross-attention), so |i - j| means nothing; "
                "give attend() an offset where they are of one"
            )
        return self._one(self._compute(Statistics.only(distance=True)).distance)

    def pooled(self, rows: int, cols: int, progress: Progress | None = None) -> Float[Tensor, "..."]:
        """Shrink the matrix to at most rows × cols cells, each the true mean of its weights, uneven cells too."""
        return self._one(self._compute(Statistics.only(pooled=(rows, cols)), progress).pooled)

    def statistics(
        self, top: int = 8, pooled: tuple[int, int] = (256, 256), progress: Progress | None = None
    ) -> MapStatistics:
        """Compute all statistics in one pass; distance is None where positions are not known (cross-attention).

        progress: called while the pass runs, from any thread, with the share of it that was just done.
        """
        return self._compute(Statistics(top, pooled), progress).each(self._shown)

    def keep_statistics(self, wanted: Statistics, alike: int = 1) -> "AttentionMap":
        """Compute statistics that are not known yet, for the map to answer from; returns the map itself.

        alike: for how many maps of this size that is done.
        """
        if self._known is None or self._known.answer(wanted, *self.full_shape[2:]) is None:
            self._known = self._compute(wanted, alike=alike)
        return self

    def crop(self, batch: int, rows: slice, cols: slice) -> "AttentionMap":
        """Take the map of one text of a batch, (H, rows, cols): its weights are those of a softmax over cols alone.

        Meant for taking padding away: keys outside cols have to be masked for every one of these rows. Statistics that
        are known stay so where all rows and columns are taken.
        """
        batch = range(self.full_shape[0])[batch]
        if rows.step not in (None, 1) or cols.step not in (None, 1):
            raise RegardError("crop: takes slices without a step")
        rows = slice(*rows.indices(self.full_shape[2])[:2])
        cols = slice(*cols.indices(self.full_shape[3])[:2])
        offset = None if self.offset is None else self.offset + rows.start - cols.start
        cropped = self._cropped(batch, rows, cols, offset)
        if self._known is not None and cropped.full_shape[2:] == self.full_shape[2:]:
            cropped._known = self._known.each(lambda t: t[batch : batch + 1])
        return cropped

    def to(self, target: torch.device | torch.dtype | str) -> "AttentionMap":
        """Return the same map on another device, or with queries and keys in another floating-point dtype.

        Raises:
            TypeError, ValueError: neither a device nor such a dtype.
        """
        if not isinstance(target, torch.device | torch.dtype | str):
            raise TypeError(f"to: given {target!r}, needs a device such as 'cpu' or a dtype such as torch.float64")
        if isinstance(target, torch.dtype) and target not in DTYPES:
            raise TypeError(f"to: given {target}, needs to be float64, float32, bfloat16 or float16")
        if isinstance(target, str):
            try:
                target = torch.device(target)
            except RuntimeError as error:
                raise ValueError(f"to: given {target!r}, needs a device such as 'cpu' or 'cuda:0'") from error
        return self._moved(target)

    def save(self, file: str | Path) -> None:
        """Write the map to a safetensors file, whole or not at all. It keeps query, key and rule: O(L + S), not L × S.

        A map of given weights keeps these.

        Raises:
            RegardError: the file system refuses.
            ValueError: the mask is a function of positions and too large to be written out.
        """
        packer = Packer()
        write_tensor_file(file, MAP, packer.pack("map", map_fields(self)), packer.tensors)

    @staticmethod
    def load(file: str | Path, *, verify: bool = True) -> "AttentionMap":
        """Read the map that `save` wrote, onto the CPU. Raises RegardError if the file is damaged or holds no map.

        verify: False opens a large file at once, without comparing its checksum. Default: True.
        """
        loaded: AttentionMap = read_tensor_file(file, {MAP: MAP_TYPES | {"map": AttentionMap.of_fields}}, verify=verify)
        return loaded

    def _cropped(self, batch: int, rows: slice, cols: slice, offset: int | None) -> "AttentionMap":
        query, key = self.query[batch : batch + 1, :, rows], self.key[batch : batch + 1, :, cols]
        return type(self)(query, key, self.rule.crop(batch, rows, cols), offset=offset, ndim=3)

    def _moved(self, target: torch.device | torch.dtype) -> "AttentionMap":
        query, key = self.query.to(target), self.key.to(target)
        return type(self)(query, key, self.rule.to(query.device), offset=self.offset, ndim=self.ndim)

    def _everything(self) -> tuple[slice, slice, slice, slice]:
        b, h, length, size = self.full_shape
        return slice(0, b), slice(0, h), slice(0, length), slice(0, size)

    def _shown(self, full: Tensor) -> Tensor:
        return full.reshape(full.shape[4 - self.ndim :])

    def _one(self, full: Tensor | None) -> Tensor:
        assert full is not None
        return self._shown(full)

    def _compute(self, wanted: Statistics, progress: Progress | None = None, alike: int = 1) -> MapStatistics:
        """Compute statistics of all four axes, or take them from those that are known."""
        if self.offset is None:
            wanted = replace(wanted, distance=False)
        if self._known is not None and (known := self._known.answer(wanted, *self.full_shape[2:])):
            if progress is not None:
                progress(1.0)
            return known
        return self._statistics(wanted, progress, alike)

    def _statistics(self, wanted: Statistics, progress: Progress | None, alike: int) -> MapStatistics:
        rows = self._from_kernel
        return statistics.compute(self.query, self.key, self.rule, wanted, self.offset, rows, progress, alike)

    def _region(self, index: Any, tile: Any) -> Tensor:
        """What a tile of the matrix gives, of an index as numpy takes it."""
        needed, finish = parse_map_index(index, self.shape, self.device)
        hidden = 4 - self.ndim
        batch, heads, rows, cols = [slice(0, 1)] * hidden + needed
        return self._blocks(batch, heads, rows, cols, tile)[(0,) * hidden + finish]

    def _scores_tile(self, batch: Index, heads: Index, rows: Index, cols: Index) -> Tensor:
        return region_scores.scores(self.query, self.key, self.rule, batch, heads, rows, cols).to(self.dtype)

    def _weights_tile(self, batch: Index, heads: Index, rows: Index, cols: Index) -> Tensor:
        if self._kept is not None:
            return select(self._kept, batch, heads, rows, cols)
        scores = region_scores.scores(self.query, self.key, self.near_rule, batch, heads, rows, cols)
        if cols != slice(0, self.full_shape[3]) or scores.shape[-1] == 0:
            return region_scores.weights(scores, *self._rows.of(batch, heads, rows), self.dtype)
        weights, *sums = region_scores.weights_of_whole_rows(scores, self.near_rule, heads, self.dtype)
        self._rows.keep(batch, heads, rows, *sums)
        return weights

    def _blocks(self, batch: Index, heads: Index, rows: Index, cols: Index, tile: Any) -> Tensor:
        """Fill a region a band of rows at a time, so that beside the answer only one band of scratch exists."""
        sizes = [
            len(range(*x.indices(n))) if isinstance(x, slice) else len(x)
            for x, n in zip((batch, heads, rows, cols), self.full_shape, strict=True)
        ]
        on_cpu = self.device.type == "cpu"
        budget = region_scores.CACHED if on_cpu else score_tile_budget(self.query)
        if math.prod(sizes) <= budget or self._kept is not None:
            return tile(batch, heads, rows, cols)
        what = f"a region of {' × '.join(map(str, sizes))} weights"
        require_memory(math.prod(sizes) * self.dtype.itemsize, self.device, what, HELPS)
        answer = torch.empty(sizes, dtype=self.dtype, device=self.device)
        head_step = 1 if on_cpu else sizes[1]  # so that a head's keys are converted once
        row_step = max(1, budget // max(1, sizes[0] * head_step * sizes[3]))
        for h, r in product(range(0, sizes[1], head_step), range(0, sizes[2], row_step)):
            some_heads, band = run_of_index(heads, h, head_step), run_of_index(rows, r, row_step)
            answer[:, h : h + head_step, r : r + row_step] = tile(batch, some_heads, band, cols)
        return answer
