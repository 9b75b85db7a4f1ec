"""Pictures of a summary: the attention matrix, lines from a word to what it attends to, its path through the layers."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from torch import Tensor

from regard.explain.attended import check_heads
from regard.explain.summary import Summary
from regard.trace.layer_subset import kept_numbers
from regard.trace.trace import Trace, gives
from regard.views.figures import alignment, movement, predictions, static_words
from regard.views.figures.canvas import DASHES, HEADS, LABELS, NAMED, SPECIAL, mark_names, names, spread, whose, write
from regard.views.terminal.layout import short, spelled


def draw(
    summary: Summary, traces: Sequence[Any], file: Path, *, layer: int | None = None, head: int | None = None
) -> list[str]:
    """Write one picture of a summary, PNG or SVG by the file's ending, whole or not at all.

    For each text the attention matrix (of layer, the first where none is given; of head, or the mean of heads) and,
    where a word is followed, lines from it to what each head attends to; then what a language model says next, what
    each layer would say, and the word's path through all layers. Of an encoder-decoder, for each text and its target
    the cross-attention between them in the place of the matrices and of the path.

    traces: those that the summary is of. Returns notes on what the picture could not show: characters that no installed
    font has.
    """
    sides = [summary] if summary.target is None else [summary, summary.target.summary]
    rows: list[tuple[float, Any]] = []  # height in inches, and what draws the row into its part of the grid
    if summary.target is None:
        rows += _matrix_rows(summary, traces, layer, head)
    else:
        rows += [row for each in summary.target.alignments for row in alignment.rows(summary, each)]
    for side in sides:
        rows += predictions.rows(side)
    if summary.target is None and summary.movement:
        rows.append(movement.row(summary))
    if summary.static is not None:
        rows.append((4.4, lambda figure, place: static_words.paint(figure, place, summary.static)))
    wide = bool(summary.occurrences) or summary.target is not None
    figure = Figure(figsize=(13 if wide else 8.5, sum(height for height, _ in rows)), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(len(rows), 1, height_ratios=[height for height, _ in rows])
    for number, (_, paint) in enumerate(rows):
        paint(figure, grid[number, 0])
    return write(figure, file)


def _matrix_rows(
    summary: Summary, traces: Sequence[Trace], layer: int | None, head: int | None
) -> list[tuple[float, Any]]:
    layer, head = check_heads(traces[0], layer, head)
    layer = kept_numbers(traces[0].attention)[0] if layer is None else layer
    shown = [t.attention[layer].dense().mean(0) if head is None else t.attention[layer][head] for t in traces]
    sinks = [{sink.token for sink in each} for each in summary.sinks]
    largest = max(_largest(*each) for each in zip(shown, traces, sinks, strict=True))

    def paint(figure: Figure, place: Any, number: int) -> None:
        parts = place.subgridspec(1, 2 if summary.occurrences else 1)
        title = f"Text {summary.labels[number]}: attention weights, {whose(layer, head)}"
        _matrix(figure, figure.add_subplot(parts[0]), shown[number], traces[number], title, largest, sinks[number])
        if summary.occurrences:
            _lines(figure.add_subplot(parts[1]), summary, number, traces[number], layer, head)

    return [
        (_height(len(tokens)), lambda figure, place, number=number: paint(figure, place, number))
        for number, tokens in enumerate(summary.tokens)
    ]


def _matrix(
    figure: Figure,
    axes: Axes,
    matrix: Float[Tensor, "L L"],
    trace: Trace,
    title: str,
    largest: float,
    sinks: Collection[int],
) -> None:
    """The attention matrix with the tokens on both axes, in colours that end at the largest weight given."""
    values = matrix.cpu().numpy()
    image = axes.imshow(values, cmap="cividis", vmin=0, vmax=largest, aspect="equal", interpolation="nearest")
    places, labels, size = names(trace.tokens)
    axes.set_xticks(places, labels, rotation=90, fontsize=size)
    axes.set_yticks(places, labels, fontsize=size)
    mark_names(axes, "x", trace.tokens, sinks=sinks)
    mark_names(axes, "y", trace.tokens, sinks=sinks)
    axes.set_xlabel("attended to (key)", fontsize=8)
    axes.set_ylabel("attending (query)", fontsize=8)
    axes.set_title(title, fontsize=10)
    above = values.max() > largest * 1.0001  # special tokens and sinks may: the last colour, and a label at the bar
    bar = figure.colorbar(image, ax=axes, fraction=0.046, pad=0.03, extend="max" if above else "neither")
    bar.ax.tick_params(labelsize=7)
    if above:
        kinds = [name for name, some in _apart(trace, sinks) if some and values[:, some].max() > largest * 1.0001]
        bar.set_label(f"{' and '.join(kinds)} take up to {values.max():.2f}", fontsize=7)


def _lines(axes: Axes, summary: Summary, number: int, trace: Trace, layer: int, head: int | None) -> None:
    """From each occurrence of the word a line to every token, one colour a head, as wide as the weight."""
    tokens = trace.tokens
    mine = [o for o in summary.occurrences if o.text == number]
    sinks = {sink.token for sink in summary.sinks[number]}
    heads = list(range(trace.attention[layer].shape[0])) if head is None else [head]
    axes.set_axis_off()
    axes.set_ylim(len(tokens) - 0.5, -0.5)
    axes.set_xlim(-0.15, 1.3)
    size = 9 if len(tokens) <= 24 else 7
    rows = [gives(trace.attention[layer], occurrence.as_word()).cpu() for occurrence in mine]
    strongest = torch.stack(rows).amax((0, 1)).argsort(descending=True)[:NAMED].tolist()
    named = set(strongest) if len(tokens) > LABELS else set(range(len(tokens)))
    gap = 1.3 * size / 72 / (0.8 * _height(len(tokens))) * len(tokens)  # of a line of text, in tokens
    for place, at in zip(sorted(named), spread(sorted(named), gap, len(tokens) - 0.5), strict=True):
        token, own = tokens[place], any(place in o.tokens for o in mine)
        colour = SPECIAL if token.special or place in sinks else "black"
        weight = "bold" if own else "normal"
        if at != place:
            axes.plot([1.005, 1.028], [place, at], color="#bbbbbb", linewidth=0.5)
        name = spelled(token.text) + (" (sink)" if place in sinks else "")
        axes.text(1.03, at, name, va="center", fontsize=size, color=colour, fontweight=weight)
    for nth, occurrence in enumerate(mine):
        start = (nth + 0.5) / len(mine) * len(tokens) - 0.5
        name = short(occurrence.word) + (f"  {occurrence.label}" if len(mine) > 1 else "")
        axes.text(-0.03, start, name, va="center", ha="right", fontsize=11, fontweight="bold")
        for h in heads:
            shift = (heads.index(h) + 0.5) / len(heads) * 0.6 - 0.3  # lines of one token stand side by side
            weights = rows[nth][h].tolist()
            style = DASHES[h // len(HEADS) % len(DASHES)]
            ends = [[(0.0, start), (1.0, place + shift)] for place in range(len(weights))]
            widths = [6 * weight for weight in weights]
            faint = [min(1.0, 0.25 + weight) for weight in weights]
            axes.add_collection(
                LineCollection(ends, colors=HEADS[h % len(HEADS)], linewidths=widths, alpha=faint, linestyles=style)
            )
    marks = [Line2D([], [], color=HEADS[h % len(HEADS)], linewidth=3, label=str(h)) for h in heads]
    axes.legend(handles=marks, title="head", ncols=max(1, -(-len(marks) // 12)), loc="center left",
                bbox_to_anchor=(1.0, 0.5), fontsize=7, title_fontsize=7, frameon=False)  # fmt: skip
    shown_heads = whose(layer, head, "all heads") + (f", {NAMED} strongest named" if len(tokens) > LABELS else "")
    axes.set_title(
        f"Text {summary.labels[number]}: what {_quoted(summary)} attends to, {shown_heads}; width: weight", fontsize=10
    )


def _largest(matrix: Float[Tensor, "L L"], trace: Trace, sinks: Collection[int]) -> float:
    """The largest weight on a token that is neither special nor a sink: what the colours are for."""
    own = [n for n, token in enumerate(trace.tokens) if not token.special and n not in sinks]
    return max(float(matrix[:, own].max()) if own else 0.0, 1e-6)


def _apart(trace: Trace, sinks: Collection[int]) -> list[tuple[str, list[int]]]:
    """The kinds of tokens that the colours are not for, and which these are."""
    special = [n for n, token in enumerate(trace.tokens) if token.special]
    return [("special tokens", special), ("attention sinks", sorted(sinks))]


def _quoted(summary: Summary) -> str:
    return f"“{short(summary.word or '')}”"


def _height(tokens: int) -> float:
    """Inches for a text's row of pictures."""
    return min(8.0, max(4.6, 1.6 + 0.21 * tokens))
