"""Compare vectors of words and tokens, across texts and across layers, and project them onto a plane.

    cosine = a · b / (|a| |b|),  dot = a · b,  euclidean = |a - b|

The cosine of hidden states as a measure of how contextual they are: Ethayarajh 2019, "How Contextual are Contextualized
Word Representations?".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import RegardError
from regard.explain.wording import Place, tokens_of
from regard.trace.trace import Trace

MEASURES = ("cosine", "dot", "euclidean")


def cosine(a: Float[Tensor, " M"], b: Float[Tensor, " M"]) -> float:
    """Compute the cosine of the angle between two vectors in float64, NaN if one of them is zero."""
    a, b = a.double(), b.double()
    return float(torch.dot(a, b) / (a.norm() * b.norm()))


def known(value: float | None) -> float | None:
    """Return a cosine, or None if it is NaN, as for a zero vector."""
    return None if value is None or math.isnan(value) else value


def table(a: Float[Tensor, "*N n M"], b: Float[Tensor, "*N m M"], measure: str = "cosine") -> Float[Tensor, "*N n m"]:
    """Compare every vector of a with every vector of b by a measure: "cosine", "dot" or "euclidean"."""
    if measure not in MEASURES:
        raise RegardError(f"measure {measure!r} is not known: it may be {', '.join(MEASURES)}")
    a, b = a.double(), b.double()
    if measure == "euclidean":
        # |a|² + |b|² - 2ab would suffer from cancellation, but the distance of a vector from itself has to be 0.
        return torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")
    dots = a @ b.transpose(-1, -2)
    return dots if measure == "dot" else dots / (a.norm(dim=-1)[..., :, None] * b.norm(dim=-1)[..., None, :])


def states_of(trace: Trace, place: Place) -> Float[Tensor, "N M"]:
    """Stack a word's or token's vectors of all hidden states: [0] enters layer 0, [n + 1] leaves layer n."""
    tokens = tokens_of(trace, place)
    return torch.stack([state[tokens].mean(0) for state in trace.hidden_states])


def across_texts(places: Sequence[tuple[Trace, Place]], measure: str = "cosine") -> Float[Tensor, "N p p"]:
    """Compare words or tokens of one or several texts with each other, in one table per hidden state."""
    states = [states_of(trace, place) for trace, place in places]
    shapes = {tuple(state.shape) for state in states}
    if len(shapes) > 1:
        listed = ", ".join(f"{n} states of width {m}" for n, m in sorted(shapes))
        raise RegardError(f"vectors of different models cannot be compared: {listed}")
    vectors = torch.stack(states, 1)  # (N, p, M)
    return table(vectors, vectors, measure)


def across_layers(a: tuple[Trace, Place], b: tuple[Trace, Place], measure: str = "cosine") -> Float[Tensor, "Na Nb"]:
    """Compare every hidden state of one word with every hidden state of another. The diagonal compares equal layers."""
    first, second = states_of(*a), states_of(*b)
    if first.shape[1] != second.shape[1]:
        raise RegardError(f"vectors of widths {first.shape[1]} and {second.shape[1]} cannot be compared")
    return table(first, second, measure)


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
