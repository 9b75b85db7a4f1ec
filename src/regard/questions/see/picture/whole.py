"""Draw what `see` found: the stage, or for an encoder-decoder its alignment, and below it what was asked as well."""

from collections.abc import Sequence
from typing import Any, Literal

from matplotlib.figure import Figure, FigureBase

from regard.display.elements.canvas import Row, empty_figure, stack_rows_in_figure, title_axes
from regard.display.elements.pen import SLIDE
from regard.display.figure import drawn
from regard.display.panels import Panel
from regard.explain.texts.summary import Summary
from regard.questions.lens import cells
from regard.questions.map.picture import map_slide
from regard.questions.map.whole import matrix
from regard.questions.see.panels import likeliest_tokens_seen, static_bars
from regard.questions.see.picture import lines as stage
from regard.questions.see.picture.alignment import paint_alignment
from regard.questions.see.picture.stage import ROWS, paint_column, paint_slide
from regard.questions.see.sentences import findings

WIDE = SLIDE[0] / 72  # inches
Shape = Literal["slide", "column"]
NO_COLUMN = "only short texts, and texts with a word, are drawn as a column"


def paint_seen(
    summary: Summary, traces: Sequence[Any], layer: int | None = None, head: int | None = None, shape: Shape = "slide"
) -> tuple[Figure, list[str]]:
    """Draw the stage of a summary, and return notes on what it doesn't show.

    A long text in which no word is followed is drawn as `regard map` draws it, an encoder-decoder by its alignment.
    What was asked as well stands below: each layer's predictions, static vectors. layer, head: show these. shape: a
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
        asked = ["a column has no room for predictions of layers and static vectors"] * bool(_asked(summary))
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
    panels += [] if summary.static is None else [static_bars(summary.static)]
    drawings = [drawn(panel, True) for panel in panels]

    def put(part: FigureBase, place: Any) -> None:
        for panel, drawing, cell in zip(panels, drawings, place.subgridspec(1, max(2, len(panels))), strict=False):
            drawing.paint(axes := part.add_subplot(cell))
            title_axes(axes, panel.title, panel.caption, WIDE / max(2, len(panels)))

    return [Row(max(drawing.high for drawing in drawings), put)] if panels else []
