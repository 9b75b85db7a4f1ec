"""Draw the plot of `regard see`, with requested logit lenses below it, and the small SVG for a notebook."""

from collections.abc import Collection, Sequence
from html import escape
from typing import Any, Literal

import numpy as np
from matplotlib.figure import Figure, FigureBase

from regard.display.canvas import (
    GREY,
    INK,
    SINK,
    TEXTS,
    Row,
    empty_figure,
    ink_on,
    stack_rows_in_figure,
    tint,
    title_axes,
)
from regard.display.figure import drawn
from regard.display.panels import Heat, Panel
from regard.display.pen import SLIDE, Pen, frame, ribbon, text_width
from regard.explain.logits import LogitLens
from regard.explain.texts.summary import Summary
from regard.explain.weights.alignment import Alignment
from regard.explain.wording import fixed, in_plot, mean_or_head, number, state_name
from regard.questions.map.picture import map_slide
from regard.questions.map.whole import matrix
from regard.questions.see.alignment import alignment_sentences
from regard.questions.see.panels import predicted_position
from regard.questions.see.picture import lines as stage
from regard.questions.see.picture.lines import TextLine, layout, written_tokens
from regard.questions.see.picture.stage import ON_SLIDE, ROWS, Stage, drawn_predictions, paint_column, write_headline
from regard.questions.see.sentences import findings
from regard.text.quoting import display_text, quoted, visible
from regard.trace.status import exactness

INCHES = SLIDE[0] / 72  # width of a slide
Shape = Literal["slide", "column"]
NO_COLUMN = "only short texts, and texts with a word, are drawn as a column"


def paint_seen(
    summary: Summary, traces: Sequence[Any], layer: int | None = None, head: int | None = None, shape: Shape = "slide"
) -> tuple[Figure, list[str]]:
    """Draw the plot of a summary, and return it with notes on what it doesn't show.

    A long text without a followed word is drawn as in `regard map`, and an encoder-decoder's texts by their alignment.
    Requested logit lenses are drawn below. traces: the summary's traces. layer, head: the layer and head to show.
    shape: a slide, or a column of a paper, 85 mm wide.
    """
    if summary.target is not None:
        slides = [Row(SLIDE[1] / 72, lambda part, spec, alignment=alignment: paint_alignment(part, summary, alignment))
                  for alignment in summary.target.alignments]  # fmt: skip
        rows = [row for side in (summary, summary.target.summary) for row in _lens_rows(side)]
        return stack_rows_in_figure([*slides, *rows], INCHES), [NO_COLUMN] * (shape == "column")
    lines = stage.choose_lines(summary, traces, layer, head)
    if not lines:
        figure = empty_figure(INCHES, 1.2)
        figure.text(0.5, 0.5, "No layer of the trace has attention between the tokens of the text.", ha="center")
        return figure, []
    if summary.word is None and max(len(line.trace.tokens) for line in lines) > stage.LONGEST:
        rows = []
        for line in lines[:ROWS]:
            at = line.head or (line.arcs[0][2], line.arcs[0][3])
            label = f"Text {line.label}: " if len(lines) > 1 else ""
            rows.append(map_slide(matrix(line.trace, *at), findings(summary)[:1], label))
        return stack_rows_in_figure([*rows, *_lens_rows(summary)], INCHES), _notes_on_left_out(summary, lines, shape)
    if shape == "column":
        notes = ["a column has no room for predictions of layers"] * bool(_lens_rows(summary))
        return paint_column(summary, lines), [*_notes_on_left_out(summary, lines), *notes]
    paint = Row(SLIDE[1] / 72, lambda part, spec: Stage(summary, lines, Pen(part, *SLIDE), ON_SLIDE).slide())
    return stack_rows_in_figure([paint, *_lens_rows(summary)], INCHES), _notes_on_left_out(summary, lines)


