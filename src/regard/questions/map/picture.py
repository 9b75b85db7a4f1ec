"""Draw the plot of `regard map`: arcs between distant tokens over the text, and the whole matrix."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.colors import Colormap, LinearSegmentedColormap, LogNorm
from matplotlib.figure import Figure, FigureBase

from regard.display.canvas import GREY, INK, NEUTRAL, TEXTS, Row, stack_rows_in_figure, tint
from regard.display.pen import SLIDE, Pen, ribbon
from regard.explain.wording import number
from regard.questions.map.answer import Matrix, near_offsets_of_map
from regard.text.quoting import display_text

DECADES = 1e-5  # end of the logarithmic colour scale, relative to the largest weight
NO_WEIGHT = "#efefef"
LINKS, RECEIVERS = 10, 5  # at most this many are listed
LEFT, WIDE, LINE = 24.0, 912.0, 286.0  # in points: left, width and y of the line for the text


def paint_map(matrix: Matrix) -> Figure:
    """Return the plot of a matrix as a figure with one slide."""
    return stack_rows_in_figure([map_slide(matrix, [*matrix.findings()[:1], matrix.why])], SLIDE[0] / 72)


def map_slide(matrix: Matrix, sentences: Sequence[str], label: str = "") -> Row:
    """Return the slide of a matrix as a row of a figure. sentences: title, and reason for the layer. label: the text's.

    Arcs at the top show the largest weights between distant tokens, over the attention that each part of the text
    receives. Below are a list of these links, the mean weight of each head by offset, and the whole matrix, with
    queries down and keys across (offsets for a text that was read in windows).
    """
    return Row(SLIDE[1] / 72, partial(_draw_slide, matrix=matrix, sentences=sentences, label=label))


def _draw_slide(part: FigureBase, spec: Any, matrix: Matrix, sentences: Sequence[str], label: str) -> None:
    pen = Pen(part, *SLIDE)
    pen.headline([sentences[0], f"{label}{matrix.title()}.", *sentences[1:]])
    aside = "special tokens and sinks aside" + "; orange: the link of the title" * (matrix.link is not None)
    pen.title(LEFT, 84, f"Strongest links over more than {matrix.far} tokens", WIDE, aside)
    arcs = [(pair.head, pair.query.token, pair.key.token, pair.weight) for pair in matrix.pairs]
    named = None if (link := matrix.link) is None else (link.head, link.query, link.key)
    if link is not None and named not in [arc[:3] for arc in arcs]:
        arcs.append((link.head, link.query, link.key, link.weight))
    farthest = max((abs(query - key) for _, query, key, _ in arcs), default=1)
    labels: list[int | float] = []
    for rank, (head, query, key, weight) in enumerate(arcs, 1):
        hue = TEXTS[(head, query, key) == named]
        start, end = (LEFT + WIDE * (token + 0.5) / matrix.tokens for token in (query, key))
        arc = ribbon(start, end, 0.8 + 9 * weight, 40 + 190 * abs(query - key) / farthest, -1, 0.7)
        pen.shape([(x, LINE + y) for x, y in arc], hue, alpha=0.3 + 0.5 * weight**0.5, gid=f"arc {query} {key}")
        if rank <= len(matrix.pairs) and all(abs(end - other) > 10 for other in labels):
            pen.text(end, LINE - 3, str(rank), 8, INK, "center", bold=True)
            labels.append(end)
    received = pen.inset(LEFT, LINE + 2, WIDE, 40)
    edges = np.arange(len(matrix.received) + 1) * matrix.tokens // len(matrix.received)
    received.stairs(matrix.received, edges, color=tint(TEXTS[0], 0.6), fill=True)
    log = max(matrix.received) > 20 * float(np.median(matrix.received))
    received.set(xlim=(0, matrix.tokens), yscale="log" if log else "linear")
    received.yaxis.set_visible(False)
    receivers = " · ".join(
        f"{display_text(receiver.place.text, 12)} {receiver.received:.2f}" for receiver in matrix.receivers[:RECEIVERS]
    )
    note = f"Bars: attention that each part of the text receives (average: 1{', log scale' * log}). Most: {receivers}"
    pen.text(LEFT, LINE + 62, note, 8.6, GREY, room=WIDE)
    _write_far_pairs(pen, matrix, LEFT, 362, 280)
    offsets = near_offsets_of_map(matrix)
    y = pen.title(340, 362, offsets.title, 280, "mean weight; below 0: earlier tokens")
    values = np.array([[np.nan if v is None else v for v in row] for row in offsets.values])
    axes = pen.inset(366, y + 2, 248, 504 - y)
    axes.pcolormesh(values, cmap=_colormap(TEXTS[0]), gid="near")
    step = max(1, len(offsets.columns) // 6)
    axes.set_xticks(np.arange(0, len(offsets.columns), step) + 0.5, offsets.columns[::step])
    axes.set_yticks(np.arange(0, len(values), 2) + 0.5, [row.removeprefix("head ") for row in offsets.rows[::2]])
    axes.set_ylim(len(values), 0)
    axes.set_ylabel("head", fontsize=8, color=GREY)
    _draw_matrix(pen, matrix, 640, 362)


def _write_far_pairs(pen: Pen, matrix: Matrix, x: int | float, y: int | float, wide: int | float) -> None:
    """Write the list of distant pairs, numbered like their arcs."""
    y = pen.title(x, y, "These links", wide, "each query attends to a key, by their positions")
    for n, pair in enumerate(matrix.pairs[:LINKS]):
        base = y + 11 + 12.6 * n
        text = " → ".join(f"{display_text(end.text, 12)} {end.token}" for end in (pair.query, pair.key))
        pen.text(x, base, str(n + 1), 8.6, INK, bold=True)
        pen.text(x + 16, base, text, 10, serif=True, room=wide - 110)
        pen.text(x + wide - 46, base, number(pair.weight), 8.6, align="right", bold=True)
        pen.text(x + wide, base, f"head {pair.head}", 8.6, GREY, "right")
    if not matrix.pairs:
        pen.text(x, y + 14, "There is no link this far.", 9.6, GREY)


def _draw_matrix(pen: Pen, matrix: Matrix, x: int | float, y: int | float) -> None:
    """Draw the whole matrix on a logarithmic scale, with grey cells where there is no weight."""
    band = matrix.band
    values = np.array(matrix.picture if band is None else band.values, dtype=float)
    cell = [matrix.tokens / values.shape[0], (matrix.tokens if band is None else band.count) / values.shape[1]]
    largest = float(np.nanmax(values)) or 1.0
    smallest = min(max(largest * DECADES, float(np.nanmin(values[values > 0], initial=largest))), largest / 2)
    legend = [
        f"log scale, darkest {largest:.2g}",
        f"cell: {cell[0]:.3g} × {cell[1]:.3g} tokens" * (max(cell) > 1),
        "light grey: no weight" * bool((values == 0).any()),
        "grey: not in one window" * bool(np.isnan(values).any()),
    ]
    title = "All of it" if band is None else "All of it, by query and offset"
    y = pen.title(x, y, title, 296, "; ".join(filter(None, legend)))
    axes = pen.inset(x + 34, y + 2, 262, 494 - y)
    axes.set_facecolor(NEUTRAL)
    left = 0.0 if band is None else band.first - 0.5
    extent = (left, left + (matrix.tokens if band is None else band.count), float(matrix.tokens), 0.0)
    scale = _colormap(TEXTS[0]).with_extremes(under=NO_WEIGHT)
    shown = np.where(values > 0, np.maximum(values, smallest), np.where(values == 0, smallest / 2, np.nan))
    axes.imshow(np.ma.masked_invalid(shown), cmap=scale, norm=LogNorm(smallest, largest), extent=extent, aspect="auto",
                interpolation="nearest", gid="whole")  # fmt: skip
    axes.set_ylabel("query", fontsize=8, color=GREY)
    axes.set_xlabel("key" if band is None else "key − query (below 0: earlier)", fontsize=8, color=GREY, labelpad=1)
    for pair in matrix.pairs:
        across = pair.key.token + 0.5 if band is None else pair.key.token - pair.query.token
        axes.plot(across, pair.query.token + 0.5, "o", ms=5, mfc="none", mec=TEXTS[1], mew=1.1)


def _colormap(hue: str) -> Colormap:
    return LinearSegmentedColormap.from_list("hue", [tint(hue, 0.02), tint(hue, 0.5), hue, "#08324d"])
