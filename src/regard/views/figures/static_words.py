"""A word's static vector beside those of reference words, as a picture of their plane and as their cosines."""

import math
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import FigureBase

from regard.explain.vectors.static_words import Static
from regard.text.quoting import quoted
from regard.views.figures.elements.colours import LINES
from regard.views.figures.elements.labels import framed
from regard.views.terminal.layout import short, visible

SAME = 1e-6  # two cosines this near are one
ACROSS, UP = 7.6, 3.6  # the room for the plane, in inches
COSINES = 4.4  # and beside it


def paint(figure: FigureBase, place: Any, static: Static) -> None:
    """Draw the words on the plane on which they differ most, one scale on both axes, and their cosines to the word."""
    parts = place.subgridspec(1, 2, width_ratios=(ACROSS, COSINES))
    _plane(figure.add_subplot(parts[0]), static)
    _cosines(figure.add_subplot(parts[1]), static)


def _plane(axes: Axes, static: Static) -> None:
    points = [each.place for each in static.words if each.place is not None]
    labels = framed(axes, points, ACROSS, UP)
    labels.keep_free(points, 10.0)
    axes.set_aspect("equal")
    for number, each in enumerate(static.words):
        if each.place is None:
            continue
        first = number == 0
        axes.plot(*each.place, "*" if first else "D", color=LINES[0] if first else "#666666",
                  markersize=14 if first else 5, gid=f"word {each.word}")  # fmt: skip
        labels.put(visible(each.word), each.place, 10.0 if first else 9.0, fontweight="bold" if first else "normal")
    kept = " + ".join(f"{part:.0%}" for part in static.share)
    axes.set_xlabel(f"a plane through these vectors, each of length 1: {kept} of their variance", fontsize=8)
    axes.tick_params(labelsize=7)
    word = short(visible(static.words[0].word))
    title = f"{quoted(word)} as a static vector ({visible(static.source)}): one point in every text"
    axes.set_title("\n".join([title, *_near(static)]), fontsize=9.5)


def _near(static: Static) -> list[str]:
    """What near and far mean on the plane: the order of the cosines, or which two words stand otherwise."""
    placed = [(each.word, each.cosine, each.place) for each in static.words if each.cosine is not None and each.place]
    (_, _, star), *others = placed
    if len(others) < 2:
        return []
    far = {word: math.dist(star, place) for word, _, place in others}
    wrong = [
        (one, other)
        for one, a, _ in others
        for other, b, _ in others
        if a - b > SAME and far[one] > far[other]
    ]  # fmt: skip
    if not wrong:
        return [f"Seen from the ★: nearer here is nearer in all {static.width} dimensions (has the larger cosine)"]
    one, other = (quoted(short(visible(word), 16)) for word in wrong[0])
    return [f"Not to be read off as it stands: in all {static.width} dimensions {one} is nearer than {other}"]


def _cosines(axes: Axes, static: Static) -> None:
    known = sorted((each for each in static.words[1:] if each.cosine is not None), key=lambda each: -(each.cosine or 0))
    word = short(visible(static.words[0].word))
    if not known:
        axes.set_axis_off()
        return
    values = [each.cosine or 0.0 for each in known]
    axes.barh(range(len(known)), values, color="#4292c6", height=0.6)
    axes.set_yticks(range(len(known)), [short(visible(each.word), 16) for each in known], fontsize=9)
    axes.invert_yaxis()
    axes.axvline(0, color="#777777", linewidth=0.8)
    for at, value in enumerate(values):
        axes.annotate(f"{value:z.2f}", (value, at), xytext=(4 if value >= 0 else -4, 0), textcoords="offset points",
                      ha="left" if value >= 0 else "right", va="center", fontsize=8)  # fmt: skip
    axes.margins(x=0.15)
    axes.tick_params(labelsize=8, length=0)
    axes.set_title(f"cosine to {quoted(word)} of static vectors", fontsize=9.5)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
