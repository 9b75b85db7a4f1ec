"""Compute the weights of a region from its scores and from its queries' row maxima and row sums.

A weight is exp(score - row maximum) / row sum. Its precision depends on how the scores are computed:

- maps below LARGE_MAP weights per head, and all maps on GPUs: products in float64, so float32 weights are exact;
- larger maps on CPUs: products in float32, as exact as softmax(query @ keyᵀ) in PyTorch. Products of different shapes
  may round a score differently, above all narrow ones, so a weight could exceed 1. It is clamped to 1.

Row maxima and row sums are computed when first needed and then kept, in O(L) memory.
"""

import math
import reprlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from regard.attention.kernels.cpu import forward as cpu
from regard.attention.map_statistics import KernelResult
from regard.attention.masks import Index, positions
from regard.attention.scores import (
    ScoreRule,
    add_sink_to_rows,
    finite_max,
    row_max_sum,
    score_tile,
    sink_column,
    softmax_rescaling,
    working_dtype,
)

CACHED = 1 << 18  # scores computed at a time on a CPU: 2 MiB in float64 fit into its cache
LARGE_MAP = 1 << 20  # number of weights per head from which a map counts as large
MIN_QUERIES = 64  # lower bound for the query count: with fewer, converting keys to float64 would take most of the time
MAX_KEPT = 1 << 24  # largest number of weights kept inside `weights_kept`
BAND = 512  # number of queries whose row maxima and row sums are computed at a time
MIN_SIDE = 16  # number of rows and columns from which rounding in matrix products doesn't depend on the shape


def dtype_of(query: Float[Tensor, "B H L D"], key: Float[Tensor, "B G S D"]) -> torch.dtype:
    """Return the dtype in which a map's scores, row maxima and row sums are computed."""
    large = query.device.type == "cpu" and max(query.shape[2], MIN_QUERIES) * key.shape[2] >= LARGE_MAP
    return working_dtype(query) if large or query.device.type == "mps" else torch.float64  # MPS has no float64


def scores(
    query: Float[Tensor, "B H L D"], key: Float[Tensor, "B G S D"], rule: ScoreRule, batch: Index, heads: Index,
    rows: Index, cols: Index,
) -> Float[Tensor, "b h r c"]:  # fmt: skip
    """Compute the scores of a region in `dtype_of`, -inf where masked."""
    dtype = dtype_of(query, key)
    if dtype != torch.float32:
        return score_tile(query, key, rule, batch, heads, rows, cols, dtype)
    wide_rows, wide_cols = _widened(rows, query.shape[2]), _widened(cols, key.shape[2])
    result = score_tile(query, key, rule, batch, heads, wide_rows, wide_cols, dtype)
    for axis, run, wide in ((2, rows, wide_rows), (3, cols, wide_cols)):
        if isinstance(run, slice) and isinstance(wide, slice):
            result = result.narrow(axis, run.start - wide.start, run.stop - run.start)
    return result


def _widened(run: Index, size: int) -> Index:
    """Widen a run to at least MIN_SIDE positions, or to the whole axis if it is shorter."""
    if not isinstance(run, slice):
        return run
    start = max(0, min(run.start, size - MIN_SIDE))
    return slice(start, min(size, max(run.stop, start + MIN_SIDE)))


def weights(
    scores: Float[Tensor, "b h r c"], row_max: Float[Tensor, "b h r"], row_sum: Float[Tensor, "b h r"],
    dtype: torch.dtype,
) -> Float[Tensor, "b h r c"]:  # fmt: skip
    """Compute the weights of a region in dtype. The difference of score and maximum is rounded to dtype before exp."""
    exponentials = (scores - finite_max(row_max)[..., None]).to(dtype).exp_()
    return exponentials.div_(torch.where(row_sum == 0, 1.0, row_sum).to(dtype)[..., None]).clamp_(max=1.0)


