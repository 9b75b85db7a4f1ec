"""The attention of a text read in windows, as the band that there is: by query, and by how far away the key is."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.map_statistics import picture_cells_of_run

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Band:
    """Mean weights of cells: queries down, offsets (the key's number less the query's) across.

    values[p][q] is over all pairs of a query of part p and a key of the same window at an offset of part q: the mean of
    their weights, null where there is no such pair. Of P parts of L queries, part p holds [p·L // P, (p + 1)·L // P);
    the count offsets from the lowest, first, on are parted alike. windows, window, stride: how the text was read.
    """

    first: int
    count: int
    values: list[list[float | None]]
    windows: int
    window: int
    stride: int


class BandSums:
    """Adds up weights of H heads over L queries into at most parts × parts cells; offsets are first to last."""

    def __init__(self, length: int, parts: int, first: int, last: int) -> None:
        self.first, self.count = first, last - first + 1
        self.shape = min(parts, length), min(parts, self.count)
        self.rows = picture_cells_of_run(slice(0, length), length, self.shape[0], CPU)
        self.columns = picture_cells_of_run(slice(0, self.count), self.count, self.shape[1], CPU)
        spots = self.shape[0] * self.shape[1]
        self.sums = torch.zeros(spots + 1, dtype=torch.float64)  # the last: pairs beyond the offsets
        self.pairs = torch.zeros(spots + 1, dtype=torch.long)

    def spots(self, queries: Int[Tensor, " r"], keys: Int[Tensor, " w"]) -> Int[Tensor, "r w"]:
        """The cells of some queries and keys, by their numbers in the whole text; their pairs are counted here."""
        offset = keys - queries[:, None] - self.first
        inside = (offset >= 0) & (offset < self.count)
        column = self.columns[offset.clamp(0, self.count - 1)]
        found = torch.where(inside, self.rows[queries][:, None] * self.shape[1] + column, len(self.sums) - 1)
        self.pairs += torch.bincount(found.flatten(), minlength=len(self.pairs))
        return found

    def add(self, spots: Int[Tensor, "r w"], weights: Float[Tensor, "r w"]) -> None:
        """Add one head's weights of the pairs that stand in these cells."""
        self.sums.index_add_(0, spots.flatten(), weights.flatten().double())

    def means(self, heads: int) -> list[list[float | None]]:
        """Compute the mean weight of each cell, over its pairs and the heads."""
        means = (self.sums / (heads * self.pairs.clamp(min=1)))[:-1].reshape(self.shape).tolist()
        there = (self.pairs[:-1] > 0).reshape(self.shape).tolist()
        return [
            [mean if is_there else None for mean, is_there in zip(*row, strict=True)]
            for row in zip(means, there, strict=True)
        ]


def matrix_band_of_windows(rows: Sequence[tuple[int, int, int, int]], causal: bool) -> tuple[int, int]:
    """Return the lowest and the highest offset of windows. rows: of each its first and last query and key.

    A causal model's queries have no weight on later keys: there the highest is 0.
    """
    lowest = min(key - query for _, query, key, _ in rows)
    highest = max(key - query for query, _, _, key in rows)
    return lowest, 0 if causal else highest
