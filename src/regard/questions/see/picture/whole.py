"""Pictures of a summary: what the layer and heads that say most about a word show, and its path through the layers."""

import textwrap
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase

from regard.display.elements import canvas
from regard.display.elements.arcs import Link, draw_arcs
from regard.display.elements.canvas import LABELS, Row, mark_names, name_of_drawn_weights, token_names_on_axis
from regard.display.elements.weight_cells import bare, frame, largest_own, paint_weights, weight_bar, write_weights
from regard.display.figure import drawn
from regard.display.panels import Panel
from regard.explain.texts.summary import Summary
from regard.explain.weights.alignment import Alignment
from regard.explain.weights.sinks import own_tokens
from regard.explain.wording import number, numbered
from regard.questions.lens import cells
from regard.questions.map import picture as long_text
from regard.questions.map.whole import matrix
from regard.questions.movement.sentences import way_panels
from regard.questions.see.panels import likeliest_tokens_seen
from regard.questions.see.picture.heads import (
    Choice,
    Large,
    WordRows,
    choices,
    drawn_large,
    not_all,
    paint_grid,
    reason_of,
    stacked_heads_of_layers,
    strip_rows,
)
from regard.questions.see.word_panels import static_picture
from regard.text.quoting import quoted, short, spelled, visible
from regard.text.tokens import Token
from regard.text.word_pieces import spelling
from regard.trace.layer_subset import kept_numbers
from regard.trace.trace import Trace

LAYERS_ACROSS = 12  # small pictures side by side