def _notes_on_left_out(summary: Summary, lines: Sequence[stage.TextLine], shape: Shape = "slide") -> list[str]:
    """Return notes on the occurrences, texts and predictions that aren't drawn."""
    shown, count = min(len(lines), ROWS), len(summary.occurrences if summary.word is not None else summary.texts)
    kind = "occurrences, those that end furthest apart," if summary.word is not None else "texts"
    notes = [f"{shown} of {count} {kind} are drawn as sentences"] if shown < count else []
    many = len(drawn_predictions(summary)) > (len(lines) == 1 and not summary.references)
    notes += [NO_COLUMN] * (shape == "column")
    return notes + ["not all likeliest tokens are drawn: --json has them"] * (many and not summary.logit_lenses)


def _lens_rows(summary: Summary) -> list[Row]:
    """Return a row with the requested logit lenses side by side, or an empty list."""
    panels: list[Panel] = [lens_cells(lens, summary, "") for lens in summary.logit_lenses]
    drawings = [drawn(panel, True) for panel in panels]

    def paint_lenses(subfigure: FigureBase, spec: Any) -> None:
        for panel, drawing, cell in zip(panels, drawings, spec.subgridspec(1, max(2, len(panels))), strict=False):
            drawing.paint(axes := subfigure.add_subplot(cell))
            title_axes(axes, panel.title, panel.caption, INCHES / max(2, len(panels)))

    return [Row(max(drawing.high for drawing in drawings), paint_lenses)] if panels else []


def lens_cells(lens: LogitLens, summary: Summary, side: str) -> Heat:
    """Return the logit lens as a heat map of states by rank, with the model's final prediction in bold."""
    label, token = predicted_position(summary, lens)
    at = f"{'after' if lens.after else 'at'} {quoted(token)}"
    rows, final = [layer.candidates for layer in lens.layers], quoted(lens.final.text)
    return Heat(
        name=f"Logit lens, {side} {label} {at}, cells", title=f"{label}, {at}: predictions of each layer",
        rows=[state_name(layer.state) for layer in lens.layers], columns=[str(n + 1) for n in range(len(rows[0]))],
        values=[[token.probability for token in row] for row in rows], axes=("state", "rank"), unit="probability",
        largest=1.0, upwards=True, picture=True, written=[[token.text for token in row] for row in rows],
        strong=[(i, j) for i, row in enumerate(rows) for j, token in enumerate(row) if token.id == lens.final.id],
        said=[[f"{quoted(token.text)} {fixed(token.probability, 3)}" for token in row] for row in rows],
        caption=f"most likely tokens, darker is more likely; bold: {final}, the model's prediction",
    )  # fmt: skip


NUMBERED, TOLD = 11.5, 0.1  # smallest cell (in points) with a written weight, and smallest written weight
TOP, LOW, STRIP = 84.0, 402.0, 66.0  # y of the two large matrices; y and height of the small ones below


def paint_alignment(part: FigureBase, summary: Summary, alignment: Alignment) -> None:
    """Draw a slide of cross-attention: matrices (target by source) for written and read tokens, and all layers."""
    assert summary.target is not None
    pen, weights, source = Pen(part, *SLIDE), list(map(np.array, alignment.weights)), summary.tokens[alignment.text]
    write_headline(pen, summary, [], alignment_sentences(summary, alignment.text))
    sinks = {sink.token for sink in alignment.sinks}
    grey = {n for n, token in enumerate(source) if token.special or n in sinks}
    chosen = {"written": alignment.written_layer, "read": alignment.read_layer}
    for n, (doing, layer) in enumerate(chosen.items() if len(alignment.tokens) > 1 else ()):  # else nothing was written
        values = weights[alignment.layers.index(layer)][slice(None, -1) if doing == "written" else slice(1, None)]
        title = f"Where each target token looks as it is {doing}"
        pen.title(24 + n * 466, TOP, title, 440, f"layer {layer}, {mean_or_head(alignment.head)}")
        _draw_matrix(pen, summary, alignment, values, grey, 24 + n * 466)
    pen.title(24, LOW + 13, "Every layer", 440)
    wide = min(150.0, (SLIDE[0] - 48) / len(weights) - 8)
    for n, (layer, values) in enumerate(zip(alignment.layers, weights, strict=True)):
        x, roles = 24 + n * (wide + 8), " and ".join(name for name, used in chosen.items() if used == layer)
        text = f"{layer}: {roles}" if roles else str(layer)
        pen.text(x, LOW + 35, text, ON_SLIDE.small, INK if roles else GREY, room=wide)
        axes = pen.cells(x, LOW + 40, wide, STRIP, values, TEXTS[0], power=0.5, apart=grey, gid=f"layer {layer}")
        if roles:
            frame(axes, 0, 0, values.shape[1], values.shape[0], 1.2)
    status = summary.target.summary.statuses[alignment.text]
    pen.text(24, SLIDE[1] - 12, f"{status.model} · grey: special tokens and attention sinks", ON_SLIDE.small, GREY)
    pen.text(SLIDE[0] - 24, SLIDE[1] - 12, exactness([status]), ON_SLIDE.small, GREY, "right", room=470)


