"""Statistics of a whole attention matrix: the request, the result, and helpers for top keys and pooled cells.

They need O(L + S) memory. If requested with the call, they are computed together with the output
(`kernels/cpu/forward_statistics.py`), otherwise in a separate pass (`kernels/statistics.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention.masks import positions

# Called during a pass, from any thread, with the fraction of the matrix that was completed since the last call.
Progress = Callable[[float], None]


def merge_top_k(top: tuple[Tensor, Tensor] | None, scores: Tensor, cols: slice, count: int) -> tuple[Tensor, Tensor]:
    """Merge the k largest (score, key) pairs so far with a tile. Ties go to the smaller key; masked keys become -1.

    top: the pairs from earlier tiles, None at the start. scores: (..., c) of the keys in cols. count: k.
    """
    index = torch.arange(cols.start, cols.stop, device=scores.device).expand(scores.shape)
    if top is not None:  # earlier keys come first, so that ties go to them
        scores, index = torch.cat([top[0], scores], -1), torch.cat([top[1], index], -1)
    values, best = scores.topk(min(count + 1, scores.shape[-1]), dim=-1)
    if not bool(((values[..., :-1] > values[..., 1:]) | (values[..., 1:] == -torch.inf)).all()):
        values, best = scores.sort(dim=-1, descending=True, stable=True)  # for ties or NaN; several times slower
    values = values[..., :count]
    return values, index.gather(-1, best[..., :count]).masked_fill_(values == -torch.inf, -1)


def picture_cells_of_run(run: slice, size: int, parts: int, device: torch.device) -> Int[Tensor, " n"]:
    """Return the cell of each position in a run. Cell p covers positions [p·size // parts, (p + 1)·size // parts)."""
    return ((positions(run, device) + 1) * parts - 1) // size


def cell_sizes(size: int, parts: int, device: torch.device) -> Int[Tensor, " parts"]:
    """Return how many positions each cell covers."""
    edges = torch.arange(parts + 1, device=device) * size // max(1, parts)
    return edges.diff()


def spread_nan(
    nan_rows: Bool[Tensor, "B H L"],
    values: Float[Tensor, "B H L T"] | None,
    received: Float[Tensor, "B H S"] | None,
    pooled: Float[Tensor, "B H P Q"] | None,
) -> None:
    """Write NaN, in place, to all statistics that depend on queries with NaN weights.

    values: the largest weights. received: the sums per key. pooled: P × Q cells. None: not computed. Every weight of a
    query in nan_rows is NaN, even for masked keys. Passes skip fully masked tiles, so the NaN is written here.
    """
    if not bool(nan_rows.any()):
        return
    if values is not None:
        values[nan_rows] = torch.nan
    if received is not None:
        received[nan_rows.any(-1)] = torch.nan
    if pooled is not None:
        batch, heads, rows = nan_rows.nonzero(as_tuple=True)
        pooled[batch, heads, ((rows + 1) * pooled.shape[2] - 1) // nan_rows.shape[2]] = torch.nan


@dataclass(frozen=True)
class Statistics:
    """The statistics of an attention matrix to compute. Default: all.

    top: the number of largest weights per query, or None. pooled: rows and columns of the pooled matrix, or None.
    distance: only computed if queries and keys are in the same sequence.

    Raises:
        ValueError: top, or a side of pooled, below 1.
    """

    top: int | None = 8
    pooled: tuple[int, int] | None = (256, 256)
    entropy: bool = True
    received: bool = True
    distance: bool = True

    def __post_init__(self) -> None:
        if self.top is not None and self.top < 1:
            raise ValueError(f"top: got k {self.top}, expected 1 or more")
        if self.pooled is not None and min(self.pooled) < 1:
            rows, cols = self.pooled
            raise ValueError(f"pooled: rows and cols are {rows} and {cols}, expected 1 or more")

    @staticmethod
    def only(**wanted: Any) -> "Statistics":
        """Request only the named statistics (top, pooled, entropy, received, distance), with the given values."""
        none = {"top": None, "pooled": None, "entropy": False, "received": False, "distance": False}
        return Statistics(**{**none, **wanted})

    @staticmethod
    def of(request: "bool | Statistics") -> "Statistics | None":
        """Return the statistics that `statistics=` requests: True for all, False for none.

        Raises:
            TypeError: the request is something else.
        """
        if isinstance(request, Statistics):
            return request
        if not isinstance(request, bool):
            raise TypeError(f"statistics: got {request!r}, expected True, False or a regard.Statistics")
        return Statistics() if request else None


@dataclass(frozen=True)
class MapStatistics:
    """The requested statistics, None for others. T: length of each query's top list. P × Q: size of the pooled matrix.

    values, keys: each query's T largest weights and their keys. The methods of `AttentionMap` describe the others.
    """

    values: Float[Tensor, "*B L T"] | None
    keys: Int[Tensor, "*B L T"] | None
    entropy: Float[Tensor, "*B L"] | None
    received: Float[Tensor, "*B S"] | None
    distance: Float[Tensor, "*B L"] | None
    pooled: Float[Tensor, "*B P Q"] | None
    sink_share: Float[Tensor, "*B L"] | None

    def answer(self, wanted: Statistics, length: int, size: int) -> "MapStatistics | None":
        """Return the requested statistics of a matrix of `length` queries and `size` keys; None if any is missing."""
        top = None if wanted.top is None else min(wanted.top, size)
        parts = None if wanted.pooled is None else (min(wanted.pooled[0], length), min(wanted.pooled[1], size))
        if top is not None and (self.values is None or self.values.shape[-1] < top):
            return None
        if parts is not None and (self.pooled is None or tuple(self.pooled.shape[-2:]) != parts):
            return None
        if any(getattr(wanted, name) and getattr(self, name) is None for name in ("entropy", "received", "distance")):
            return None
        return self.only(wanted)

    def only(self, wanted: Statistics) -> "MapStatistics":
        """Return only the requested statistics and the sink share."""
        top = wanted.top
        return MapStatistics(
            None if top is None or self.values is None else self.values[..., :top],
            None if top is None or self.keys is None else self.keys[..., :top],
            self.entropy if wanted.entropy else None,
            self.received if wanted.received else None,
            self.distance if wanted.distance else None,
            None if wanted.pooled is None else self.pooled,
            self.sink_share,
        )

    def map(self, change: Callable[[Tensor], Tensor]) -> "MapStatistics":
        """Return the same statistics with a function applied to every tensor."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return MapStatistics(**{name: None if t is None else change(t) for name, t in values.items()})


class KernelResult(NamedTuple):
    """Output and softmax statistics of one attention call, and the name of the kernel that computed them.

    If a query can't attend to any key, output is 0, and logsumexp is the sink's score, or -inf without a sink.
    row_max_sum: (row maximum, row sum), including sinks. A weight is exp(score - maximum) / sum. None if not kept.
    statistics: the requested statistics, or None.
    """

    output: Float[Tensor, "B H L E"]
    logsumexp: Float[Tensor, "B H L"]
    kernel: str
    row_max_sum: tuple[Float[Tensor, "B H L"], Float[Tensor, "B H L"]] | None = None
    statistics: MapStatistics | None = None
