"""A word's path through the layers as a picture, which says itself what near and far mean in it."""

import math
import textwrap
from collections.abc import Sequence
from typing import Any

from matplotlib.figure import FigureBase

from regard.explain.texts.summary import Occurrence, Summary
from regard.explain.vectors.movement import Movement
from regard.explain.vectors.planes import Point
from regard.views.figures.elements import cosines
from regard.views.figures.elements.canvas import LABELS
from regard.views.figures.elements.colours import line_style
from regard.views.figures.elements.cosines import MOST
from regard.views.figures.elements.labels import framed
from regard.views.movement_sentences import agreement, axes_sentence, not_drawn
from regard.views.terminal.layout import short, spelled

SAME = 1e-4  # two starts this near are one
NUMBERED = 10  # states of a path that are numbered, of more every so many-th
ACROSS, UP = 7.6, 5.0  # the room for the plane, in inches
COSINES = 4.4  # and beside it
LINE = 106  # characters of a line above the picture


def row(summary: Summary, first: Sequence[str] = ()) -> tuple[float, Any]:
    """Its height in inches, and what draws it into its part of a grid. first: as in `paint`."""
    moved = summary.movement
    assert moved is not None
    lines = len(_above(summary, moved).splitlines()) + len(_below(summary, moved).splitlines()) - 1
    lines += -(-min(MOST, len(summary.occurrences)) // 2)
    return UP + 0.7 + 0.2 * lines, lambda figure, place: paint(figure, place, summary, first)


def paint(figure: FigureBase, place: Any, summary: Summary, first: Sequence[str] = ()) -> None:
    """Draw the word's paths, one line an occurrence, with the reference words where they end; beside them, cosines.

    Of more than twelve occurrences twelve paths are named, those of `first` before others; the others are grey.
    Where there are no reference words the texts' tokens stand around as dots. Both axes have the same scale: near in
    the picture is near on its plane. What was left out of the plane is named, and so is what comes out otherwise.
    """
    moved = summary.movement
    assert moved is not None
    parts = place.subgridspec(1, 2, width_ratios=(ACROSS, COSINES))
    axes = figure.add_subplot(parts[0])
    axes.set_title(_above(summary, moved), fontsize=9.5)
    below = _below(summary, moved)
    axes.set_xlabel(below, fontsize=8)
    axes.tick_params(labelsize=7)
    axes.set_aspect("equal")
    ends = [
        (reference, path[-1]) for reference, path in zip(_references(summary), moved.references, strict=True) if path
    ]
    dots = [] if ends else _dots(summary, moved)
    one = len(summary.texts) == 1
    paths = [
        (o, path, line_style(nth))
        for nth, (o, path) in enumerate(zip(summary.occurrences, moved.words, strict=True))
        if path
    ]
    told = cosines.named(summary, first)
    grey, paths = [each for each in paths if each[0].label not in told], [p for p in paths if p[0].label in told]
    shown = [
        *(point for _, path, _ in [*grey, *paths] for point in path),
        *(e for _, e in ends),
        *(p for *_, p in dots),
    ]
    cosines.paint(figure, parts[1], summary, first)
    if not shown:
        axes.set_axis_off()
        return
    labels = framed(axes, shown, ACROSS, UP)
    labels.keep_free([point for _, path, _ in paths for point in path], 4.0)
    labels.keep_free([path[-1] for _, path, _ in paths], 13.0)
    labels.keep_free([point for _, point in ends], 6.0)
    for occurrence, path, _ in grey:
        axes.plot(*zip(*path, strict=True), color="#bbbbbb", linewidth=0.7, gid=f"path {occurrence.label}")
        axes.plot(*path[-1], "*", color="#bbbbbb", markersize=6, gid=f"end {occurrence.label}")
    for occurrence, path, (colour, dashes) in paths:
        axes.plot(*zip(*path, strict=True), dashes, marker="o", color=colour, markersize=4, linewidth=1.6,
                  label=_named(summary, occurrence), gid=f"path {occurrence.label}")  # fmt: skip
        axes.plot(*path[-1], "*", color=colour, markersize=14, gid=f"end {occurrence.label}")
        labels.put(occurrence.label, path[-1], 11.0, color=colour, fontweight="bold")
    for start, colour in _starts([(path[0], colour) for _, path, (colour, _) in paths]):
        labels.put("in", start, 8.0, color=colour)
    for name, point in ends:
        axes.plot(*point, "D", color="#666666", markersize=5, gid=f"reference {name}")
        labels.put(short(name), point, 10.0, color="#333333")
    for _, path, (colour, _) in paths:
        step = -(-(len(path) - 1) // NUMBERED)
        for n in reversed(range(len(path) - 1 - step, 0, -step)):
            labels.put(str(n - 1), path[n], 7.0, needed=False, color=colour)
    colours = {o.text: colour for o, _, (colour, _) in reversed(paths)} if not one else {}
    for text, name, point in dots:
        axes.plot(*point, ".", color=colours.get(text, "#777777"), markersize=5, alpha=0.4)
        if len(dots) <= LABELS:
            labels.put(name, point, 6.0, needed=False, color=colours.get(text, "#777777"), alpha=0.7)
    axes.legend(
        fontsize=8,
        frameon=False,
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        borderaxespad=3.5 + 1.2 * len(below.splitlines()),
        ncols=min(2, len(paths)),
    )


def _above(summary: Summary, moved: Movement) -> str:
    """What the picture is, what near and far mean in it, and what is not in it."""
    end = "; ◆: reference words, at their ends" if moved.fitted else ""
    legend = f"in: enters layer 0; n: leaves layer n; ★: the end{end}"
    lines = [f"The path of “{short(summary.word or '')}” through the layers ({legend})"]
    if len(summary.occurrences) > MOST:
        lines.append(f"{MOST} of {len(summary.occurrences)} paths are named, the others grey")
    lines += [line for line in (agreement(moved), not_drawn(moved)) if line is not None]
    return "\n".join(part for line in lines for part in textwrap.wrap(line, LINE))


def _below(summary: Summary, moved: Movement) -> str:
    """What the axes are."""
    return textwrap.fill(axes_sentence(summary.word or "", moved), LINE)


def _references(summary: Summary) -> list[str]:
    return list(dict.fromkeys(reference.word for reference in summary.references))


def _dots(summary: Summary, moved: Movement) -> list[tuple[int, str, Point]]:
    """(text, name, place) of the texts' tokens that are neither special nor the word's own, nor left out."""
    own = {(o.text, token) for o in summary.occurrences for token in o.tokens}
    return [
        (text, spelled(token.text), place)
        for text, (tokens, places) in enumerate(zip(summary.tokens, moved.tokens, strict=True))
        for n, (token, place) in enumerate(zip(tokens, places, strict=True))
        if place is not None and not token.special and (text, n) not in own
    ]


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


def _named(summary: Summary, occurrence: Occurrence) -> str:
    """The occurrence with the words around it."""
    text = summary.texts[occurrence.text]
    start, end = max(0, occurrence.start - 36), occurrence.end + 24
    around = ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")
    return f"{occurrence.label}  {short(around, 72)}"