def _draw_matrix(
    pen: Pen, summary: Summary, alignment: Alignment, values: Any, grey: Collection[int], x: int | float
) -> None:
    """Draw one matrix of target by source tokens, with weights in its cells and frames around the followed word."""
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
    axes = pen.cells(x + left + 6, y, wide, high, values, TEXTS[0], (down, across), size=size, power=0.5, apart=grey,
                     gid="large", rotation=50)  # fmt: skip
    for axis, bold in ((axes.xaxis, columns), (axes.yaxis, lines)):
        for at, label in zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True):
            label.set(fontfamily="serif", color=INK, fontweight="bold" if int(at) in bold else "normal")
    if min(wide / len(across), high / len(down)) >= NUMBERED:
        for i, j in zip(*np.nonzero(values >= TOLD), strict=True):
            ground = tint(SINK if j in grey else TEXTS[0], float(values[i, j]) ** 0.5)
            axes.text(j + 0.5, i + 0.5, in_plot(values[i, j], 2), fontsize=min(8.0, wide / len(across) * 0.4),
                      color=ink_on(ground), ha="center", va="center")  # fmt: skip
    # the target tokens that attend most to the followed word, and the source tokens that it attends to most
    peaks = {(int(values[:, j].argmax()), j) for j in columns}
    for i, j in peaks | {(i, int(values[i].argmax())) for i in lines if 0 <= i < len(values)}:
        frame(axes, j, i)


SIZE, GAP, LEFT, WIDE = 20, 56, 480, 720  # in pixels: font size, line height, width of sentences, full width
SHADES = 8  # number of shades of the heads' cells
SMALL, LARGE = "font:11px system-ui,'Noto Sans',sans-serif", f"font:{SIZE}px Georgia,'Noto Serif',serif"


def small_stage(summary: Summary, traces: Sequence[Any], layer: int | None, head: int | None) -> str:
    """Return an SVG for a notebook of the sentences with arcs and heads, "" for long texts and translations.

    Its colours are mixed with the colour of the surrounding text.
    """
    lines = [] if summary.target else stage.choose_lines(summary, traces, layer, head)
    if not lines or max(len(line.trace.tokens) for line in lines) > stage.LONGEST:
        return ""
    svg, y = "", 0.0
    for n, line in enumerate(lines):
        boxes = layout(line, lambda text: text_width(text, SIZE, serif=True), LEFT - 24)
        hue = f"color:color-mix(in srgb,{TEXTS[n % 2]} 85%,currentColor)"
        heads, high = _svg_heads(line, y + 24)
        svg += _svg("g", _svg_marks(line, boxes, y + 68) + heads, style=hue) + _svg_tokens(line, boxes, y + 68)
        y += max(98 + GAP * boxes[-1][2], 30 + high)
    style = f"display:block;width:100%;max-width:{WIDE}px;fill:currentColor;{LARGE}"
    label = escape(visible(" ".join(line.trace.text for line in lines)))
    return _svg("svg", svg, viewBox=f"0 0 {WIDE} {y:.0f}", role="img", aria_label=label, style=style)


def _svg(name: str, content: str = "", **attributes: object) -> str:
    """Return an SVG element as text. Numeric attributes have one decimal."""
    texts = {key.replace("_", "-"): f"{v:.1f}" if isinstance(v, int | float) else v for key, v in attributes.items()}
    return f"<{name} " + " ".join(f'{key}="{value}"' for key, value in texts.items()) + f">{content}</{name}>"


