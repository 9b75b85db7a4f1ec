"""Draw how a word moves: by two dots and a dashed line, with made-up places and with measured ones side by side."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

Place = Sequence[float]
TEXTS = "#0072b2", "#d55e00"  # a text each


def panels(*titles: str, tall: float = 5.2) -> tuple[Figure, list[Axes]]:
    """Make a figure with a square panel for each title."""
    figure = Figure(figsize=(4.9 * len(titles), tall), layout="constrained")
    found = list(figure.subplots(1, len(titles), squeeze=False)[0])
    for axes, title in zip(found, titles, strict=True):
        axes.set_title(title, fontsize=11)
        axes.margins(0.2)
        axes.set_aspect("equal", adjustable="box")
    return figure, found


def words(axes: Axes, places: Mapping[str, Place], colour: str = "#666666") -> None:
    """Mark words that stay where they are."""
    for name, place in places.items():
        axes.plot(*place, "D", color=colour, markersize=6)
        axes.annotate(name, place, xytext=(0, 8), textcoords="offset points", ha="center")


def legend(axes: Axes, before: str) -> None:
    """Name what moves, below the panel. before: what the black dot is."""
    axes.plot([], [], "ko", label=before)
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.07))


def move(axes: Axes, before: Place, after: Place, colour: str, label: str) -> None:
    """Draw a word before (a black dot) and after (a star), with a dashed line between."""
    axes.plot(*zip(before, after, strict=True), "--", color=colour)
    axes.plot(*before, "ko", markersize=8)
    axes.plot(*after, "*", color=colour, markersize=16, label=label)
