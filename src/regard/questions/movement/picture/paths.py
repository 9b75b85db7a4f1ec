"""A word's way as a picture: how near it is to reference words, layer by layer, and a plane that says what near means.

The plane is drawn only where every comparison that a reader can take from it holds in all dimensions; else the curves
stand alone, and it is said why.
"""

import math
import textwrap
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import FigureBase

from regard.display.elements.colours import line_style
from regard.display.elements.labels import Labels, framed_label_points
from regard.display.elements.slide import Row
from regard.explain.texts.curves import curves as every_curve
from regard.explain.texts.summary import Summary
from regard.explain.vectors.planes import Path2D, Point
from regard.questions.movement.picture import curves
from regard.questions.movement.sentences import plane_sentences, plane_title
from regard.text.quoting import short, visible

SAME = 1e-4  # two starts this near are one
NUMBERED = 10  # states of a path that are numbered, of more every so many-th
ACROSS, UP = 7.6, 5.0  # the room for the plane, in inches
COSINES = 4.4  # and beside it
LINE = 106  # characters of a line above the picture
ALONE = 2.8  # inches of what stands beside the plane where there is no plane

PARTS = [n / 20 for n in range(21)]  # of an arrow

Drawn = list[tuple[str, Path2D, tuple[str, str]]]  # an occurrence's label, its path, and its colour and dashes


