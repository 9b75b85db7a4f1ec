"""A word's static vector beside those of reference words, as a picture of their plane."""

from typing import Any

from matplotlib.figure import FigureBase

from regard.explain.static_words import Static
from regard.views.terminal.layout import short, visible


def paint(figure: FigureBase, place: Any, static: Static) -> None:
    """Draw the words on the plane on which they differ most: the followed one is one star, whatever the text."""
    axes = figure.add_subplot(place)
    for number, each in enumerate(static.words):
        if each.place is None:
            continue
        first = number == 0
        axes.plot(*each.place, "*" if first else "D", color="black" if first else "#666666",
                  markersize=14 if first else 5)  # fmt: skip
        axes.annotate(visible(each.word), each.place, xytext=(8, 4), textcoords="offset points",
                      fontsize=10 if first else 9, fontweight="bold" if first else "normal")  # fmt: skip
    axes.margins(0.15)
    across, up = (f"{part:.0%} of the variance" for part in static.share)
    axes.set_xlabel(f"first principal component ({across})", fontsize=8)
    axes.set_ylabel(f"second ({up})", fontsize=8)
    axes.tick_params(labelsize=7)
    word = short(visible(static.words[0].word))
    axes.set_title(f"“{word}” as a static vector ({visible(static.source)}): one point in every text", fontsize=10)
