"""Compare distances on a plane with those in all dimensions, and turn the plane until their order agrees."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

TIE = 1e-6  # two distances this near count as equal: they come from float32 vectors of length 1
STEPS = 300  # turns that are tried at most
COMPARED = 200_000  # comparisons up to which a plane is turned; of more only the number that is not kept is reported
STARTS, FEW = 16, 250  # other axes to turn from, of so many comparisons at most
MARGIN = 0.1  # the part of a gap between two distances that a turned plane should show, before all are right
SEEN, ON = 0.6, 80  # the same once they are, and how many turns that is worth
SPEED, MOMENTUM, DECAY = 0.1, 0.9, 20  # of the turning: the first step, what goes on of the last, steps to half of it


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
        """Which comparisons come out the same among points, which are those of another space."""
        distances = self.distances(points)
        return distances[self.near] < distances[self.far]

    def distances(self, points: Float[Tensor, "p D"]) -> Float[Tensor, " P"]:
        """How far the points of each pair are apart."""
        return _distances(points, self.pairs)


def comparisons(
    points: Float[Tensor, "p D"], groups: Sequence[Sequence[tuple[int, int]]], full: Float[Tensor, "p p"] | None = None
) -> Comparisons:
    """Every two pairs of a group, the nearer one first; pairs that are equally far apart are not compared.

    full: how far every two points are apart in all dimensions, where that is not what the points themselves say.
    """
    every = torch.tensor([pair for group in groups for pair in group]).reshape(-1, 2).long()
    index, start = [torch.zeros(0, 2, dtype=torch.long)], 0
    for group in groups:
        index.append(torch.combinations(torch.arange(start, start + len(group))).reshape(-1, 2))
        start += len(group)
    one, other = torch.cat(index).T
    distances = _distances(points, every) if full is None else full[every[:, 0], every[:, 1]]
    apart = distances[other] - distances[one]
    known = apart.abs() > TIE
    near = torch.where(apart > 0, one, other)[known]
    far = torch.where(apart > 0, other, one)[known]
    return Comparisons(every, near, far, distances)


def how_many(groups: Sequence[Sequence[tuple[int, int]]]) -> int:
    """Count the comparisons of groups, ties among them."""
    return sum(len(group) * (len(group) - 1) // 2 for group in groups)


def _distances(points: Float[Tensor, "p D"], pairs: Int[Tensor, "P 2"]) -> Float[Tensor, " P"]:
    return (points[pairs[:, 0]] - points[pairs[:, 1]]).norm(dim=1)


def turned(points: Float[Tensor, "p D"], axes: Float[Tensor, "D 2"], wanted: Comparisons) -> Float[Tensor, "D 2"]:
    """Turn two orthonormal axes until more of the comparisons are kept on them, all of them where that is possible.

    Gradient steps on what each comparison lacks, from the given axes on, within the space that the points span; of few
    comparisons from some other axes as well, the same in every run. Of axes that keep as many comparisons those are
    taken on which the gaps are seen best.
    """
    if bool(wanted.kept(points @ axes).all()) or len(wanted) > COMPARED:
        return axes
    inside = torch.linalg.qr(torch.cat([axes, (points - points.mean(0)).T], 1))[0]  # (D, r); the axes are among it
    apart = (points[wanted.pairs[:, 0]] - points[wanted.pairs[:, 1]]) @ inside  # (P, r)
    best, left = _turned(apart, inside.T @ axes, wanted, MARGIN, STEPS)
    others = torch.Generator().manual_seed(0)
    for _ in range(STARTS if len(wanted) <= FEW else 0):
        if left[0] == 0:
            break
        start = torch.linalg.qr(torch.randn(best.shape, generator=others, dtype=best.dtype))[0]
        found, lacks = _turned(apart, start, wanted, MARGIN, STEPS)
        if lacks < left:
            best, left = found, lacks
    if left[0] == 0:
        best, _ = _turned(apart, best, wanted, SEEN, ON)
    return inside @ best


def _turned(
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
        gaps = distances[wanted.far] - distances[wanted.near]
        lacks = int((gaps <= 0).sum()), float((margin - gaps).clamp_min(0).sum())
        if lacks < least:
            best, least = now, lacks
        lacking = (gaps < margin).to(placed.dtype)
        if not lacking.any() or (part == MARGIN and lacks[0] == 0):
            break
        pull = torch.zeros_like(distances).index_add_(0, wanted.near, lacking).index_add_(0, wanted.far, -lacking)
        slope = apart.T @ ((pull / distances)[:, None] * placed)
        slope = slope - now @ (now.T @ slope)  # what changes the plane, not the axes within it
        length = float(slope.norm())
        if length < 1e-12:
            break
        speed = MOMENTUM * speed + slope / length
        now = torch.linalg.qr(now - speed * (SPEED / (1 + step / DECAY)))[0]
    return best, least