def alignment_rows(summary: Summary, alignment: Alignment) -> list[Row]:
    """The rows that show one text and its target."""
    layers = len(alignment.weights)
    length = len(alignment.tokens)
    small = [
        Row(1.75, lambda figure, place, start=start: _strip(figure, place, summary, alignment, start))
        for start in range(0, layers, LAYERS_ACROSS)
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
    shown = range(start, min(start + LAYERS_ACROSS, len(alignment.weights)))
    width = min(LAYERS_ACROSS, max(6, len(alignment.weights)))
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


WIDE = 13.0  # inches
ACROSS = 3  # panels side by side
TITLE = 86  # characters of a line above half of the picture
LINKS = 14  # of a word in a long text that are drawn as arcs
Rows = list[Row]


def paint_seen(
    summary: Summary, traces: Sequence[Any], layer: int | None = None, head: int | None = None
) -> tuple[Figure, list[str]]:
    """Draw one picture of a summary; it says itself where not all occurrences are drawn.

    For a followed word, each text has the matrix of the head that the sentences name (`Occurrence.link`), the word's
    weights in that head's layer with one row per head, and every other layer in small. A long text has arcs instead of
    the matrix. Without a word: the matrix of the head with the most distinctive link next to all heads of all layers,
    or for a long text what `regard map` draws. layer, head: show these. Then the model's predictions, those of each
    layer, and the word's path through all layers. For an encoder-decoder the cross-attention between each text and its
    target is drawn instead of the matrices and the path.

    traces: those that the summary is of. Returns notes as well, on the occurrences beyond the first eight of a text,
    which are not drawn large.
    """
    sides = [summary] if summary.target is None else [summary, summary.target.summary]
    rows: Rows = []
    large: list[list[Large]] = []
    few: list[str] = []
    if summary.target is None:
        if kept_numbers(traces[0].attention):
            chosen = choices(summary, traces, layer, head)
            large = drawn_large(summary, chosen)
            few = not_all(summary, large)
            rows += [Row(0.3, lambda figure, place, note=note: _note(figure, place, note)) for note in few]
            rows += text_rows(summary, traces, chosen, large, layer, head)
    else:
        rows += [row for each in summary.target.alignments for row in alignment_rows(summary, each)]
    for side in sides:
        rows += _beside(likeliest_tokens_seen(side), 1.12)
        rows += _beside([cells(each, side, "") for each in side.logit_lenses])
    if summary.target is None and summary.movement:
        for way in way_panels(summary, [occurrence.label for text in large for occurrence, _ in text]):
            rows += _beside(way)
    if summary.static is not None:
        rows += _beside(static_picture(summary.static))
    return canvas.stack_rows_in_figure(rows, WIDE), few


def _beside(panels: Sequence[Panel], most: float | None = None) -> Rows:
    """Panels side by side, three in a row. most: where the axis of all bars ends."""
    rows: Rows = []
    columns = min(ACROSS, max(2, len(panels)))
    for start in range(0, len(panels), ACROSS):
        some = [(panel, drawn(panel, True)) for panel in panels[start : start + ACROSS]]
        high = max(drawing.high for _, drawing in some)

        def put(figure: FigureBase, place: Any, some: Any = some, high: float = high) -> None:
            parts = place.subgridspec(1, columns)
            for column, (panel, drawing) in enumerate(some):
                room = high - drawing.high  # below it
                cell = parts[column].subgridspec(2, 1, height_ratios=(drawing.high, room))[0] if room else parts[column]
                axes = figure.add_subplot(cell)
                drawing.paint(axes)
                lines = (
                    textwrap.wrap(visible(text), 12 * int(WIDE / columns)) for text in (panel.title, panel.caption)
                )
                axes.set_title("\n".join(line for each in lines for line in each), fontsize=9, loc="left")
                if most:  # probabilities
                    axes.set(xlim=(0, most), xticks=(0, 0.5, 1))

        rows.append(Row(high, put))
    return rows


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
    for text, (chosen, mine) in enumerate(zip(choice, large, strict=True)):
        trace = traces[text]
        if trace.attention[chosen.layer].shape[2] != len(trace.tokens):
            continue
        if summary.occurrences:
            rows += _word_rows(summary, trace, text, mine, chosen, layer, head) if mine else []
        elif len(trace.tokens) > LABELS:
            reason = _link_reason(chosen, trace)
            whole = matrix(trace, chosen.layer, chosen.head)
            rows += long_text.map_rows(whole, f"Text {summary.labels[text]}: ", reason)
        else:
            rows.append(_overview_row(summary, trace, text, chosen))
    return rows


def _word_rows(
    summary: Summary, trace: Trace, number: int, mine: Sequence[Large], chosen: Choice, layer: int | None,
    head: int | None,
) -> Rows:  # fmt: skip
    """A text in which a word is followed: its matrix (or arcs) beside the word's rows, and small every layer."""
    each = [WordRows(summary, trace, occurrence, best) for occurrence, best in mine]
    height = min(8.0, max(4.6, 1.9 + 0.22 * min(len(trace.tokens), LABELS),
                          1.6 + 0.17 * trace.attention[chosen.layer].shape[0]))  # fmt: skip

    def first(figure: FigureBase, place: Any) -> None:
        parts = place.subgridspec(1, 2)
        axes = figure.add_subplot(parts[0])
        if len(trace.tokens) > LABELS:
            _arcs(
                axes, summary, each[0], chosen, _word_reason(trace, chosen, layer, head), (WIDE / 2 - 0.3, height - 1)
            )
        else:
            framed = _framed(trace, chosen)
            _matrix(axes, summary, trace, number, chosen, [_word_reason(trace, chosen, layer, head)], framed)
        each[0].large(figure, figure.add_subplot(parts[1]), chosen.layer, head)

    rows: Rows = [Row(height, first), *strip_rows(each[0], chosen.layer)]
    for one in each[1:]:

        def more(figure: FigureBase, place: Any, one: WordRows = one) -> None:
            parts = place.subgridspec(1, 2)
            one.grid(figure, parts[0], chosen.layer)
            one.large(figure, figure.add_subplot(parts[1]), chosen.layer, head)

        rows.append(Row(height, more))
    return rows


def _word_reason(trace: Trace, chosen: Choice, layer: int | None, head: int | None) -> str:
    """Name the weight for which a layer and head are drawn of a text in which a word is followed."""
    best = reason_of(chosen)
    if best is None:
        return ""
    word = quoted(short(spelling(trace.tokens, best.queries)))
    most = "most distinctively " if layer is None or head is None else ""
    return f"{word} attends {most}to {numbered(trace.tokens, best.key)} ({number(best.weight)})"


def _link_reason(chosen: Choice, trace: Trace) -> str:
    """Name the link for which a layer and head are drawn of a text in which no word is followed."""
    link = chosen.link
    if link is None:
        return ""
    query, key = (numbered(trace.tokens, n) for n in (link.query, link.key))
    return f"{query} attends distinctively to {key} ({number(link.weight)})"


def _framed(trace: Trace, chosen: Choice) -> list[tuple[int, int]]:
    """The cells of the drawn head that made the choice: of each word the query that gives the key most."""
    cells = []
    for each in chosen.best:
        if each is not None and each.head == chosen.head:
            row = trace.attention[chosen.layer][each.head, list(each.queries)]
            cells.append((each.queries[int(row[:, each.key].argmax())], each.key))
    return cells


def _overview_row(summary: Summary, trace: Trace, number: int, chosen: Choice) -> Row:
    """A short text in which no word is followed: one head's matrix beside all heads of all layers."""
    sinks = {sink.token for sink in summary.sinks[number]}
    said = [_link_reason(chosen, trace)]
    framed_cells = [] if chosen.link is None else [(chosen.link.query, chosen.link.key)]

    def put(figure: FigureBase, place: Any) -> None:
        parts = place.subgridspec(1, 2)
        _matrix(figure.add_subplot(parts[0]), summary, trace, number, chosen, said, framed_cells)
        axes, layers = figure.add_subplot(parts[1]), stacked_heads_of_layers(trace)
        if not layers:
            axes.set_axis_off()
            return
        shown = own_tokens(trace.tokens, sinks)
        framed = None if chosen.head is None else (chosen.layer, chosen.head)
        image = paint_grid(axes, layers, shown, framed)
        axes.set_title(f"Text {summary.labels[number]}: all heads (frame: the head on the left)",
                       fontsize=10)  # fmt: skip
        weight_bar(figure, image, axes, trace.tokens, sinks)

    return Row(min(8.0, max(4.8, 1.9 + 0.22 * len(trace.tokens))), put)


def _matrix(
    axes: Axes, summary: Summary, trace: Trace, number: int, chosen: Choice, said: Sequence[str],
    framed: Sequence[tuple[int, int]],
) -> None:  # fmt: skip
    """The attention matrix of one head (or the mean of heads), tokens on both axes; above it, why this head.

    framed: the cells that get a frame, as (query, key).
    """
    weights = trace.attention[chosen.layer]
    shown = weights.dense().mean(0) if chosen.head is None else weights[chosen.head]
    values = shown.cpu().double().numpy()
    sinks = {sink.token for sink in summary.sinks[number]}
    own = own_tokens(trace.tokens, sinks)
    paint_weights(axes, values, own)
    write_weights(axes, values, own)
    places, labels, size = token_names_on_axis(trace.tokens)
    followed = {n for o in summary.occurrences if o.text == number for n in o.tokens}
    axes.set_xticks(places, labels, rotation=50, ha="right", rotation_mode="anchor", fontsize=size)
    mark_names(axes, "x", trace.tokens, followed, sinks)
    axes.set_yticks(places, labels, fontsize=size)
    mark_names(axes, "y", trace.tokens, followed, sinks)
    axes.set_xlabel("attended to (key)", fontsize=8)
    axes.set_ylabel("attending (query)", fontsize=8)
    title = f"Text {summary.labels[number]}: attention weights of {name_of_drawn_weights(chosen.layer, chosen.head)}"
    for query, key in framed:
        frame(axes, query, key)
    axes.set_title(_wrapped(title, *said), fontsize=9.5)
    bare(axes)


def _arcs(axes: Axes, summary: Summary, rows: WordRows, chosen: Choice, said: str, inches: tuple[float, float]) -> None:
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
    title = (
        f"Attention from {quoted(short(occurrence.word))}{label} in layer {chosen.layer}: the {len(keys)} other tokens"
    )
    title += " with the largest weight in a head"
    if keys:
        title += f" ({number(most[keys[-1]])} to {number(most[keys[0]])})"
    lines = [title, *([f"head {chosen.head}: {said}"] if said else [])]
    axes.set_title(_wrapped(*lines), fontsize=9)


def _wrapped(*lines: str) -> str:
    """Lines no longer than half of the picture is wide."""
    return "\n".join(part for line in lines for part in textwrap.wrap(line, TITLE))
