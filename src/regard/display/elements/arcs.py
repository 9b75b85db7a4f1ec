"""Weights between tokens of a long text as arcs over the text, with the tokens at their ends named below."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from regard.display.elements.canvas import places_spread_apart
from regard.display.elements.colours import FOLLOWED, WEIGHTS, weight_scale

NAME = 0.135  # inches that a name, written upright, needs beside the next
DEEP = 1.15  # inches below the line that are for names
ANGLES = tuple(np.pi / 2 + side * np.pi * n / 48 for n in range(20) for side in ((1, -1) if n else (1,)))
FAINTEST = 0.35  # where on the map of colours the smallest weight lies: fainter could not be seen on white


@dataclass(frozen=True)
class Link:
    """A weight that a query token gives a key token. label: what stands at the top of its arc."""

    query: int
    key: int
    weight: float
    label: str = ""


def draw_arcs(
    axes: Axes,
    links: Sequence[Link],
    length: int,
    named: Mapping[int, str],
    inches: tuple[float, float],
    followed: int | None = None,
) -> None:
    """Draw an arc for each link, over a line that is the text: as dark and wide as its weight, as high as it is far.

    A dot is the query's end, a triangle the key's.
    """
    farthest = max((abs(link.query - link.key) for link in links), default=1)
    scale = weight_scale(max((link.weight for link in links), default=1.0))
    turn = np.linspace(0, np.pi, 61)
    for link in sorted(links, key=lambda each: each.weight):
        middle, half = (link.query + link.key) / 2, abs(link.query - link.key) / 2
        height = (2 * half / farthest) ** 0.5
        share = float(scale(link.weight))
        colour = WEIGHTS(FAINTEST + (1 - FAINTEST) * share)
        axes.plot(middle + half * np.cos(turn), height * np.sin(turn), color=colour, linewidth=0.6 + 2.4 * share,
                  solid_capstyle="round", gid=f"arc {link.query} {link.key}")  # fmt: skip
        axes.plot([link.key], [0], "v", color=colour, markersize=6, zorder=3)
        axes.plot([link.query], [0], "o", color=colour, markersize=4, zorder=3)
    axes.axhline(0, color="#888888", linewidth=0.8)
    places = sorted(named)
    gap = NAME / inches[0] * length
    below = 1.15 * DEEP / max(inches[1] - DEEP, 0.5)
    ends = places_spread_apart(places, gap, length - 1 - gap / 2) if places else []
    lead = 0.16 * below
    for place, at in zip(places, ends, strict=True):
        axes.plot([place, at], [-0.02, -lead], color="#bbbbbb", linewidth=0.5)
        own = place == followed
        axes.text(at, -lead * 1.15, named[place], rotation=90, ha="center", va="top", fontsize=8 if own else 7,
                  color=FOLLOWED if own else "black", fontweight="bold" if own else "normal")  # fmt: skip
    _labels_of_drawn_arcs(axes, links, farthest, length, inches[0])
    axes.set(xlim=(-0.01 * length, 1.01 * length), ylim=(-below, 1.15))
    axes.set_yticks([])
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)


def _labels_of_drawn_arcs(axes: Axes, links: Sequence[Link], farthest: int, length: int, inches: float) -> None:
    """What stands on the arcs: each on its own, at the top or further down where another label is."""
    taken: list[tuple[float, float, float]] = []
    wide = 0.032 / inches * length  # of half a character
    for link in links:
        if not link.label:
            continue
        middle, half = (link.query + link.key) / 2, abs(link.query - link.key) / 2
        top, reach = (2 * half / farthest) ** 0.5, wide * len(link.label)
        places = [(middle + half * np.cos(turn), top * np.sin(turn) + 0.02) for turn in ANGLES]
        free = [
            (x, y)
            for x, y in places
            if all(abs(x - other) >= reach + own or abs(y - height) >= 0.08 for other, height, own in taken)
        ]
        x, y = (free or places)[0]
        taken.append((x, y, reach))
        axes.text(x, y, link.label, ha="center", va="center", fontsize=7, color="#333333",
                  bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.85}, zorder=4)  # fmt: skip
