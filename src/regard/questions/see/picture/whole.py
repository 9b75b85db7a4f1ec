"""Draw what `see` found: the stage, or for an encoder-decoder its alignment, and below it what was asked as well."""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from matplotlib.figure import Figure, FigureBase

from regard.display.elements.canvas import Row, empty_figure, stack_rows_in_figure, title_axes
from regard.display.elements.colours import GREY, INK, SINK, TEXTS, ink_on, tint
from regard.display.elements.pen import SLIDE, Pen, frame, text_width
from regard.display.figure import drawn
from regard.display.panels import Panel
from regard.explain.texts.summary import Summary
from regard.explain.weights.alignment import Alignment
from regard.explain.wording import in_plot, mean_or_head
from regard.questions.lens import cells
from regard.questions.map.picture import map_slide
from regard.questions.map.whole import matrix
from regard.questions.see.panels import likeliest_tokens_seen
from regard.questions.see.picture import lines as stage
from regard.questions.see.picture.stage import ON_SLIDE, ROWS, paint_column, paint_slide, write_headline
from regard.questions.see.sentences import findings
from regard.text.quoting import display_text
from regard.trace.status import exactness

WIDE = SLIDE[0] / 72  # inches
Shape = Literal["slide", "column"]
NO_COLUMN = "only short texts, and texts with a word, are drawn as a column"


def paint_seen(
    summary: Summary, traces: Sequence[Any], layer: int | None = None, head: int | None = None, shape: Shape = "slide"
) -> tuple[Figure, list[str]]:
    """Draw the stage of a summary, and return notes on what it doesn't show.

    A long text in which no word is followed is drawn as `regard map` draws it, an encoder-decoder by its alignment.
    What was asked as well stands below: each layer's predictions. layer, head: show these. shape: a
    slide, or a column of a paper, 85 mm wide. traces: those that the summary is of.
    """
    if summary.target is not None:
        slides = [Row(SLIDE[1] / 72, lambda part, place, alignment=alignment: paint_alignment(part, summary, alignment))
                  for alignment in summary.target.alignments]  # fmt: skip
        rows = [row for side in (summary, summary.target.summary) for row in _asked(side)]
        return stack_rows_in_figure([*slides, *rows], WIDE), [NO_COLUMN] * (shape == "column")
    lines = stage.lines(summary, traces, layer, head)
    if not lines:
        figure = empty_figure(WIDE, 1.2)
        figure.text(0.5, 0.5, "No layer of the trace has attention between the tokens of the text.", ha="center")
        return figure, []
    if summary.word is None and max(len(line.trace.tokens) for line in lines) > stage.LONGEST:
        rows = []
        for line in lines[:ROWS]:
            at = line.head or (line.arcs[0][2], line.arcs[0][3])
            label = f"Text {line.label}: " if len(lines) > 1 else ""
            rows.append(map_slide(matrix(line.trace, *at), findings(summary)[:1], label))
        return stack_rows_in_figure([*rows, *_asked(summary)], WIDE), _left_out(summary, lines, shape)
    if shape == "column":
        asked = ["a column has no room for predictions of layers"] * bool(_asked(summary))
        return paint_column(summary, lines), [*_left_out(summary, lines), *asked]
    paint = Row(SLIDE[1] / 72, lambda part, place: paint_slide(part, summary, lines))
    return stack_rows_in_figure([paint, *_asked(summary)], WIDE), _left_out(summary, lines)


def _left_out(summary: Summary, lines: Sequence[stage.TextLine], shape: Shape = "slide") -> list[str]:
    """Say which occurrences, texts and predictions are not drawn."""
    shown, count = min(len(lines), ROWS), len(summary.occurrences if summary.word is not None else summary.texts)
    which = "occurrences, those that end furthest apart," if summary.word is not None else "texts"
    notes = [f"{shown} of {count} {which} are drawn as sentences"] if shown < count else []
    many = len(likeliest_tokens_seen(summary)) > (len(lines) == 1 and not summary.references)
    notes += [NO_COLUMN] * (shape == "column")
    return notes + ["not all likeliest tokens are drawn: --json has them"] * (many and not summary.logit_lenses)


def _asked(summary: Summary) -> list[Row]:
    """The panels of what was asked as well, side by side."""
    panels: list[Panel] = [cells(lense, summary, "") for lense in summary.logit_lenses]
    drawings = [drawn(panel, True) for panel in panels]

    def put(part: FigureBase, place: Any) -> None:
        for panel, drawing, cell in zip(panels, drawings, place.subgridspec(1, max(2, len(panels))), strict=False):
            drawing.paint(axes := part.add_subplot(cell))
            title_axes(axes, panel.title, panel.caption, WIDE / max(2, len(panels)))

    return [Row(max(drawing.high for drawing in drawings), put)] if panels else []


