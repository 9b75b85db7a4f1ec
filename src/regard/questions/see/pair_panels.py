"""The tables of an encoder-decoder's cross-attention: where targets look in texts, and what looks at a word of them."""

from collections.abc import Sequence

from regard.display.panels import Cell, Column, Panel, Shares, Table
from regard.explain.texts.summary import Summary, Target
from regard.explain.weights.alignment import Alignment, why_these_layers
from regard.explain.weights.attended import Attended
from regard.explain.wording import called, capital, listed, number, quoted
from regard.text.tokens import Token

TEXTS = 2  # whose table stands on a first screen


def looks(alignment: Alignment, summary: Summary, screen: bool) -> Panel:
    """Each target token and the source tokens it comes from."""
    label, source = summary.labels[alignment.text], summary.tokens[alignment.text]
    whose = "" if alignment.head is None else f", head {alignment.head}"
    rows: list[list[Cell]] = [
        [each.text, None if each.written is None else _largest(each.written, source, 2), _largest(each.read, source, 2)]
        for each in alignment.tokens
    ]
    one = alignment.written_layer == alignment.read_layer
    agree = "one layer, both rows" if one else why_these_layers(alignment, len(summary.tokens))
    note = f"A token is written by the row that predicts it, and read by its own row. {capital(agree)}. "
    note += f"{_note_on_marked_looks(bool(alignment.sinks))}."
    if alignment.sinks:
        sinks = [f"{quoted(sink.text)} ({sink.token}) {number(sink.share)}" for sink in alignment.sinks]
        note += f" Attention sinks with their mean weight: {listed(sinks)}."
    columns = [
        Column("target"),
        Column(f"as it is written (layer {alignment.written_layer}{whose})"),
        Column(f"as it is read (layer {alignment.read_layer}{whose})"),
    ]
    title = f"Cross-attention from target {label} to text {label}"
    return Table(name=f"Alignment, text {label}", title=title, note=note, columns=columns, rows=rows, screen=screen)


def _note_on_marked_looks(sinks: bool) -> str:
    return f"*: special tokens{' and sinks' * sinks} receive more than half"


def across(summary: Summary, target: Target) -> list[Panel]:
    """The followed word and the other side, layer by layer."""
    other = target.summary
    looked = [
        (f"Target tokens that attend to {quoted(own.word)} of text {each.occurrence}", each, other.tokens[own.text])
        for each, own in zip(target.to_words, summary.occurrences, strict=True)
    ] + [
        (f"Attention from {quoted(own.word)} of target {each.occurrence} to the text", each, summary.tokens[own.text])
        for each, own in zip(target.of_words, other.occurrences, strict=True)
    ]
    panels: list[Panel] = []
    for title, each, tokens in looked:
        rows: list[list[Cell]] = [
            [str(read.layer), _largest(each.written[n], tokens) if each.written else None, _largest(read, tokens)]
            for n, read in enumerate(each.read)
        ]
        whose = "mean of heads" if each.read[0].head is None else f"head {each.read[0].head}"
        columns = [Column("layer"), Column("as it is written"), Column("as it is read")]
        note = f"{_note_on_marked_looks(any(row.sinks for row in each.read))}."
        panels.append(Table(name=title, title=f"{title} ({whose})", note=note, columns=columns, rows=rows))
    return panels


def _largest(row: Attended, tokens: Sequence[Token], most: int = 3) -> Shares:
    """The largest weights of a row."""
    named = [(called(each.token, tokens), each.weight) for each in row.top[:most]]
    return Shares(named, mark="*" * (row.apart > 0.5))
