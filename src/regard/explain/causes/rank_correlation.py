"""Tell how well one ranking predicts another: Spearman's rank correlation (1904)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor


def spearman(a: Sequence[float], b: Sequence[float]) -> float:
    """Compute Spearman's rank correlation, ties at their mean rank; NaN where one side is constant."""
    x, y = (_mean_ranks(values) for values in (a, b))
    x, y = x - x.mean(), y - y.mean()
    return float((x * y).sum() / (x.norm() * y.norm()))


def _mean_ranks(values: Sequence[float]) -> Float[Tensor, " n"]:
    given = torch.tensor(values, dtype=torch.float64)
    _, inverse, counts = given.unique(return_inverse=True, return_counts=True)
    last = counts.cumsum(0).double()
    return (last - (counts - 1) / 2)[inverse]
