"""Planes on which vectors are seen: those of most variance, and others turned from them.

A plane is turned until the distances on it have the order that they have in all dimensions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

Point = tuple[float, float]
Path2D = list[Point]

FLAT = 1e-9  # the part of the variance from which a second axis is one, and no error of rounding
TIE = 1e-6  # two distances this near count as equal: they come from float32 vectors of length 1
STEPS = 300  # turns that are tried at most
COMPARED = 200_000  # comparisons up to which a plane is turned; of more only the number that is not kept is reported
STARTS, FEW = 16, 250  # other axes to turn from, of so many comparisons at most
MARGIN = 0.1  # the part of a gap between two distances that a turned plane should show, before all are right
SEEN, ON = 0.6, 80  # the same once they are, and how many turns that is worth
SPEED, MOMENTUM, DECAY = 0.1, 0.9, 20  # of the turning: the first step, what goes on of the last, steps to half of it


@dataclass(frozen=True)
class Plane:
    """A projection to two dimensions: the two directions of largest variance (PCA; Pearson 1901).

    share: the part of the variance that each axis keeps.
    """

    centre: Float[Tensor, " M"]
    axes: Float[Tensor, "M 2"]
    share: tuple[float, float]

    def place(self, vectors: Float[Tensor, "n M"]) -> Float[Tensor, "n 2"]:
        """Compute where vectors fall on the plane."""
        return (vectors.double() - self.centre) @ self.axes


def plane(vectors: Float[Tensor, "n M"]) -> Plane:
    """Compute the plane that keeps most of the variance of these vectors. Needs two of them or more.

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


def along(vectors: Float[Tensor, "n M"], axes: Float[Tensor, "M 2"]) -> Plane:
    """The plane of two orthonormal axes, centred on the vectors and turned within itself so that they lie widest."""
    vectors = vectors.double()
    centre = vectors.mean(0)
    inner = plane((vectors - centre) @ axes)
    total = float(((vectors - centre) ** 2).sum()) or 1.0
    axes = axes @ inner.axes
    largest = axes.gather(0, axes.abs().argmax(0, keepdim=True))
    axes = axes * torch.where(largest < 0, -1.0, 1.0)
    kept = [float(part) / total for part in (((vectors - centre) @ axes) ** 2).sum(0)]
    return Plane(centre, axes, (kept[0], kept[1]))


@dataclass(frozen=True)
class Comparisons:
    """Pairs of points whose distances are compared. pairs: their points; comparison c: pair near[c], then far[c].

    full: how far the points of each pair are apart in all dimensions.
    """

    pairs: Int[Tensor, "P 2"]
    near: Int[Tensor, " C"]
    far: Int[Tensor, " C"]
    full: Float[Tensor, " P"]

    def __len__(self) -> int:
        return len(self.near)

    def kept(self, points: Float[Tensor, "p D"]) -> Bool[Tensor, " C"]:
        """Return which comparisons come out the same among points, which are those of another space."""
        distances = (points[self.pairs[:, 0]] - points[self.pairs[:, 1]]).norm(dim=1)
        return distances[self.near] < distances[self.far]


def comparisons(
    points: Float[Tensor, "p D"], groups: Sequence[Sequence[tuple[int, int]]], full: Float[Tensor, "p p"] | None = None
) -> Comparisons:
    """List every two pairs of a group, the nearer one first; pairs that are equally far apart are not compared.

    full: how far every two points are apart in all dimensions, where that is not what the points themselves say.
    """
    every = torch.tensor([pair for group in groups for pair in group]).reshape(-1, 2).long()
    index, start = [torch.zeros(0, 2, dtype=torch.long)], 0
    for group in groups:
        index.append(torch.combinations(torch.arange(start, start + len(group))).reshape(-1, 2))
        start += len(group)
    one, other = torch.cat(index).T
    first, second = every.T
    distances = (points[first] - points[second]).norm(dim=1) if full is None else full[first, second]
    apart = distances[other] - distances[one]
    known = apart.abs() > TIE
    near = torch.where(apart > 0, one, other)[known]
    far = torch.where(apart > 0, other, one)[known]
    return Comparisons(every, near, far, distances)


def plane_axes_turned(
    points: Float[Tensor, "p D"], axes: Float[Tensor, "D 2"], wanted: Comparisons
) -> Float[Tensor, "D 2"]:
    """Turn two orthonormal axes until more of the comparisons are kept on them, all of them where that is possible.

    Gradient steps on what each comparison lacks, from the given axes on, within the space that the points span; of few
    comparisons from some other axes as well, the same in every run. Of axes that keep as many comparisons those are
    taken on which the gaps are seen best.
    """
    if bool(wanted.kept(points @ axes).all()) or len(wanted) > COMPARED:
        return axes
    inside = torch.linalg.qr(torch.cat([axes, (points - points.mean(0)).T], 1))[0]  # (D, r); the axes are among it
    apart = (points[wanted.pairs[:, 0]] - points[wanted.pairs[:, 1]]) @ inside  # (P, r)
    best, left = _plane_axes_turned_once(apart, inside.T @ axes, wanted, MARGIN, STEPS)
    others = torch.Generator().manual_seed(0)
    for _ in range(STARTS if len(wanted) <= FEW else 0):
        if left[0] == 0:
            break
        start = torch.linalg.qr(torch.randn(best.shape, generator=others, dtype=best.dtype))[0]
        found, lacks = _plane_axes_turned_once(apart, start, wanted, MARGIN, STEPS)
        if lacks < left:
            best, left = found, lacks
    if left[0] == 0:
        best, _ = _plane_axes_turned_once(apart, best, wanted, SEEN, ON)
    return inside @ best


def _plane_axes_turned_once(
    apart: Float[Tensor, "P r"], axes: Float[Tensor, "r 2"], wanted: Comparisons, part: float, steps: int
) -> tuple[Float[Tensor, "r 2"], tuple[int, float]]:
    """Turn from one start: the best axes on the way, with how many comparisons are wrong on them and what all lack.

    part: of a gap, what should be seen of it; with MARGIN it ends as soon as all are right. steps: the most.
    """
    margin = part * (wanted.full[wanted.far] - wanted.full[wanted.near])
    best = now = axes
    least, speed = (len(wanted) + 1, 0.0), torch.zeros_like(now)
    for step in range(steps):
        placed = apart @ now
        distances = placed.norm(dim=1).clamp_min(1e-12)
        gaps = distances.index_select(0, wanted.far) - distances.index_select(0, wanted.near)
        short = (margin - gaps).clamp_min(0)
        lacks = int(torch.count_nonzero(gaps <= 0)), float(short.sum())
        if lacks < least:
            best, least = now, lacks
        if lacks[1] == 0 or (part == MARGIN and lacks[0] == 0):
            break
        lacking = (short > 0).to(placed.dtype)
        pull = torch.zeros_like(distances).scatter_add_(0, wanted.near, lacking).scatter_add_(0, wanted.far, -lacking)
        slope = apart.T @ ((pull / distances)[:, None] * placed)
        slope = slope - now @ (now.T @ slope)  # what changes the plane, not the axes within it
        length = float(slope.norm())
        if length < 1e-12:
            break
        speed = MOMENTUM * speed + slope / length
        now = torch.linalg.qr(now - speed * (SPEED / (1 + step / DECAY)))[0]
    return best, least
