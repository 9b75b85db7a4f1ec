"""What an encoder-decoder's targets have to do with its texts, in a terminal: cross-attention."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console, Group, RenderableType
from rich.text import Text

from regard.explain.findings.alignment import alignment_findings, told_first, why_these_layers
from regard.explain.texts.summary import Summary
from regard.explain.weights.alignment import Alignment
from regard.explain.weights.attended import Attended
from regard.text.tokens import Token
from regard.trace.status import merge_statuses
from regard.views.terminal.layout import columns, put, section, shares, sink_name, spelled, visible
from regard.views.terminal.one_screen import bar, ending, sentences

MOST_ROWS = 14  # of the table on the first screen, over all its texts
MOST_TEXTS = 2
LINES = {1: 4, 2: 1}  # of each text and target there, of one text or two
MARK = "* special tokens take more than half"
MARK_SINKS = "* special tokens and sinks take more than half"


def show_translation(
    summary: Summary, texts: Sequence[tuple[str | None, str | None]], console: Console, took: float | None = None
) -> None:
    """Print translations on one screen: each text and its target, sentences, and one table of where words come from."""
    assert summary.target is not None
    parts: list[RenderableType] = []
    few = summary.target.alignments[:MOST_TEXTS]
    room = console.width * LINES[len(few)]
    for each in few:
        text, target = texts[each.text]
        parts += [
            Text(_folded(text or "", room), style="dim"),
            Text(_folded(target or "", room), style="bold"),
            Text(),
        ]
    parts.append(sentences(alignment_findings(summary)))
    parts.append(_sources(summary, few, console.width))
    left = len(summary.target.alignments) - len(few)
    notes = [f"{left} more texts are left out"] if left > 0 else []
    statuses = [merge_statuses(*each) for each in zip(summary.statuses, summary.target.summary.statuses, strict=True)]
    more = "--all (each layer's two views, every token), --figure FILE, --json FILE"
    put([*parts, ending(statuses, more, took, notes)], console)


def _folded(text: str, room: int) -> str:
    """A text in at most so many characters."""
    text = visible(text)
    return text if len(text) <= room else text[: room - 2] + " …"


def _sources(summary: Summary, alignments: Sequence[Alignment], width: int) -> RenderableType:
    """Each target token, where it comes from as it is written, with a bar; and what it looks at beside that."""
    table = columns(
        *(["text"] if len(alignments) > 1 else []), "target", "comes from", ("weight", "right"), "", "and from"
    )
    most = MOST_ROWS // len(alignments)
    left, whose, marked = 0, "", False
    for each in alignments:
        source = summary.tokens[each.text]
        written = told_first(summary, each, len(each.tokens))
        left += max(0, len(written) - most)
        whose = f"layer {each.written_layer}" + ("" if each.head is None else f", head {each.head}")
        for aligned in told_first(summary, each, most):
            row = aligned.written
            assert row is not None
            label = [summary.labels[each.text]] if len(alignments) > 1 else []
            first = row.top[0]
            room = max(8, width - 62)
            rest = _looks(replace(row, top=row.top[1:]), source, max(20, width - 58), 2) if row.top[1:] else Text()
            marked = marked or row.apart > 0.5
            name = spelled(first.text, 14)
            table.add_row(
                *label,
                spelled(aligned.text, 14),
                name,
                f"{first.weight:.2f}",
                bar(first.weight, 1.0, min(16, room)),
                rest,
            )
    notes = [f"cross-attention of {whose}, the row that writes each token"]
    notes += [f"the words with the largest weights, {left} more target tokens with --all"] if left else []
    notes += [MARK] if marked else []
    return Group(table, Text("; ".join(notes), style="dim"), Text())


def alignment(alignment: Alignment, summary: Summary, width: int) -> Group:
    """Each target token and the source tokens it comes from."""
    source = summary.tokens[alignment.text]
    whose = "" if alignment.head is None else f", head {alignment.head}"
    names = [spelled(each.text, 16) for each in alignment.tokens]
    written, read = (
        f"as it is written (layer {alignment.written_layer}{whose})",
        f"as it is read (layer {alignment.read_layer}{whose})",
    )
    table = columns("target", written, read)
    room = max(24, (width - 2 - max(map(len, [*names, "target"])) - 4) // 2)
    for name, each in zip(names, alignment.tokens, strict=True):
        first = Text("–", style="dim") if each.written is None else _looks(each.written, source, room, 2)
        table.add_row(name, first, _looks(each.read, source, room, 2))
    one = alignment.written_layer == alignment.read_layer
    agree = "one layer, both rows" if one else why_these_layers(alignment, len(summary.tokens))
    note = (
        "a decoder's row reads one token and writes the next: written is the row before a token, read its own;\n"
        f"{agree}; {MARK_SINKS if alignment.sinks else MARK}"
    )
    if alignment.sinks:
        sink_line = ", ".join(f"{sink_name(sink.token, sink.text)} {sink.share:.2f}" for sink in alignment.sinks)
        note += f"\nattention sinks of the text, with what they get on average: {sink_line}"
    label = summary.labels[alignment.text]
    return section(f"Where target {label} looks in text {label} (cross-attention)", table, Text(note, style="dim"))


def _looks(row: Attended, tokens: Sequence[Token], room: int, most: int) -> Text:
    """The largest weights of a row, as many as fit on one line."""
    counts = Counter(token.text for token in tokens)
    named = [(spelled(s.text, 14) + (f" ({s.token})" if counts[s.text] > 1 else ""), s.weight) for s in row.top[:most]]
    used = 0
    for n, (name, _) in enumerate(named):
        used += len(name) + 6 + (2 if n else 0)
        if n and used > room - 2:
            named = named[:n]
            break
    line = shares(named, room)
    return line.append("*", style="dim") if row.apart > 0.5 else line
