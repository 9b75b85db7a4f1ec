"""A word's path through the layers, seen in two dimensions."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from regard.tokens import Word
from regard.trace import Trace, vector

Path2D = list[tuple[float, float]]


@dataclass(frozen=True)
class Movement:
    """Words and tokens on one plane. A path has one point a state: [0] enters layer 0, [n + 1] leaves layer n.

    words: one path for each word asked for. references: the path of each reference word, a text of its own.
    tokens: where each text's tokens are after the last layer. share: the part of the variance each axis keeps.
    """

    share: tuple[float, float]
    words: list[Path2D]
    references: list[Path2D]
    tokens: list[Path2D]


@dataclass(frozen=True)
class Plane:
    """A projection to two dimensions: the two directions of largest variance (PCA; Pearson 1901).

    share: the part of the variance that each axis keeps.
    """

    centre: Float[Tensor, " M"]
    axes: Float[Tensor, "M 2"]
    share: tuple[float, float]

    def place(self, vectors: Float[Tensor, "n M"]) -> Float[Tensor, "n 2"]:
        """Where vectors fall on the plane."""
        return (vectors.double() - self.centre) @ self.axes


def plane(vectors: Float[Tensor, "n M"]) -> Plane:
    """The plane that keeps most of the variance of these vectors. Needs two of them or more.

    Signs are fixed (the largest component of each axis is positive), so that pictures do not flip from run to run.
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


def movement(words: Sequence[tuple[Trace, Word]], traces: Sequence[Trace], references: Sequence[Trace]) -> Movement:
    """The paths of words through the layers, on the plane of all texts' tokens and the reference words, all layers.

    Special tokens are left out of the plane: they stand far from all others and would take it for themselves.
    """
    own = {id(t): [n for n, token in enumerate(t.tokens) if not token.special] for t in (*traces, *references)}
    cloud = [state[own[id(t)]] for t in (*traces, *references) for state in t.states]
    flat = plane(torch.cat(cloud))

    def points(vectors: Sequence[Float[Tensor, " M"]]) -> Path2D:
        return [(x, y) for x, y in flat.place(torch.stack(list(vectors))).tolist()]

    return Movement(
        share=flat.share,
        words=[points([vector(state, word) for state in trace.states]) for trace, word in words],
        references=[points([state[own[id(r)]].mean(0) for state in r.states]) for r in references],
        tokens=[points(list(trace.states[-1])) for trace in traces],
    )
