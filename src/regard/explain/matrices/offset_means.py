"""Average attention by how far the key is from the query: whether a head looks at its neighbours, and at which.

A head with nearly all its weight at offset -1 is a previous-token head; such heads, of a few fixed offsets, are called
positional (Voita et al. 2019, "Analyzing Multi-Head Self-Attention").
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.attention_map import AttentionMap

REACH = 64  # tokens on either side of a query
ROWS = 256  # queries that are read at once


@dataclass(frozen=True)
class OffsetMeans:
    """values[h][o]: the mean weight of head h at offset first + o, over all pairs of a query and a key so far apart.

    The offset is the key's number less the query's: below 0 are earlier tokens. Null where there is no such pair.
    """

    first: int
    values: list[list[float | None]]


class OffsetSums:
    """Adds up weights of H heads by offset, for texts of length tokens."""

    def __init__(self, heads: int, length: int) -> None:
        self.reach = min(REACH, length - 1)
        self.sums = torch.zeros(
            heads, 2 * self.reach + 2, dtype=torch.float64
        )  # the last: pairs that are further apart
        self.pairs = torch.zeros(2 * self.reach + 2, dtype=torch.long)

    def spots(self, queries: Int[Tensor, " r"], keys: Int[Tensor, " w"]) -> Int[Tensor, "r w"]:
        """Return the places of some queries and keys among the offsets; their pairs are counted here."""
        offset = keys - queries[:, None]
        found = torch.where(offset.abs() <= self.reach, offset + self.reach, 2 * self.reach + 1)
        self.pairs += torch.bincount(found.flatten(), minlength=len(self.pairs))
        return found

    def add(self, head: int, spots: Int[Tensor, "r w"], weights: Float[Tensor, "r w"]) -> None:
        """Add one head's weights of the pairs that stand in these places."""
        self.sums[head].index_add_(0, spots.flatten(), weights.flatten().double())

    def means(self) -> OffsetMeans:
        """Compute the mean over the pairs of each offset."""
        means, there = (self.sums / self.pairs.clamp(min=1))[:, :-1], (self.pairs[:-1] > 0).tolist()
        return OffsetMeans(
            -self.reach,
            [[mean if own else None for mean, own in zip(row, there, strict=True)] for row in means.tolist()],
        )


def offset_means(weights: AttentionMap) -> OffsetMeans:
    """Compute the means of a whole map (H, L, L), read around its diagonal alone."""
    heads, length, size = weights.shape
    found = OffsetSums(heads, length)
    for start in range(0, length, ROWS):
        rows = torch.arange(start, min(start + ROWS, length))
        keys = torch.arange(max(0, start - found.reach), min(size, int(rows[-1]) + 1 + found.reach))
        spots = found.spots(rows, keys)
        part = weights[:, start : start + len(rows), int(keys[0]) : int(keys[-1]) + 1].cpu()
        for head in range(heads):
            found.add(head, spots, part[head])
    return found.means()
