"""Pictures of a summary: what the layer and heads that say most about a word show, and its path through the layers."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase

from regard.explain.matrices.matrix import matrix
from regard.explain.texts.summary import Occurrence, Summary
from regard.explain.weights.attended import check_heads
from regard.explain.weights.specific_weights import SpecificWeight, choose_layer, most_specific, specific_weights
from regard.trace.layer_subset import kept_numbers
from regard.trace.trace import Trace
from regard.views.choice import why
from regard.views.figures import alignment, movement, predictions, static_words
from regard.views.figures import matrix as long_text
from regard.views.figures.elements import canvas
from regard.views.figures.elements.arcs import Link, draw_arcs
from regard.views.figures.elements.canvas import LABELS, mark_names, names, whose, write
from regard.views.figures.elements.heads_grid import paint_grid, stacked
from regard.views.figures.elements.weight_cells import (
    bare,
    frame,
    own_tokens,
    paint_weights,
    weight_bar,
    write_weights,
)
from regard.views.figures.elements.word_heads import WordRows, strip_rows
from regard.views.terminal.layout import short, spelled

WIDE = 13.0  # inches
OCCURRENCES = 8  # of a word in one text that are drawn
LINKS = 14  # of a word in a long text that are drawn as arcs
Large = tuple[Occurrence, SpecificWeight | None]  # an occurrence that is drawn large, and what is framed in it
Rows = list[tuple[float, Any]]  # height in inches, and what draws the row into its part of the grid


@dataclass(frozen=True)
class Choice:
    """What is drawn large of a text. best: of each of its words (or of the whole text), what made it the choice."""

    layer: int
    head: int | None
    best: list[SpecificWeight | None]


def draw(
    summary: Summary, traces: Sequence[Any], file: Path, *, layer: int | None = None, head: int | None = None
) -> list[str]:
    """Write one picture of a summary, PNG or SVG by the file's ending, whole or not at all.

    Of a followed word, for each text: the matrix of the head that says most about it (`specific_weights`), what the
    word gives each token in that head's layer, a row a head, and small every other layer; of a long text arcs over it
    in the place of the matrix. Without a word: the matrix of the head that says most about all of them, beside all
    heads of all layers; of a long text what `regard map` draws. layer, head: show these. Then what a language model
    says next, what each layer would say, and the word's path through all layers. Of an encoder-decoder, for each text
    and its target the cross-attention between them in the place of the matrices and of the path.

    traces: those that the summary is of. Returns notes on what the picture could not show: characters that no installed
    font has, occurrences beyond the first eight of a text.
    """
    figure, few = _paint(summary, traces, layer, head)
    return [*few, *write(figure, file)]


def paint(summary: Summary, traces: Sequence[Any], *, layer: int | None = None, head: int | None = None) -> Figure:
    """The picture as a figure, which says itself where not all occurrences are drawn."""
    figure, _ = _paint(summary, traces, layer, head)
    return figure


def _paint(summary: Summary, traces: Sequence[Any], layer: int | None, head: int | None) -> tuple[Figure, list[str]]:
    """The picture, and notes on the occurrences that are not drawn large."""
    sides = [summary] if summary.target is None else [summary, summary.target.summary]
    rows: Rows = []
    large: list[list[Large]] = []
    few: list[str] = []
    if summary.target is None:
        if kept_numbers(traces[0].attention):
            chosen = choices(summary, traces, layer, head)
            large = drawn_large(summary, chosen)
            few = not_all(summary, large)
            rows += [(0.3, lambda figure, place, note=note: _note(figure, place, note)) for note in few]
            rows += text_rows(summary, traces, chosen, large, layer, head)
    else:
        rows += [row for each in summary.target.alignments for row in alignment.rows(summary, each)]
    for side in sides:
        rows += predictions.rows(side)
    if summary.target is None and summary.movement:
        rows.append(movement.row(summary, [occurrence.label for text in large for occurrence, _ in text]))
    if summary.static is not None:
        rows.append((4.4, lambda figure, place: static_words.paint(figure, place, summary.static)))
    return canvas.stack(rows, WIDE), few


def choices(summary: Summary, traces: Sequence[Trace], layer: int | None, head: int | None) -> list[Choice]:
    """What to draw large of each text: one layer for a word's texts, so that they compare; else each text its own."""
    layer, head = check_heads(traces[0], layer, head)
    layers = None if layer is None else [layer]
    words = [[o.tokens for o in summary.occurrences if o.text == n] for n in range(len(traces))]
    found = [
        specific_weights(
            trace, words[n] if summary.occurrences else None, [sink.token for sink in summary.sinks[n]],
            layers=layers, head=head,
        )
        for n, trace in enumerate(traces)
    ]  # fmt: skip
    first = kept_numbers(traces[0].attention)[0]
    together = choose_layer(found)
    made = []
    for n, text in enumerate(found):
        best = most_specific(text)
        shown = layer
        if shown is None:
            shown = together if summary.occurrences else best.layer if best is not None else None
        shown = first if shown is None else shown
        here = [each for weights in text for each in weights if each.layer == shown]
        of_words = [next((w for w in here if list(w.queries) == tokens), None) for tokens in words[n]]
        if summary.occurrences:
            best = max((each for each in of_words if each is not None), key=lambda each: each.divergence, default=None)
        own = head if head is not None or best is None else best.head
        made.append(Choice(shown, own, of_words if summary.occurrences else [best]))
    return made


