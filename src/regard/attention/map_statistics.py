"""The statistics of a whole attention matrix: what can be asked for, what comes back, how keys and cells are chosen.

They are computed in one blockwise pass in O(L + S) memory, by `regard.attention.kernels.statistics`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.masks import positions

# Called while a pass runs, from any thread: with the share of the matrix that was just done.
Progress = Callable[[float], None]


def merge_top_k(kept: tuple[Tensor, Tensor] | None, scores: Tensor, cols: slice, count: int) -> tuple[Tensor, Tensor]:
    """Return the largest (score, key) pairs of those kept and a tile, ties to the smaller key; key -1 where masked."""
    index = torch.arange(cols.start, cols.stop, device=scores.device).expand(scores.shape)
    index = index.masked_fill(scores == -torch.inf, -1)
    if kept is not None:  # kept keys come first: they are smaller than the tile's
        scores, index = torch.cat([kept[0], scores], -1), torch.cat([kept[1], index], -1)
    order = scores.sort(dim=-1, descending=True, stable=True)
    best = order.indices[..., :count]
    return order.values[..., :count], index.gather(-1, best)


def cells(run: slice, size: int, parts: int, device: torch.device) -> Int[Tensor, " n"]:
    """Return the cell of each position of a run; cell p covers [p·size // parts, (p + 1)·size // parts)."""
    return ((positions(run, device) + 1) * parts - 1) // size


def cell_sizes(size: int, parts: int, device: torch.device) -> Int[Tensor, " parts"]:
    """Return how many positions each cell covers."""
    edges = torch.arange(parts + 1, device=device) * size // max(1, parts)
    return edges.diff()


@dataclass(frozen=True)
class StatisticsRequest:
    """Which statistics a pass computes. offset: the position of query 0 among the keys, for distances."""

    top: int | None = None
    entropy: bool = False
    received: bool = False
    distance: bool = False
    pooled: tuple[int, int] | None = None
    offset: int = 0


@dataclass(frozen=True)
class MapStatistics:
    """The statistics that were requested, None for the others. T: keys of each query's top; P × Q: the pooled picture.

    values, keys: each query's T largest weights and their keys; the rest is as the methods of `AttentionMap` say.
    """

    values: Float[Tensor, "*B L T"] | None
    keys: Int[Tensor, "*B L T"] | None
    entropy: Float[Tensor, "*B L"] | None
    received: Float[Tensor, "*B S"] | None
    distance: Float[Tensor, "*B L"] | None
    pooled: Float[Tensor, "*B P Q"] | None
    sink_share: Float[Tensor, "*B L"] | None
