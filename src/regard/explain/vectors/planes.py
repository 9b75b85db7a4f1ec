"""Project vectors onto the plane that keeps most of their variance."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Plane:
    """A projection to two dimensions: the two directions of largest variance (PCA; Pearson 1901).

    share: the fraction of the variance that each axis keeps.
    """

    centre: Float[Tensor, " M"]
    axes: Float[Tensor, "M 2"]
    share: tuple[float, float]

    def place(self, vectors: Float[Tensor, "n M"]) -> Float[Tensor, "n 2"]:
        """Project vectors to their coordinates on the plane."""
        return (vectors.double() - self.centre) @ self.axes


def plane(vectors: Float[Tensor, "n M"]) -> Plane:
    """Compute the plane that keeps most of the variance of at least two vectors.

    The largest component of each axis is positive, so that plots don't flip from run to run.
    """
    vectors = vectors.double()
    centre = vectors.mean(0)
    _, values, axes = torch.linalg.svd(vectors - centre, full_matrices=False)
    axes = axes[:2]
    if len(axes) < 2:
        axes = torch.cat([axes, axes.new_zeros(2 - len(axes), axes.shape[1])])
    largest = axes.gather(1, axes.abs().argmax(1, keepdim=True))
    axes = axes * torch.where(largest < 0, -1.0, 1.0)
    total = float((values**2).sum()) or 1.0
    shares = [float(v**2) / total for v in values[:2]] + [0.0, 0.0]
    return Plane(centre, axes.T, (shares[0], shares[1]))
