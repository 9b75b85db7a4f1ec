"""Puts names beside points so that none lies on another."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field

from matplotlib.axes import Axes

Box = tuple[float, float, float, float]  # left, bottom, right, top, in inches
RINGS = 5, 13, 22, 32, 44, 60, 80, 104  # points a name may stand from its point; beyond the first a line leads to it
AROUND = ((1, 1), (1, -1), (-1, 1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1))


@dataclass
class Labels:
    """The names of a picture. scale: inches per unit of its axes, the same on both. limits: where its axes end."""

    axes: Axes
    scale: float
    limits: Box  # in inches as well
    taken: list[Box] = field(default_factory=list)

    def keep_free(self, points: Sequence[tuple[float, float]], size: float) -> None:
        """No name on these marks, of some size in points."""
        half, own = size / 72 / 2, self.scale
        self.taken += [(x * own - half, y * own - half, x * own + half, y * own + half) for x, y in points]

    def put(self, text: str, point: tuple[float, float], size: float, **style: object) -> None:
        """Write a name beside its point."""
        width, height = drawn_text_width(text) * size * 0.66 / 72, size * 1.25 / 72
        best: tuple[float, int, tuple[float, float], Box] | None = None
        for far in RINGS:
            for across, up in AROUND:
                away = far / 72 * (1.0 if across and up else 1.4)
                x = point[0] * self.scale + across * away - (0 if across > 0 else width / 2 if across == 0 else width)
                y = point[1] * self.scale + up * away - (0 if up > 0 else height / 2 if up == 0 else height)
                box = (x, y, x + width, y + height)
                cost = sum(_area_labels_share(box, other) for other in self.taken) + 9 * self._outside(box)
                if best is None or cost < best[0] - 1e-9:
                    best = cost, far, (x, y), box
            assert best is not None
            if best[0] == 0:
                break
        assert best is not None
        _, far, (x, y), box = best
        self.taken.append(box)
        leads = {"arrowstyle": "-", "color": "#bbbbbb", "linewidth": 0.5, "shrinkB": 2} if far > RINGS[0] else None
        corner = x / self.scale, (y + height / 2) / self.scale
        self.axes.annotate(text, point, xytext=corner, textcoords="data", fontsize=size, va="center_baseline",
                           arrowprops=leads, **style)  # type: ignore[arg-type]  # fmt: skip

    def _outside(self, box: Box) -> float:
        left, bottom, right, top = self.limits
        inside = max(0.0, min(box[2], right) - max(box[0], left)) * max(0.0, min(box[3], top) - max(box[1], bottom))
        return (box[2] - box[0]) * (box[3] - box[1]) - inside


def framed_label_points(axes: Axes, points: Sequence[tuple[float, float]], across: float, up: float) -> Labels:
    """Set limits around some points, with a tenth to spare, in the shape of the room there is, and make its labels.

    across, up: the room, in inches. Both axes get one scale.
    """
    xs, ys = zip(*points, strict=True)
    middle = (min(xs) + max(xs)) / 2, (min(ys) + max(ys)) / 2
    wide = 1.2 * max((max(xs) - min(xs)) / across, (max(ys) - min(ys)) / up, 1e-9)  # units per inch
    left, bottom = middle[0] - wide * across / 2, middle[1] - wide * up / 2
    right, top = left + wide * across, bottom + wide * up
    axes.set(xlim=(left, right), ylim=(bottom, top))
    return Labels(axes, 1 / wide, (left / wide, bottom / wide, right / wide, top / wide))


def _area_labels_share(one: Box, other: Box) -> float:
    """The area that two boxes share."""
    across, up = (min(one[n + 2], other[n + 2]) - max(one[n], other[n]) for n in (0, 1))
    return max(0.0, across) * max(0.0, up)


def drawn_text_width(text: str) -> float:
    """Characters, those of East Asian writing counted as they are drawn."""
    return sum((1.65 if unicodedata.east_asian_width(each) in "WF" else 1.0 for each in text), 0.0)