NUMBERED, TOLD = 11.5, 0.1  # points of a cell with room for its weight; the least weight that is written
TOP, LOW, STRIP = 84.0, 402.0, 66.0  # of the two matrices, and of the small ones below


def paint_alignment(part: FigureBase, summary: Summary, alignment: Alignment) -> None:
    """Draw a slide: two matrices with the target's tokens down and the text's across, and every layer below."""
    assert summary.target is not None
    pen, weights, source = Pen(part, *SLIDE), list(map(np.array, alignment.weights)), summary.tokens[alignment.text]
    own = replace(summary, target=replace(summary.target, alignments=[alignment]))
    write_headline(pen, own, [], rf"In text (?!{re.escape(summary.labels[alignment.text])}\b)")
    sinks = {sink.token for sink in alignment.sinks}
    apart = {n for n, token in enumerate(source) if token.special or n in sinks}
    chosen = {"written": alignment.written_layer, "read": alignment.read_layer}
    for n, (doing, layer) in enumerate(chosen.items() if len(alignment.tokens) > 1 else ()):  # else nothing was written
        values = weights[alignment.layers.index(layer)][slice(None, -1) if doing == "written" else slice(1, None)]
        pen.title(
            24 + n * 466,
            TOP,
            f"Where each target token looks as it is {doing}",
            440,
            f"layer {layer}, {mean_or_head(alignment.head)}",
        )
        _matrix(pen, summary, alignment, values, apart, 24 + n * 466)
    pen.title(24, LOW + 13, "Every layer", 440)
    wide = min(150.0, (SLIDE[0] - 48) / len(weights) - 8)
    for n, (layer, values) in enumerate(zip(alignment.layers, weights, strict=True)):
        x, roles = 24 + n * (wide + 8), " and ".join(name for name, own in chosen.items() if own == layer)
        said = f"{layer}: {roles}" if roles else str(layer)
        pen.text(x, LOW + 35, said, ON_SLIDE.small, INK if roles else GREY, room=wide)
        axes = pen.cells(x, LOW + 40, wide, STRIP, values, TEXTS[0], power=0.5, apart=apart, gid=f"layer {layer}")
        if roles:
            frame(axes, 0, 0, values.shape[1], values.shape[0], 1.2)
    status = summary.target.summary.statuses[alignment.text]
    pen.text(24, SLIDE[1] - 12, f"{status.model} · grey: special tokens and attention sinks", ON_SLIDE.small, GREY)
    pen.text(SLIDE[0] - 24, SLIDE[1] - 12, exactness([status]), ON_SLIDE.small, GREY, "right", room=470)


def _matrix(
    pen: Pen, summary: Summary, alignment: Alignment, values: Any, apart: Collection[int], x: int | float
) -> None:
    """One of the two: names beside it, weights in it, and a frame around what belongs to the followed word."""
    target = summary.target
    assert target is not None
    across = [display_text(token.text, 14) for token in summary.tokens[alignment.text]]
    down = [display_text(token.text, 14) for token in target.summary.tokens[alignment.text][1:]]
    columns = {n for occurrence in summary.occurrences if occurrence.text == alignment.text for n in occurrence.tokens}
    lines = {
        n - 1
        for occurrence in target.summary.occurrences
        if occurrence.text == alignment.text
        for n in occurrence.tokens
    }
    size = max(4.5, min(10.5, 240 / len(down), 360 / len(across)))
    left, top = (max(text_width(name, size, serif=True) for name in names) for names in (down, across))
    y = TOP + 32 + top * 0.77
    wide, high = min(428 - left, 44.0 * len(across)), min(LOW - y, 24.0 * len(down))
    axes = pen.cells(x + left + 6, y, wide, high, values, TEXTS[0], (down, across), size=size, power=0.5, apart=apart,
                     gid="large", rotation=50)  # fmt: skip
    for axis, own in ((axes.xaxis, columns), (axes.yaxis, lines)):
        for at, label in zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True):
            label.set(fontfamily="serif", color=INK, fontweight="bold" if int(at) in own else "normal")
    if min(wide / len(across), high / len(down)) >= NUMBERED:
        for i, j in zip(*np.nonzero(values >= TOLD), strict=True):
            ground = tint(SINK if j in apart else TEXTS[0], float(values[i, j]) ** 0.5)
            axes.text(j + 0.5, i + 0.5, in_plot(values[i, j], 2), fontsize=min(8.0, wide / len(across) * 0.4),
                      color=ink_on(ground), ha="center", va="center")  # fmt: skip
    # what looks most at the followed word of the text, and where that of the target looks most
    peaks = {(int(values[:, j].argmax()), j) for j in columns}
    for i, j in peaks | {(i, int(values[i].argmax())) for i in lines if 0 <= i < len(values)}:
        frame(axes, j, i)
