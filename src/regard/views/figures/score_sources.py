"""Why a head looks from one word at another, as a picture: the parts of the query down, of the key across."""

from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from regard.explain.causes.score_sources import ScoreSources
from regard.explain.causes.score_writers import By, together
from regard.explain.findings.wording import signed
from regard.text.quoting import quoted
from regard.views.figures.elements.canvas import write
from regard.views.figures.elements.heatmap import heatmap
from regard.views.terminal.layout import spelled

MOST = 24  # parts of a side that a picture names; the others are one row, or column, together


def draw_score(found: ScoreSources, file: Path, by: By | None = None) -> list[str]:
    """Write the picture, PNG or SVG by the file's ending, whole or not at all; returns notes on missing characters."""
    return write(paint_score(found, by), file)


def paint_score(found: ScoreSources, by: By | None = None) -> Figure:
    """The score's difference from the mean of the other keys, as a map of its pairs; the numbers sum to it.

    by: what is one part, by default each writer, or each layer where there are many. Parts that matter least are drawn
    together, so that nothing is left out.
    """
    beside = found.beside_the_others()
    if by is None:
        by = "writer" if max(len(names) for names in beside.table()[:2]) <= 2 * MOST else "layer"
    queries, keys, scores = beside.table(by)
    queries, scores = together(queries, scores, MOST)
    keys, across = together(keys, scores.T, MOST)
    scores = across.T
    figure = Figure(figsize=(4.2 + 0.42 * len(keys), 2.6 + 0.32 * len(queries)), layout="constrained")
    FigureCanvasAgg(figure)
    query, key = quoted(spelled(found.query)), quoted(spelled(found.key))
    title = (
        f"Why {query} looks at {key} in layer {found.layer}, head {found.head}: score {signed(found.score)}, "
        f"weight {found.weight:.2f}\n{signed(beside.score)} from the mean of the {found.seen} tokens that it may look "
        "at is the sum of these pairs"
    )
    labels = f"what {query} holds (query)", f"what {key} holds, less the mean key (key)"
    heatmap(scores, queries, keys, diverging=True, labels=labels, axes=figure.add_subplot())
    figure.suptitle(title, fontsize=10)
    return figure
