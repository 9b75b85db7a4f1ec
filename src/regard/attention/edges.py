"""Sets of edges of an attention matrix, for masks: texts, heads, queries and keys, never a tensor of L × S."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool
from torch import Tensor

Index = slice | Tensor  # a run start:stop, or a vector of positions

AXES = ("batch", "heads", "queries", "keys")


@dataclass(frozen=True)
class Edges:
    """Every edge from one of the queries to one of the keys, in these heads of these texts.

    The numbers of each axis are sorted; None means all of it. They stay on the host, so that a tile that none of them
    touches is known as such without waiting for a device. shape: (B, H, L, S) of the call whose edges these are.
    """

    shape: tuple[int, int, int, int]
    batch: tuple[int, ...] | None = None
    heads: tuple[int, ...] | None = None
    queries: tuple[int, ...] | None = None
    keys: tuple[int, ...] | None = None

    def numbers(self, axis: str) -> tuple[int, ...]:
        """Return the numbers of one of `AXES`, written out."""
        numbers: tuple[int, ...] | None = getattr(self, axis)
        return tuple(range(self.shape[AXES.index(axis)])) if numbers is None else numbers

    def tile(
        self, batch: Index, heads: Index, rows: Index, cols: Index, device: torch.device
    ) -> Bool[Tensor, "#b #h #r #c"] | None:
        """Compute a tensor that is True at these edges of a tile, every axis at its size or 1; None without any.

        batch, heads, rows, cols: the tile's texts, heads, queries and keys. device: where the tensor is made.
        """
        hits = []
        for axis, (name, index) in enumerate(zip(AXES, (batch, heads, rows, cols), strict=True)):
            numbers: tuple[int, ...] | None = getattr(self, name)
            if numbers is None:
                continue
            hit = _edge_positions_in_index(numbers, index, self.shape[axis], device)
            if hit is None:
                return None
            hits.append(hit.reshape(*(-1 if other == axis else 1 for other in range(4))))
        whole = torch.ones(1, 1, 1, 1, dtype=torch.bool, device=device)
        for hit in hits:
            whole = whole & hit
        return whole

    def crop(self, batch: int, rows: slice, cols: slice) -> "Edges | None":
        """Return the edges of one text, its queries and keys numbered anew from 0; None where none is left."""
        queries, keys = _edge_numbers_in_run(self.queries, rows), _edge_numbers_in_run(self.keys, cols)
        if queries == () or keys == () or (self.batch is not None and batch not in self.batch):
            return None
        shape = (1, self.shape[1], rows.stop - rows.start, cols.stop - cols.start)
        return Edges(shape, None, self.heads, queries, keys)

    def of_heads(self, heads: Sequence[int]) -> "Edges | None":
        """Return the edges of some heads, numbered anew from 0; None where these have none."""
        shape = (self.shape[0], len(heads), *self.shape[2:])
        if self.heads is None:
            return replace(self, shape=shape)
        numbers = tuple(new for new, old in enumerate(heads) if old in self.heads)
        return replace(self, shape=shape, heads=numbers) if numbers else None


def _edge_positions_in_index(numbers: tuple[int, ...], index: Index, size: int, device: torch.device) -> Tensor | None:
    """Return which positions of an index are among the numbers; None where no position of a run is."""
    if isinstance(index, Tensor):
        return torch.isin(index, torch.tensor(numbers, device=device))
    start, stop, _ = index.indices(size)
    within = numbers[bisect_left(numbers, start) : bisect_left(numbers, stop)]
    if not within:
        return None
    hit = torch.zeros(stop - start, dtype=torch.bool)
    hit[torch.tensor(within) - start] = True
    return hit.to(device)


def _edge_numbers_in_run(numbers: tuple[int, ...] | None, run: slice) -> tuple[int, ...] | None:
    if numbers is None:
        return None
    return tuple(n - run.start for n in numbers[bisect_left(numbers, run.start) : bisect_left(numbers, run.stop)])
