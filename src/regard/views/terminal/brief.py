"""A summary on one screen: what was found in sentences, the texts with a bar under each token, one table."""

from rich.console import Console, Group, RenderableType
from rich.text import Text

from regard.explain.findings.looks import given_to_others, layer_looked_at
from regard.explain.findings.movement import told
from regard.explain.findings.see import findings
from regard.explain.texts.occurrences import Occurrence, Reference
from regard.explain.texts.summary import Summary
from regard.explain.vectors.neutral import Neutral
from regard.trace.status import merge_statuses
from regard.views.terminal.alignment import alignment
from regard.views.terminal.layout import columns, put, short, shown, spelled
from regard.views.terminal.one_screen import model_line, sentences
from regard.views.terminal.predictions import lens
from regard.views.terminal.static_words import table as static_table
from regard.views.terminal.summary import attended_by_head, windows_table
from regard.views.terminal.token_bars import token_bars
from regard.views.terminal.unknown_tokens import of_summary, unknown_first

MOST_LAYERS = 8  # layers that the table has, of a deeper model those in which most happens
MORE = "--all (every layer and value), --figure FILE, --json FILE"
MOST_ROWS = 8  # of tables of occurrences and links


def show(summary: Summary, console: Console, took: float | None = None) -> None:
    """Print a summary on one screen. took: seconds for everything."""
    put(render(summary, console.width, took), console)


def render(summary: Summary, width: int = 80, took: float | None = None, more: str = MORE) -> list[RenderableType]:
    """The parts, the findings first. more: where the rest is."""
    parts: list[RenderableType] = [*unknown_first(of_summary(summary)), sentences(findings(summary))]
    parts += token_bars(summary, width)
    if 0 < len(summary.windows) <= MOST_ROWS:
        parts.append(windows_table(summary))
    if summary.target is not None:
        parts += [alignment(each, summary, width) for each in summary.target.alignments[:2]]
    elif summary.word is not None:
        parts += _word_tables(summary, width)
    else:
        parts += _links(summary)
    parts += [attended_by_head(summary, each, width) for each in summary.occurrences if each.heads]
    if summary.static is not None:
        parts.append(static_table(summary.static))
    for side in (summary, *([] if summary.target is None else [summary.target.summary])):
        parts += [lens(each, side, "text" if side is summary else "target", width) for each in side.logit_lenses]
    return [*parts, _status(summary, took, more)]


def _word_tables(summary: Summary, width: int) -> list[RenderableType]:
    """Layer by layer, how alike the occurrences are and where they look; and the reference words."""
    seen = summary.occurrences
    if not seen:
        return []
    if len(seen) <= 2:
        parts: list[RenderableType] = [_by_layer(summary, width)]
    else:
        parts = [_by_occurrence(summary, width)]
    if summary.references:
        parts.append(_references(summary))
    return parts


def _by_layer(summary: Summary, width: int) -> RenderableType:
    seen, pair = summary.occurrences, next(iter(summary.pairs), None)
    rows = _telling(summary)
    headings: list[str | tuple[str, str]] = ["layer"]
    if pair is not None:
        headings.append(("cosine", "right"))
    table = columns(*headings, *(f"text {each.label} looks at" for each in seen))
    room = (width - 10 - 9 * (pair is not None) - 3 * len(seen)) // len(seen)
    for place in rows:
        layer = seen[0].attends[place].layer
        cells: list[str | Text] = [str(layer)]
        if pair is not None:
            state = pair.hidden_states[layer + 1] if layer + 1 < len(pair.hidden_states) else None
            cells.append(shown(state, ".2f"))
        table.add_row(*cells, *(_looks(each, place, summary, room) for each in seen))
    left = len(seen[0].attends) - len(rows)
    notes = ["special tokens and sinks not listed"]
    if pair is not None:
        notes.insert(0, "cosine: of the two that leave the layer")
    if left:
        notes.append(f"{left} layers in which they look at other words less are left out")
    return Group(table, Text("; ".join(notes), style="dim"), Text())


def _telling(summary: Summary) -> list[int]:
    """Places in `attends` of the layers that a table shows: those in which other words get most, and the last."""
    most = given_to_others(summary)
    best = sorted(range(len(most)), key=lambda place: -most[place])
    last = best and [len(most) - 1]  # which the findings speak of
    return sorted({*last, *[place for place in best if place not in last][: MOST_LAYERS - 1]})