def drawn_large(summary: Summary, chosen: Sequence[Choice]) -> list[list[Large]]:
    """The occurrences of each text that are drawn large, with what is framed in each.

    The first eight of a text; of texts that were read in windows the eight in all whose words say most.
    """
    every = [
        list(zip([o for o in summary.occurrences if o.text == n], each.best, strict=True))
        for n, each in enumerate(chosen)
    ] if summary.occurrences else [[] for _ in chosen]  # fmt: skip
    if not summary.windows:
        return [text[:OCCURRENCES] for text in every]
    told = sorted((large for text in every for large in text), key=lambda large: -_divergence(large[1]))
    labels = {occurrence.label for occurrence, _ in told[:OCCURRENCES]}
    return [[large for large in text if large[0].label in labels] for text in every]


def not_all(summary: Summary, large: Sequence[Sequence[Large]]) -> list[str]:
    """Sentences on the occurrences that are not drawn large."""
    if summary.windows:
        shown, count = sum(map(len, large)), len(summary.occurrences)
        which = f"{shown} of {count} occurrences are drawn large, those whose attention says most about them"
        return [which] if shown < count else []
    counts = [sum(o.text == n for o in summary.occurrences) for n in range(len(summary.texts))]
    return [f"text {summary.labels[n]}: the first {OCCURRENCES} of {count} occurrences are drawn large"
            for n, count in enumerate(counts) if count > OCCURRENCES]  # fmt: skip


def _divergence(best: SpecificWeight | None) -> float:
    return 0.0 if best is None else best.divergence


def _note(figure: FigureBase, place: Any, note: str) -> None:
    axes = figure.add_subplot(place)
    axes.set_axis_off()
    axes.text(0.5, 0.5, note[0].upper() + note[1:], ha="center", va="center", fontsize=9.5)


def text_rows(
    summary: Summary, traces: Sequence[Trace], choice: Sequence[Choice], large: Sequence[Sequence[Large]],
    layer: int | None, head: int | None,
) -> Rows:  # fmt: skip
    """The rows about the attention of each text; of layers whose keys are not its tokens there is nothing to draw."""
    rows: Rows = []
    for number, (chosen, mine) in enumerate(zip(choice, large, strict=True)):
        trace = traces[number]
        if trace.attention[chosen.layer].shape[2] != len(trace.tokens):
            continue
        if summary.occurrences:
            rows += _word_rows(summary, trace, number, mine, chosen, layer, head) if mine else []
        elif len(trace.tokens) > LABELS:
            best = reason_of(chosen)
            reason = "" if best is None else why(best, trace.tokens, layer is not None and head is not None)
            whole = matrix(trace, chosen.layer, chosen.head)
            rows += long_text.rows(whole, f"Text {summary.labels[number]}: ", reason)
        else:
            rows.append(_overview_row(summary, trace, number, chosen, layer is not None and head is not None))
    return rows


def _word_rows(
    summary: Summary, trace: Trace, number: int, mine: Sequence[Large], chosen: Choice, layer: int | None,
    head: int | None,
) -> Rows:  # fmt: skip
    """A text in which a word is followed: its matrix (or arcs) beside the word's rows, and small every layer."""
    each = [WordRows(summary, trace, occurrence, best) for occurrence, best in mine]
    height = min(8.0, max(4.6, 1.9 + 0.22 * min(len(trace.tokens), LABELS),
                          1.6 + 0.17 * trace.attention[chosen.layer].shape[0]))  # fmt: skip

    asked = layer is not None and head is not None

    def first(figure: FigureBase, place: Any) -> None:
        parts = place.subgridspec(1, 2)
        axes = figure.add_subplot(parts[0])
        if len(trace.tokens) > LABELS:
            _arcs(axes, summary, each[0], chosen, asked, (WIDE / 2 - 0.3, height - 1))
        else:
            _matrix(axes, summary, trace, number, chosen, asked)
        each[0].large(figure, figure.add_subplot(parts[1]), chosen.layer, head)

    rows: Rows = [(height, first), *strip_rows(each[0], chosen.layer)]
    for one in each[1:]:

        def more(figure: FigureBase, place: Any, one: WordRows = one) -> None:
            parts = place.subgridspec(1, 2)
            one.grid(figure, parts[0], chosen.layer)
            one.large(figure, figure.add_subplot(parts[1]), chosen.layer, head)

        rows.append((height, more))
    return rows


