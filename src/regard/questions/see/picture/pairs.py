"""Pictures of cross-attention: where each target token comes from, and every layer beside it."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase

from regard.display.elements.canvas import Row, mark_names, name_of_drawn_weights, token_names_on_axis
from regard.display.elements.weight_cells import bare, frame, largest_own, paint_weights, weight_bar, write_weights
from regard.explain.texts.summary import Summary
from regard.explain.weights.alignment import Alignment
from regard.explain.weights.sinks import own_tokens
from regard.text.tokens import Token

ACROSS = 12  # small pictures side by side


def alignment_rows(summary: Summary, alignment: Alignment) -> list[Row]:
    """The rows that show one text and its target."""
    layers = len(alignment.weights)
    length = len(alignment.tokens)
    small = [
        Row(1.75, lambda figure, place, start=start: _strip(figure, place, summary, alignment, start))
        for start in range(0, layers, ACROSS)
    ]
    if length < 2:  # a start token alone: nothing was written yet that could have been read
        return list(small)
    height = min(10.0, max(3.4, 1.6 + 0.235 * (length - 1)))
    return [Row(height, lambda figure, place: _views(figure, place, summary, alignment)), *small]


def _views(figure: FigureBase, place: Any, summary: Summary, alignment: Alignment) -> None:
    """The two views of an alignment side by side, with the same rows: the target's tokens, the start token aside."""
    assert summary.target is not None
    source, target = summary.tokens[alignment.text], summary.target.summary.tokens[alignment.text][1:]
    written = np.array(alignment.weights[alignment.layers.index(alignment.written_layer)])[:-1]
    read = np.array(alignment.weights[alignment.layers.index(alignment.read_layer)])[1:]
    sinks = {sink.token for sink in alignment.sinks}
    own = own_tokens(source, sinks)
    largest = max(largest_own(written, own), largest_own(read, own))
    columns = {n for o in summary.occurrences if o.text == alignment.text for n in o.tokens}
    lines = {n - 1 for o in summary.target.summary.occurrences if o.text == alignment.text for n in o.tokens}
    parts = place.subgridspec(1, 2)
    label = summary.labels[alignment.text]
    for column, (values, layer, doing) in enumerate(
        ((written, alignment.written_layer, "written"), (read, alignment.read_layer, "read"))
    ):
        axes = figure.add_subplot(parts[column])
        image = _heat(axes, values, source, target, columns, lines, largest, sinks)
        axes.set_ylabel(f"target {label}: token that is {doing}", fontsize=8)
        title = f"Text {label}: where each target token looks as it is {doing}"
        axes.set_title(f"{title} ({name_of_drawn_weights(layer, alignment.head)})", fontsize=10)
        weight_bar(figure, image, axes, source, sinks)


def _heat(
    axes: Axes,
    values: Any,
    source: Sequence[Token],
    target: Sequence[Token],
    columns: Collection[int],
    lines: Collection[int],
    largest: float,
    sinks: Collection[int],
) -> Any:
    """One matrix. columns, lines: those of the followed word; they and what looks at it most are named in colour."""
    own = own_tokens(source, sinks)
    image = paint_weights(axes, values, own, largest)
    write_weights(axes, values, own, largest)
    # framed: what looks most at the followed word of the text, and where that of the target looks most
    peaks = {(int(values[:, j].argmax()), j) for j in columns}
    peaks |= {(i, int(values[i].argmax())) for i in lines if 0 <= i < len(values)}
    for which, tokens, marked in (("x", source, columns), ("y", target, {*lines, *(i for i, _ in peaks)})):
        places, labels, size = token_names_on_axis(tokens)
        if which == "x":
            axes.set_xticks(places, labels, rotation=50, ha="right", rotation_mode="anchor", fontsize=size + 1)
        else:
            axes.set_yticks(places, labels, fontsize=size + 1)
        mark_names(axes, which, tokens, marked, sinks if which == "x" else ())
    bare(axes)
    for i, j in peaks:
        frame(axes, i, j)
    return image


def _strip(figure: FigureBase, place: Any, summary: Summary, alignment: Alignment, start: int) -> None:
    """Every layer's matrix, small: a row reads a target token and writes the next."""
    shown = range(start, min(start + ACROSS, len(alignment.weights)))
    width = min(ACROSS, max(6, len(alignment.weights)))
    parts = place.subgridspec(1, width)
    source, label = summary.tokens[alignment.text], summary.labels[alignment.text]
    sinks = {sink.token for sink in alignment.sinks}
    own = own_tokens(source, sinks)
    largest = max(largest_own(np.array(each), own) for each in alignment.weights)
    for column, n in enumerate(shown):
        axes, layer = figure.add_subplot(parts[column]), alignment.layers[n]
        values = np.array(alignment.weights[n])
        paint_weights(axes, values, own, largest)
        axes.set_xticks([])
        axes.set_yticks([])
        roles = [
            name
            for name, chosen in (("written", alignment.written_layer), ("read", alignment.read_layer))
            if layer == chosen
        ]
        bare(axes, "black" if roles else "#cccccc")
        title = f"layer {layer}" + (f": {', '.join(roles)}" if roles else "")
        axes.set_title(title, fontsize=8, color="black" if roles else "#777777")
        if column == 0:
            axes.set_ylabel(f"text {label}, every row", fontsize=7, color="#777777")
