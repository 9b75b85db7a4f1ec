"""Compare distances on a plane with those in all dimensions, and turn the plane until their order agrees."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

TIE = 1e-6  # two distances this near count as equal: they come from float32 vectors of length 1
STEPS = 300  # turns that are tried at most
COMPARED = 200_000  # comparisons up to which a plane is turned; of more only the number that is not kept is reported
MARGIN = 0.1  # the part of a gap between two distances that a turned plane should show
SPEED, MOMENTUM, DECAY = 0.1, 0.9, 20  # of the turning: the first step, what goes on of the last, steps to half of it


@dataclass(frozen=True)
class Comparisons:
    """Pairs of points whose distances are compared. pairs: their points; comparison c: pair near[c], then far[c]."""

    pairs: Int[Tensor, "P 2"]
    near: Int[Tensor, " C"]
    far: Int[Tensor, " C"]

    def __len__(self) -> int:
        return len(self.near)

    def kept(self, points: Float[Tensor, "p D"]) -> Bool[Tensor, " C"]:
        """Which comparisons come out the same among points, which are those of another space."""
        distances = self.distances(points)
        return distances[self.near] < distances[self.far]

    def distances(self, points: Float[Tensor, "p D"]) -> Float[Tensor, " P"]:
        """How far the points of each pair are apart."""
        return (points[self.pairs[:, 0]] - points[self.pairs[:, 1]]).norm(dim=1)


def comparisons(points: Float[Tensor, "p D"], groups: Sequence[Sequence[tuple[int, int]]]) -> Comparisons:
    """Every two pairs of a group, the nearer one first; pairs that are equally far apart are not compared."""
    every = torch.tensor([pair for group in groups for pair in group]).reshape(-1, 2)
    index, start = [torch.zeros(0, 2, dtype=torch.long)], 0
    for group in groups:
        index.append(torch.combinations(torch.arange(start, start + len(group))).reshape(-1, 2))
        start += len(group)
    one, other = torch.cat(index).T
    found = Comparisons(every.long(), one, other)
    distances = found.distances(points)
    apart = distances[other] - distances[one]
    known = apart.abs() > TIE
    near = torch.where(apart > 0, one, other)[known]
    far = torch.where(apart > 0, other, one)[known]
    return Comparisons(found.pairs, near, far)


def turned(points: Float[Tensor, "p D"], axes: Float[Tensor, "D 2"], wanted: Comparisons) -> Float[Tensor, "D 2"]:
    """Turn two orthonormal axes until more of the comparisons are kept on them, all of them where that is possible.

    Gradient steps on what each comparison lacks, from the given axes on, within the space that the points span.
    """
    if bool(wanted.kept(points @ axes).all()) or len(wanted) > COMPARED:
        return axes
    inside = torch.linalg.qr(torch.cat([axes, (points - points.mean(0)).T], 1))[0]  # (D, r); the axes are among it
    apart = (points[wanted.pairs[:, 0]] - points[wanted.pairs[:, 1]]) @ inside  # (P, r)
    full = apart.norm(dim=1)
    margin = MARGIN * (full[wanted.far] - full[wanted.near])
    best = now = inside.T @ axes
    fewest, speed = len(wanted) + 1, torch.zeros_like(now)
    for step in range(STEPS):
        placed = apart @ now
        distances = placed.norm(dim=1).clamp_min(1e-12)
        gaps = distances[wanted.far] - distances[wanted.near]
        wrong = int((gaps <= 0).sum())
        if wrong < fewest:
            best, fewest = now, wrong
        lacking = (gaps < margin).to(placed.dtype)
        if wrong == 0 or not lacking.any():
            break
        pull = torch.zeros_like(distances).index_add_(0, wanted.near, lacking).index_add_(0, wanted.far, -lacking)
        slope = apart.T @ ((pull / distances)[:, None] * placed)
        slope = slope - now @ (now.T @ slope)  # what changes the plane, not the axes within it
        length = float(slope.norm())
        if length < 1e-12:
            break
        speed = MOMENTUM * speed + slope / length
        now = torch.linalg.qr(now - speed * (SPEED / (1 + step / DECAY)))[0]
    return inside @ best
