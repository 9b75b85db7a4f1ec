"""Place many vectors on their first principal axes (Pearson 1901)."""

import numpy as np
from jaxtyping import Float

from regard.corpus.asking.clusters import unit


def principal_axes(
    vectors: Float[np.ndarray, "n M"], count: int
) -> tuple[Float[np.ndarray, "n count"], tuple[float, ...]]:
    """Place vectors, scaled to length 1, on the axes of most variance; and the share of it that each keeps.

    From the M × M covariance, so that any number of vectors is placed. Each axis' largest component is positive, so
    that pictures do not flip.
    """
    points = unit(vectors).astype(np.float64)
    points -= points.mean(0)
    values, axes = np.linalg.eigh(points.T @ points)
    axes = axes[:, ::-1][:, :count]
    axes = axes * np.where(np.take_along_axis(axes, np.abs(axes).argmax(0)[None], 0) < 0, -1, 1)
    total = max(float(values.sum()), np.finfo(np.float64).tiny)
    return points @ axes, tuple(float(max(each, 0) / total) for each in values[::-1][:count])