def _looks(occurrence: Occurrence, place: int, summary: Summary, room: int) -> Text:
    """What one layer's row looks at most, as many tokens as there is room for."""
    row = occurrence.attends[place]
    texts = [token.text for token in summary.tokens[occurrence.text]]
    line, used = Text(), 0
    for share in row.top:
        name = spelled(share.text, 14) + (f" ({share.token})" if texts.count(share.text) > 1 else "")
        size = len(name) + 5
        if used + 2 * (used > 0) + size > room or (used and share.weight < 0.01):
            break
        line.append(("  " if used else "") + name)
        line.append(f" {share.weight:.2f}", style="dim")
        used += size + 2 * (used > 0)
    return line


def _by_occurrence(summary: Summary, width: int) -> RenderableType:
    """A row for each occurrence: where it looks most, and how alike it ends to the first."""
    seen, looks = summary.occurrences, layer_looked_at(summary) or 0
    first = seen[0].label
    ends = {pair.b: pair.hidden_states[-1] for pair in summary.pairs if pair.a == first}
    layer = seen[0].attends[looks].layer if seen[0].attends else "–"
    table = columns("occurrence", f"looks at in layer {layer}", (f"cosine to {first}", "right"))
    for each in seen[:MOST_ROWS]:
        cell = _looks(each, looks, summary, width - 32) if each.attends else Text()
        table.add_row(each.label, cell, shown(ends.get(each.label), ".2f") if each.label != first else "")
    left = len(seen) - MOST_ROWS
    note = [Text(f"… and {left} more occurrences", style="dim")] if left > 0 else []
    return Group(table, *note, Text())


def _references(summary: Summary) -> RenderableType:
    """A row for each reference word: its cosine to each occurrence, and to the word in neutral sentences."""
    seen = summary.occurrences[:4]
    neutral = {each.word: each for each in summary.neutral}
    beside: list[str] = ["neutral: mean (range)"] if neutral else []
    table = columns("cosine to", *beside, *(f"text {each.label}" for each in seen))
    for word in dict.fromkeys(reference.word for reference in summary.references):
        own = {r.occurrence: r for r in summary.references if r.word == word}
        among = neutral.get(word)
        ranged = [] if among is None else [_ranged(among)]
        table.add_row(short(word), *ranged, *(_beside(summary, own[each.label], among) for each in seen))
    left = len(summary.occurrences) - len(seen)
    notes = [Text(f"… and {left} more occurrences", style="dim")] if left > 0 else []
    return Group(table, *notes, Text())


def _ranged(neutral: Neutral) -> str:
    """The mean of cosines in neutral sentences, and their range."""
    mean, low, high = (shown(each[-1], ".2f") for each in (neutral.mean, neutral.low, neutral.high))
    return f"{mean} ({low} to {high})"


def _beside(summary: Summary, reference: Reference, among: Neutral | None) -> str:
    """A cosine, and whether it leaves the neutral range."""
    said = "" if among is None else told(summary, reference, among) or ""
    return f"{shown(reference.contextual, '.2f')} {said}".rstrip()


def _links(summary: Summary) -> list[RenderableType]:
    """The sharpest links between words of each text, as one table."""
    several = len(summary.texts) > 1
    table = columns(*(["text"] if several else []), "word", "looks at", ("layer", "right"), ("head", "right"), "weight")
    each = max(2, MOST_ROWS // max(1, len(summary.texts)))
    rows = 0
    for label, found in zip(summary.labels, summary.highlights, strict=True):
        for link in found.links[:each]:
            where = [label] if several else []
            bar = "█" * round(link.weight * 20)
            query, key = (f"{spelled(t)} ({n})" for t, n in ((link.query_text, link.query), (link.key_text, link.key)))
            table.add_row(*where, query, key, str(link.layer), str(link.head), f"{link.weight:.2f} {bar}")
            rows += 1
    return [Group(table, Text())] if rows else []


def _status(summary: Summary, took: float | None, more: str) -> RenderableType:
    """How far the figures can be trusted, in a line, its notes, and where the rest is."""
    statuses = summary.statuses
    if summary.target is not None:
        statuses = [merge_statuses(*each) for each in zip(statuses, summary.target.summary.statuses, strict=True)]
    lines = [Text(model_line(statuses, took), style="dim")]
    written = (
        []
        if summary.target is None
        else [n for n, own in zip(summary.labels, summary.target.generated, strict=True) if own]
    )
    if written:
        which = "" if len(written) == len(summary.labels) else f" of text {', '.join(written)}"
        lines.append(Text(f"the model wrote the target{which} itself: the likeliest token each time", style="dim"))
    lines += [Text(f"note: {note}", style="dim") for note in dict.fromkeys(n for s in statuses for n in s.notes)]
    lines.append(Text(f"more: {more}", style="dim"))
    return Group(*lines)
