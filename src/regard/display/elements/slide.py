"""Lay the parts of a picture out on a slide, 16:9, side by side or below one another; what has no room is named."""

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from regard.display.elements.plot import Plot
from regard.text.quoting import some_of

SIZES = (40 / 3, 7.5), (16.0, 9.0)  # inches: the smaller a slide, the larger its text, so the first in which all fits
PIXELS = 1920
LEAST, MOST = 0.7, 1.6  # how high a part may be, of its height in a picture that is as high as it needs
NARROW = 0.85  # and how wide at least, where it stands beside others
LINE = 0.27  # inches of a line of the slide's own
GAP = 0.2  # inches between axes, one above the other
NAMED = 5  # parts that are left out
LEFT_OUT = "left out"


class Row(NamedTuple):
    """A part of a picture. high, wide: in inches, 0 for as wide as the picture; paint: draws it into its part.

    name: what a slide that has no room for it calls it. first: a slide leaves it out after those that are not.
    """

    high: float
    paint: Any
    name: str = ""
    first: bool = True
    wide: float = 0.0


def slide(rows: Sequence[Row], heading: Sequence[str] = ()) -> Figure:
    """Draw as many parts as have room, in their order, and say in a line which have none. heading: lines above all."""
    kept = list(range(len(rows)))
    while True:
        own = len(heading) + (len(kept) < len(rows))
        shelves, size, (wide, high) = _laid_out([rows[n] for n in kept], LINE * own)
        if size >= LEAST or len(kept) == 1:
            break
        kept.remove(max(kept, key=lambda n: (not rows[n].first, n)))
    inside = [(max(row.high for row in shelf) * min(size, MOST), shelf) for shelf in shelves]
    left_out = dict.fromkeys(row.name for n, row in enumerate(rows) if n not in kept)
    said = f"Not on this slide, which has no room for it: {some_of([*left_out], NAMED)}"
    bands = [(LINE * len(heading), [Row(0, _words("\n".join(heading), fontsize=12))]), *inside]
    bands.append((max(0.0, high - LINE * own - sum(height for height, _ in inside) - GAP), []))
    bands.append((LINE * bool(left_out), [Row(0, _words(said, fontsize=9, color="#555555", gid=LEFT_OUT))]))
    bands = [(height, band) for height, band in bands if height > 0]
    figure = Plot((wide, high), PIXELS / wide, label="slide", layout=ConstrainedLayoutEngine(hspace=GAP / high))
    FigureCanvasAgg(figure)
    places = figure.subfigures(len(bands), 1, height_ratios=[height for height, _ in bands], squeeze=False)[:, 0]
    for place, (_, band) in zip(places, bands, strict=True):
        widths = [row.wide or 1.0 for row in band] or [1.0]
        parts = place.subfigures(1, len(widths), width_ratios=widths, squeeze=False)[0]
        for row, part in zip(band, parts, strict=False):
            row.paint(part, part.add_gridspec(1, 1)[0, 0])
    return figure


def _words(text: str, **how: Any) -> Any:
    """What writes a line in the middle of its part."""
    return lambda part, _: part.text(0.5, 0.5, text, ha="center", va="center", **how)


def _laid_out(rows: Sequence[Row], own: float) -> tuple[list[list[Row]], float, tuple[float, float]]:
    """The first way in which all parts have their heights, or that in which they have most of them.

    Returns what stands side by side, the part of their heights that they have, and the slide's size. own: inches of
    the slide's own lines.
    """
    found = []
    for size, across in product(SIZES, (1, 2, 3)):
        shelves: list[list[Row]] = [[]]
        for row in rows:
            beside = [*shelves[-1], row]
            alone = len(beside) > across or not all(each.wide for each in beside)
            if shelves[-1] and (alone or NARROW * sum(each.wide for each in beside) > size[0]):
                shelves.append([])
            shelves[-1].append(row)
        part = (size[1] - own) / sum(max(row.high for row in shelf) for shelf in shelves)
        found.append((shelves, part, size))
    return next((each for each in found if each[1] >= 1), max(found, key=lambda each: each[1]))