def _overview_row(summary: Summary, trace: Trace, number: int, chosen: Choice, asked: bool) -> tuple[float, Any]:
    """A short text in which no word is followed: one head's matrix beside all heads of all layers."""
    sinks = {sink.token for sink in summary.sinks[number]}

    def put(figure: FigureBase, place: Any) -> None:
        parts = place.subgridspec(1, 2)
        _matrix(figure.add_subplot(parts[0]), summary, trace, number, chosen, asked)
        axes, layers = figure.add_subplot(parts[1]), stacked(trace)
        if not layers:
            axes.set_axis_off()
            return
        own = own_tokens(trace.tokens, sinks)
        framed = None if chosen.head is None else (chosen.layer, chosen.head)
        image = paint_grid(axes, layers, own, framed)
        axes.set_title(f"Text {summary.labels[number]}: the matrix of every head; framed: the one on the left",
                       fontsize=10)  # fmt: skip
        weight_bar(figure, image, axes, trace.tokens, sinks)

    return min(8.0, max(4.8, 1.9 + 0.22 * len(trace.tokens))), put


def _matrix(axes: Axes, summary: Summary, trace: Trace, number: int, chosen: Choice, asked: bool) -> None:
    """The attention matrix of one head (or the mean of heads), tokens on both axes; above it, why this head."""
    weights = trace.attention[chosen.layer]
    shown = weights.dense().mean(0) if chosen.head is None else weights[chosen.head]
    values = shown.cpu().double().numpy()
    sinks = {sink.token for sink in summary.sinks[number]}
    own = own_tokens(trace.tokens, sinks)
    paint_weights(axes, values, own)
    write_weights(axes, values, own)
    places, labels, size = names(trace.tokens)
    followed = {n for o in summary.occurrences if o.text == number for n in o.tokens}
    axes.set_xticks(places, labels, rotation=50, ha="right", rotation_mode="anchor", fontsize=size)
    mark_names(axes, "x", trace.tokens, followed, sinks)
    axes.set_yticks(places, labels, fontsize=size)
    mark_names(axes, "y", trace.tokens, followed, sinks)
    axes.set_xlabel("attended to (key)", fontsize=8)
    axes.set_ylabel("attending (query)", fontsize=8)
    title = f"Text {summary.labels[number]}: attention weights of {whose(chosen.layer, chosen.head)}"
    best = reason_of(chosen)
    for each in chosen.best:
        if each is not None and each.head == chosen.head:
            frame(axes, max(each.queries, key=lambda query: values[query, each.key]), each.key)
    axes.set_title(title if best is None else f"{title}\n{why(best, trace.tokens, asked)}", fontsize=9.5)
    bare(axes)


def reason_of(chosen: Choice) -> SpecificWeight | None:
    """The largest divergence in the head that is drawn."""
    here = [each for each in chosen.best if each is not None and each.head == chosen.head]
    return max(here, key=lambda each: each.divergence, default=None)


def _arcs(
    axes: Axes, summary: Summary, rows: WordRows, chosen: Choice, asked: bool, inches: tuple[float, float]
) -> None:
    """A long text as a line, with arcs from the word to the tokens that any head of the layer gives most."""
    trace, occurrence = rows.trace, rows.occurrence
    most = rows.layers[chosen.layer].max(0).copy()
    most[[n for n, token in enumerate(trace.tokens) if token.special or n in rows.sinks or n in occurrence.tokens]] = 0
    keys = [int(n) for n in np.argsort(-most, kind="stable")[:LINKS] if most[n] > 0]
    start = occurrence.tokens[0]
    named = {n: f"{spelled(trace.tokens[n].text, 12)} {n}" for n in [*keys, start]}
    draw_arcs(axes, [Link(start, n, float(most[n])) for n in keys], len(trace.tokens), named, inches, start)
    axes.set_xlabel(f"the {len(trace.tokens):,} tokens of the text", fontsize=8)
    axes.tick_params(labelsize=7)
    label = f" ({occurrence.label})" if len(summary.occurrences) > 1 else ""
    title = f"Where “{short(occurrence.word)}”{label} looks in layer {chosen.layer}: the {len(keys)} tokens"
    title += " that a head gives most"
    if keys:
        title += f" ({most[keys[-1]]:.2f} to {most[keys[0]]:.2f})"
    best = reason_of(chosen)
    axes.set_title(title if best is None else f"{title}\nhead {best.head} {why(best, trace.tokens, asked)}", fontsize=9)