def path_rows(summary: Summary, first: Sequence[str] = ()) -> list[Row]:
    """The curves, and the plane with how alike the occurrences are.

    first: the occurrences that come before others where not all are named. A single panel of curves stands beside the
    plane, several above it.
    """
    moved, told = summary.movement, curves.named(summary, first)
    assert moved is not None
    lines, pairs = _below(summary), curves.has_movement_of_pairs(summary)
    several = len(every_curve(summary)) > 1

    def put(figure: FigureBase, place: Any) -> None:
        paint_paths(figure, place, summary, told, several)

    found = [curves.row(summary, first)] if several else []
    high = UP + 0.5 if moved.states else ALONE if pairs or not several else 0.0
    high += 0.2 * (len(lines) + 1) + (0 if several else 0.2 * (1 + len(told) // 2))
    return [*found, Row(high, put, "the path of the word")] if high > 0.2 else found


def paint_paths(figure: FigureBase, place: Any, summary: Summary, told: Sequence[str], several: bool) -> None:
    """Draw the plane, beside it how alike the occurrences are, layer by layer, and the curves where not several.

    Both axes of the plane have the same scale: near in the picture is near on it. What is not on it is named below.

    Args:
        figure, place: of these the part that is drawn into.
        told: of the occurrences those that are named; of the others the paths are grey.
        several: whether the curves are several, and have a place of their own.
    """
    moved = summary.movement
    assert moved is not None
    beside: list[Any] = [] if several else [lambda at: _one_curve(figure, at, summary, told)]
    if curves.has_movement_of_pairs(summary):
        beside.append(lambda at: curves.paint_pairs(figure.add_subplot(at), summary, told))
    if moved.states and beside:
        parts = place.subgridspec(1, 2, width_ratios=(ACROSS, COSINES) if several else (COSINES, ACROSS))
        plane, rest = (parts[0], parts[1]) if several else (parts[1], parts[0])
        inner = rest.subgridspec(len(beside), 1)
    else:
        plane = place
        inner = place.subgridspec(1, max(2, len(beside)))
    for at, put in enumerate(beside):
        put(inner[at])
    if moved.states:
        axes = figure.add_subplot(plane)
        axes.set_title(textwrap.fill(visible(plane_title(summary) or ""), LINE), fontsize=9.5)
        _plane(axes, summary, told)
    elif not beside:
        figure.add_subplot(place).set_axis_off()
    figure.supxlabel("\n".join(_below(summary)), fontsize=8.5)
    if not several:
        curves.legend(figure, summary, told, "upper")


def _one_curve(figure: FigureBase, place: Any, summary: Summary, told: Sequence[str]) -> None:
    """The one panel of curves, with what it is above it."""
    (axes,) = curves.panels(figure, place, summary, told)
    lines = [part for line in curves.above(summary, told) for part in textwrap.wrap(line, LINE // 2)]
    axes.set_title("\n".join(lines), fontsize=9.5)


def _plane(axes: Axes, summary: Summary, told: Sequence[str]) -> None:
    """Paths of all states, straight lines from the first to the last, or the ends alone with arrows that lead there."""
    moved = summary.movement
    assert moved is not None
    axes.tick_params(labelsize=7)
    axes.set_aspect("equal")
    every: Drawn = [
        (o.label, path, line_style(nth))
        for nth, (o, path) in enumerate(zip(summary.occurrences, moved.words, strict=True))
        if path
    ]
    grey, paths = [each for each in every if each[0] not in told], [each for each in every if each[0] in told]
    names = dict.fromkeys(each.word for each in summary.references)
    marks = [(name, point) for name, point in zip(names, moved.references, strict=True) if point]
    middle = [] if moved.neutral is None else [moved.neutral]
    labels = framed_label_points(
        axes, [*(p for _, path, _ in every for p in path), *(p for _, p in marks), *middle], ACROSS, UP
    )
    labels.keep_free([point for _, path, _ in paths for point in path], 4.0)
    labels.keep_free([path[-1] for _, path, _ in paths], 13.0)
    labels.keep_free([*(point for _, point in marks), *middle], 8.0)
    for label, path, _ in grey:
        axes.plot(*zip(*path, strict=True), color="#bbbbbb", linewidth=0.7, gid=f"path {label}")
        axes.plot(*path[-1], "*", color="#bbbbbb", markersize=6, gid=f"end {label}")
    leaves = {o.label for o, far in zip(summary.occurrences, moved.leaves, strict=True) if far}
    for label, path, _ in paths:
        if moved.neutral is not None and label in leaves:
            labels.keep_free(_along(moved.neutral, path[-1]), 6.0)
    for label, path, style in paths:
        if moved.neutral is not None and label in leaves:
            _arrow(axes, label, moved.neutral, path[-1], style)
        _path(axes, label, path, style, len(moved.states))
        labels.put(label, path[-1], 11.0, color=style[0], fontweight="bold")
    if moved.neutral is not None:
        axes.plot(*moved.neutral, "o", color="#444444", markerfacecolor="white", markersize=8, gid="neutral")
        labels.put("neutral", moved.neutral, 9.0, color="#444444")
    for name, point in marks:
        axes.plot(*point, "D", color="#666666", markersize=5, gid=f"reference {name}")
        labels.put(short(name), point, 10.0, color="#333333")
    if len(moved.states) > 1:
        _steps(labels, paths)


def _arrow(axes: Axes, label: str, start: Point, end: Point, style: tuple[str, str]) -> None:
    """From the neutral mean to where a text's word ends."""
    colour, dashes = style
    line = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.6, "linestyle": dashes, "shrinkA": 5, "shrinkB": 7}
    axes.annotate("", end, start, arrowprops=line, gid=f"arrow {label}")


def _along(start: Point, end: Point) -> list[Point]:
    """Points of an arrow, which no name should cover."""
    return [(start[0] + part * (end[0] - start[0]), start[1] + part * (end[1] - start[1])) for part in PARTS]


def _path(axes: Axes, label: str, path: Path2D, style: tuple[str, str], states: int) -> None:
    """A line with a mark a state, and a star where it ends."""
    colour, dashes = style
    if states > 1:
        mark = "o" if states > 2 else ""
        axes.plot(*zip(*path, strict=True), dashes, marker=mark, color=colour, markersize=4, linewidth=1.6,
                  gid=f"path {label}")  # fmt: skip
    axes.plot(*path[-1], "*", color=colour, markersize=14, gid=f"end {label}")


def _steps(labels: Labels, paths: Drawn) -> None:
    """Where paths begin, and the numbers of the layers along them."""
    for start, colour in _starts([(path[0], colour) for _, path, (colour, _) in paths]):
        labels.put("in", start, 8.0, color=colour)
    for _, path, (colour, _) in paths:
        step = -(-(len(path) - 1) // NUMBERED)
        for n in reversed(range(len(path) - 1 - step, 0, -step)):
            labels.put(str(n - 1), path[n], 7.0, needed=False, color=colour)


def _below(summary: Summary) -> list[str]:
    """What has to be known to read the plane, in lines."""
    wide = round(LINE * 1.6)
    return [part for each in plane_sentences(summary) for part in textwrap.wrap(visible(each), wide)]


def _starts(starts: list[tuple[Point, str]]) -> list[tuple[Point, str]]:
    """Where paths begin, and the colour of what begins there: black where it is more than one."""
    found: list[tuple[Point, str]] = []
    for start, colour in starts:
        same = next((n for n, (other, _) in enumerate(found) if math.dist(start, other) < SAME), None)
        if same is None:
            found.append((start, colour))
        else:
            found[same] = found[same][0], "black"
    return found