def _svg_marks(line: TextLine, positions: Sequence[tuple[int | float, int | float, int]], base: int | float) -> str:
    """Return the SVG of the word's frame, and of the shading, weights and arcs of the tokens that it attends to."""
    boxes = {k: (left + 4, wide, base + GAP * row) for k, (left, wide, row) in zip(line.shown, positions, strict=True)}
    first = boxes[line.tokens[0]]
    frame: Any = {"fill": "none", "stroke": "currentColor", "stroke_width": 1.5, "height": 28, "rx": 3}
    word_boxes = [boxes[k] for k in line.tokens]
    svg = "".join(_svg("rect", x=x - 2, y=y - 20, width=wide + 4, **frame) for x, wide, y in word_boxes)
    labels: list[tuple[int | float, int | float]] = []  # positions of written weights, to avoid overlaps
    for k, weight, *_ in sorted(line.arcs, key=lambda arc: -arc[1]):
        if k not in boxes or weight <= 0.01:
            continue
        x, wide, y = boxes[k]
        middle, pale = x + wide / 2, 0.4 if k in line.apart else 1.0
        shade = f"{pale * 0.55 * weight**0.5:.2f}"
        svg += _svg("rect", x=x - 1, y=y - 19, width=wide + 2, height=26, rx=3, opacity=shade)
        if weight > 0.04 and all(abs(middle - px) > 24 or y != py for px, py in labels):
            labels.append((middle, y))
            svg += _svg("text", number(weight), x=middle, y=y + 20, text_anchor="middle", style=SMALL)
        if y == first[2]:
            start = first[0] + first[1] / 2
            lift = min(52.0 if y == base else 20.0, 22 + abs(middle - start) * 0.3)
            p = [f"{a:.1f} {b + y - 22:.1f}" for a, b in ribbon(start, middle, 1 + 16 * weight, lift, -1, 1)]
            shape = f"M{p[0]}C{p[1]} {p[2]} {p[3]}L{p[4]}C{p[5]} {p[6]} {p[7]}Z"
            svg += _svg("path", d=shape, opacity=f"{0.7 * pale:.2f}")
    return _svg("g", svg, fill="currentColor")


def _svg_tokens(line: TextLine, positions: Sequence[tuple[int | float, int | float, int]], base: int | float) -> str:
    """Return the SVG of a text's tokens, with special tokens in a smaller font."""
    texts, svg = written_tokens(line), ""
    for k, (left, wide, row) in zip(line.shown, positions, strict=True):
        attributes: dict[str, object] = (
            {"style": f"{SMALL};opacity:.6"} if line.trace.tokens[k].special else {"textLength": wide}
        )
        svg += _svg("text", escape(texts[k][0]), x=left + 4, y=base + GAP * row, **attributes)
    return svg


def _svg_heads(line: TextLine, y: int | float) -> tuple[str, int | float]:
    """Return the SVG of the grid of heads, with one shaded cell per head, and its height in pixels."""
    turned = len(line.layers) > len(line.cells[0])
    down, across = (len(line.layers), len(line.cells[0]))[:: -1 if turned else 1]
    side, shades = min(18.0, (WIDE - LEFT) / across), [""] * (SHADES + 1)
    for layer, weights in enumerate(line.cells):
        for head, weight in enumerate(weights):
            i, j = (head, layer) if turned else (layer, head)
            at = f"M{LEFT + j * side:.1f} {y + i * side:.1f}"
            shades[round(SHADES * weight**0.75)] += f"{at}h{side - 1:.1f}v{side - 1:.1f}h{1 - side:.1f}z"
    cells = "".join(_svg("path", d=d, opacity=f"{0.07 + 0.93 * n / SHADES:.2f}") for n, d in enumerate(shades) if d)
    title = f"{'head by layer' if turned else 'layer by head'}: {line.kind} from “{escape(line.word)}”"
    return _svg("g", _svg("text", title, x=LEFT, y=y - 7, style=SMALL) + cells, fill="currentColor"), side * down
