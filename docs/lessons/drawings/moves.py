"""Draw how a word moves: by two dots and a dashed line, or by its measured cosines in a row per reference word."""

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


def dots(
    axes: Axes, neutral: Mapping[str, Sequence[float]], texts: Mapping[str, Sequence[float]], names: Sequence[str]
) -> None:
    """Draw a row per reference word: the range and mean of its neutral cosines, and a star for each text.

    neutral: least, mean and largest cosine of each word. names: of the texts.
    """
    axes.set_aspect("auto")
    for row, (word, (low, mean, high)) in enumerate(neutral.items()):
        axes.plot([low, high], [row, row], color="#cccccc", linewidth=9, solid_capstyle="butt", zorder=0)
        axes.plot(mean, row, "ko", markersize=5)
        for value, colour in zip(texts[word], TEXTS, strict=True):
            axes.plot(value, row, "*", color=colour, markersize=16)
    axes.set_yticks(range(len(neutral)), list(neutral))
    axes.invert_yaxis()
    for name, colour in zip(names, TEXTS, strict=True):
        axes.plot([], [], "*", color=colour, markersize=16, label=name)
    axes.plot([], [], "ko", markersize=5, label="mean of neutral sentences")
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.12))
