"""What an encoder-decoder's targets have to do with its texts, in a terminal: cross-attention."""

from collections import Counter
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from regard.explain.alignment import Across, Alignment
from regard.explain.attended import Attended
from regard.explain.summary import Summary
from regard.text.tokens import Token
from regard.views.terminal.layout import columns, quoted, section, shares, sink_name, spelled

MARK = "* special tokens take more than half"
MARK_SINKS = "* special tokens and sinks take more than half"


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
    agree = f"these two layers agree most of all, by {alignment.agreement:.2f}"
    mark = MARK_SINKS if alignment.sinks else MARK
    note = (
        "a decoder's row reads one token and writes the next: written is the row before a token, read its own;\n"
        f"{agree if alignment.written_layer != alignment.read_layer else 'one layer, both rows'}; {mark}"
    )
    if alignment.sinks:
        sink_line = ", ".join(f"{sink_name(sink.token, sink.text)} {sink.share:.2f}" for sink in alignment.sinks)
        note += f"\nattention sinks of the text, with what they get on average: {sink_line}"
    label = summary.labels[alignment.text]
    return section(f"Where target {label} looks in text {label} (cross-attention)", table, Text(note, style="dim"))


def across(summary: Summary, width: int) -> list[RenderableType]:
    """The followed word and the other side, layer by layer."""
    assert summary.target is not None
    other = summary.target.summary
    parts: list[RenderableType] = []
    for each, occurrence in zip(summary.target.to_words, summary.occurrences, strict=True):
        title = f"What looks at {quoted(occurrence.word)} of text {each.occurrence} in the target"
        parts.append(_by_layer(title, each, other.tokens[occurrence.text], width))
    for each, occurrence in zip(summary.target.of_words, other.occurrences, strict=True):
        title = f"Where {quoted(occurrence.word)} of target {each.occurrence} looks in the text"
        parts.append(_by_layer(title, each, summary.tokens[occurrence.text], width))
    return parts


def _by_layer(title: str, across: Across, tokens: Sequence[Token], width: int) -> Group:
    table = columns(("layer", "right"), "as it is written", "as it is read")
    room = max(24, (width - 2 - len("layer") - 4) // 2)
    for n, read in enumerate(across.read):
        written = _looks(across.written[n], tokens, room, 3) if across.written else Text("–", style="dim")
        table.add_row(str(read.layer), written, _looks(read, tokens, room, 3))
    whose = "mean of heads" if across.read[0].head is None else f"head {across.read[0].head}"
    mark = MARK_SINKS if any(row.sinks for row in across.read) else MARK
    return section(f"{title} ({whose})", table, Text(mark, style="dim"))


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