def weights_of_whole_rows(
    scores: Float[Tensor, "b h r c"], rule: ScoreRule, heads: Index, dtype: torch.dtype, unseen: Sequence[int] = (0, 0)
) -> tuple[Float[Tensor, "b h r S"], Float[Tensor, "b h r"], Float[Tensor, "b h r"]]:
    """Compute (weights, row maximum, row sum) of queries. unseen: masked keys before and after the keys of scores."""
    row_max = scores.amax(-1)
    exponentials = scores.sub_(finite_max(row_max)[..., None]).to(dtype).exp_()
    exponentials = F.pad(exponentials, [*unseen]) if any(unseen) else exponentials
    row_sum = exponentials.sum(-1, dtype=scores.dtype)
    factor, sink = torch.ones_like(row_sum), sink_column(rule, heads, scores.dtype)
    if sink is not None:
        on_keys = row_max
        row_max, row_sum = add_sink_to_rows(on_keys, row_sum, sink)
        factor = softmax_rescaling(on_keys, row_max)
    divisor = torch.where(row_sum == 0, 1.0, row_sum) / factor  # infinite for a query that can't attend to any key
    return exponentials.div_(divisor.to(dtype)[..., None]), row_max, row_sum


@dataclass(eq=False, repr=False)
class RowSums:
    """Row maxima and row sums of one attention matrix, including sinks, in `dtype_of`."""

    query: Float[Tensor, "B H L D"]
    key: Float[Tensor, "B G S D"]
    rule: ScoreRule
    _kept: tuple[Tensor, Tensor, Tensor] | None = None

    def of(self, batch: Index, heads: Index, rows: Index) -> tuple[Float[Tensor, "b h r"], Float[Tensor, "b h r"]]:
        """Return (row maximum, row sum) of queries. Missing ones are computed."""
        row_max, row_sum, computed = self._tables()
        if not bool(computed[batch][:, heads][:, :, rows].all()):
            self._compute(batch, heads, _widened(rows, self.query.shape[2]))
        return row_max[batch][:, heads][:, :, rows], row_sum[batch][:, heads][:, :, rows]

    def _compute(self, batch: Index, heads: Index, rows: Index) -> None:
        row_max, row_sum, computed = self._tables()
        texts, numbers, queries = index = self._table_index(batch, heads, rows)
        compiled = row_max.dtype == torch.float32 and cpu.fits(self.query, self.key, self.key, self.rule)
        if compiled and isinstance(rows, slice):
            result = KernelResult(row_max, row_max, "", (row_max, row_sum))  # there is no output
            block = texts.flatten().tolist(), numbers.flatten().tolist(), rows
            cpu.forward_rows(self.query, self.key, None, self.rule, *block, result)
        else:
            step = max(1, CACHED // max(1, min(BAND, len(queries)) * self.key.shape[2]))  # heads per step
            for b, chunk in product(texts.flatten().tolist(), numbers.flatten().split(step)):
                for part in queries.split(BAND):
                    band = slice(int(part[0]), int(part[-1]) + 1) if isinstance(rows, slice) else part
                    sums = row_max_sum(self.query, self.key, self.rule, slice(b, b + 1), chunk, band, row_max.dtype)
                    row_max[b, chunk[:, None], part], row_sum[b, chunk[:, None], part] = (values[0] for values in sums)
        computed[index] = True

    def keep(
        self, batch: Index, heads: Index, rows: Index, row_max: Float[Tensor, "*b r"], row_sum: Float[Tensor, "*b r"]
    ) -> None:
        """Store row maxima and row sums of some queries, computed from all their scores and sinks."""
        index = (batch, heads, rows) if {type(batch), type(heads)} == {slice} else self._table_index(batch, heads, rows)
        kept_max, kept_sum, computed = self._tables()
        kept_max[index], kept_sum[index], computed[index] = row_max, row_sum, torch.tensor(True)

    def _table_index(self, batch: Index, heads: Index, rows: Index) -> tuple[Tensor, Tensor, Tensor]:
        """Return the index of these queries in the tables of row maxima and row sums."""
        texts, numbers, queries = (positions(index, self.query.device) for index in (batch, heads, rows))
        return texts[:, None, None], numbers[:, None], queries

    def _tables(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return (row maxima, row sums, whether they are known), each (B, H, L)."""
        if self._kept is None:
            maxima = torch.zeros(self.query.shape[:3], dtype=dtype_of(self.query, self.key), device=self.query.device)
            self._kept = maxima, torch.zeros_like(maxima), torch.zeros_like(maxima, dtype=torch.bool)
        return self._kept


def parse_map_index(index: Any, shape: tuple[int, ...], device: torch.device) -> tuple[list[Index], tuple[Any, ...]]:
    """Split an index into the needed part of each axis and the index that turns that part into the result.

    For any tensor x of this shape, `x[np.ix_(ranges)][finish]` equals `x[index]`. Supports integers, slices (any step),
    `...`, None, and integer or boolean vectors (list, array or tensor).
    """
    parts = list(index) if isinstance(index, tuple) else [index]
    count = sum(1 for p in parts if p is not None and p is not Ellipsis)
    if count > len(shape):
        raise IndexError(f"an attention map of {len(shape)} axes {shape} got {count} indices")
    if sum(1 for p in parts if p is Ellipsis) > 1:
        raise IndexError("an index may hold one '...' only")
    if not any(p is Ellipsis for p in parts):
        parts.append(Ellipsis)
    ellipsis = next(n for n, p in enumerate(parts) if p is Ellipsis)
    parts[ellipsis : ellipsis + 1] = [slice(None)] * (len(shape) - count)

    ranges: list[Index] = []
    finish: list[Any] = []
    for part in parts:
        if part is None:
            finish.append(None)
            continue
        axis, size = len(ranges), shape[len(ranges)]
        if isinstance(part, slice):
            run = range(*part.indices(size))
            vector = None if run.step == 1 else torch.tensor(run, dtype=torch.long, device=device)
            ranges.append(slice(run.start, run.start + len(run)) if vector is None else vector)
            finish.append(slice(None))
            continue
        selected = _selected_positions(part, axis, size)
        if selected.ndim == 0:
            ranges.append(slice(int(selected), int(selected) + 1))
            finish.append(0)
        else:
            unique, inverse = torch.as_tensor(selected, device=device).unique(return_inverse=True)
            ranges.append(unique)
            finish.append(inverse)
    return ranges, tuple(finish)


def _selected_positions(part: Any, axis: int, size: int) -> Int[np.ndarray, "..."]:
    """Return the positions that an integer or vector selects, as NumPy does. Its errors name the axis."""
    positions = np.arange(size).reshape((1,) * axis + (size,))
    try:
        vector = part.detach().cpu().numpy() if isinstance(part, Tensor) else part
        vector = list(vector) if isinstance(vector, tuple) else vector
        if np.ndim(vector) == 0 and np.asarray(vector).dtype == bool:  # NumPy would insert an axis
            raise IndexError("expected integers, slices, '...', None or vectors")
        return np.asarray(positions[(slice(None),) * axis + (vector,)][(0,) * axis])
    except (TypeError, ValueError, IndexError, RuntimeError, OverflowError) as error:
        raise IndexError(f"axis {axis}: got {' '.join(reprlib.repr(part).split())}: {error}") from error


class ScoreView:
    """`m.scores[...]`: the scores of a region, numpy-style, in fp32 or better, as they enter the softmax.

    They are softcap(scale · query · key) + bias, and -inf where masked: already scaled, without sinks. If
    there is no softcap and no bias, `m.scores[...] / m.rule.scale` is the plain product of query and key.
    """

    def __init__(self, attention_map: Any) -> None:
        self._map = attention_map

    def __repr__(self) -> str:
        return f"ScoreView(shape={self.shape}): index it for scores, as in scores[:]"

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the attention map."""
        return tuple(self._map.shape)

    def __getitem__(self, index: Any) -> Float[Tensor, "..."]:
        return self._map._region(index, self._map._scores_tile)


_weights_left: ContextVar[int] = ContextVar("regard_weights_left", default=MAX_KEPT)


@contextmanager
def weights_kept(maps: Iterable[Any]) -> Iterator[None]:
    """Compute all weights of small maps once and read regions from them inside the block.

    Nested blocks share one budget.
    """
    stored, budget = list[Any](), _weights_left.get()
    token = _weights_left.set(budget)
    try:
        for weights in maps:
            if weights.given is not None or weights._kept is not None or math.prod(weights.full_shape) > budget:
                continue
            if dtype_of(weights.query, weights.key) == torch.float64:  # results don't depend on the region's shape
                weights._kept = weights._blocks(*weights._everything(), weights._weights_tile)
                budget -= weights._kept.numel()
                stored.append(weights)
        _weights_left.set(budget)
        yield
    finally:
        _weights_left.reset(token)
        for weights in stored:
            weights._kept = None
