"""The largest weights between tokens that are far apart, exactly, without looking at every weight."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention.attention_map import AttentionMap

BLOCK = 1 << 22  # weights that are read at once


class Distant:
    """Keeps the count largest weights of tokens more than far apart."""

    def __init__(self, far: int, count: int) -> None:
        self.far, self.count = far, count
        self._best: dict[tuple[int, int, int], float] = {}  # by head, query and key; the largest first

    @property
    def least(self) -> float:
        """A weight below this one is not among them; 0 as long as there are fewer than count."""
        return min(self._best.values()) if len(self._best) == self.count else 0.0

    def offer(self, weights: Float[Tensor, " n"], heads: Int[Tensor, " n"], rows: Tensor, cols: Tensor) -> None:
        """Look at some weights with their heads, queries (rows) and keys (cols); what is not above 0 is none."""
        chosen = torch.nonzero((weights >= self.least) & (weights > 0))[:, 0]
        if len(chosen) > self.count:
            chosen = chosen[weights[chosen].sort(descending=True, stable=True).indices[: self.count]]
        for weight, *spot in zip(*(x[chosen].tolist() for x in (weights, heads, rows, cols)), strict=True):
            self._best.setdefault((spot[0], spot[1], spot[2]), weight)
        order = sorted(self._best, key=lambda spot: (-self._best[spot], spot))
        self._best = {spot: self._best[spot] for spot in order[: self.count]}

    def found(self) -> list[tuple[float, int, int, int]]:
        """Return (weight, head, query, key), the largest first."""
        return [(weight, *spot) for spot, weight in self._best.items()]


def whole_map(
    weights: AttentionMap,
    values: Float[Tensor, "H L T"],
    keys: Int[Tensor, "H L T"],
    special: Bool[Tensor, " L"],
    far: int,
    count: int,
) -> Distant:
    """Find the largest distant weights of a map (H, L, L), special tokens aside, from each query's T largest weights.

    values, keys: those weights and where they are. far: how many tokens apart is distant. count: how many to find.

    What a query does not list is at most its smallest listed weight, and at most what its listed weights leave of 1.
    Only queries that might hide more than what was found are read again, as a whole.
    """
    best = Distant(far, count)
    heads, length, _ = values.shape
    query = torch.arange(length, device=values.device)[:, None]
    apart = (query - keys).abs() > far
    counts = (keys >= 0) & apart & ~special[keys.clamp(min=0)] & ~special[query]
    spot = counts.nonzero()
    best.offer(values[counts], spot[:, 0], spot[:, 1], keys[counts])
    left = (1 - values.double().sum(-1)).clamp(min=0).to(values.dtype)
    hidden = torch.minimum(values[..., -1], left + 1e-5)  # 1e-5: what sums in float32 may be off by
    hidden = torch.where((keys[..., -1] < 0) | special, 0.0, hidden)  # all is listed, or the query does not count
    step = max(1, BLOCK // length)
    for head in range(heads):
        order = hidden[head].sort(descending=True, stable=True)
        for start in range(0, length, step):
            rows = order.indices[start : start + step][order.values[start : start + step] > best.least]
            if len(rows) == 0:
                break
            offer_rows(best, weights[head, rows], head, rows, special)
    return best


def offer_rows(
    best: Distant,
    weights: Float[Tensor, "r S"],
    head: int,
    rows: Int[Tensor, " r"],
    special: Bool[Tensor, " S"],
    shift: int = 0,
) -> None:
    """Look at whole rows of a head for weights on distant keys."""
    keys = torch.arange(weights.shape[1], device=weights.device)
    near = ((rows[:, None] - keys).abs() <= best.far) | special | special[rows][:, None]
    spot = ((weights >= best.least) & (weights > 0) & ~near).nonzero()
    found = weights[spot[:, 0], spot[:, 1]]
    best.offer(found, torch.full_like(spot[:, 0], head), rows[spot[:, 0]] + shift, spot[:, 1] + shift)
