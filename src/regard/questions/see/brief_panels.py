"""The tables of a first screen: many occurrences of a word, reference words, the most distinctive links."""

from collections.abc import Sequence

from regard.display.panels import Cell, Column, Panel, Shares, Table
from regard.explain.texts.occurrences import Occurrence
from regard.explain.texts.summary import Summary
from regard.explain.wording import called, number, quoted, short_head
from regard.questions.see.looks import layer_looked_at
from regard.questions.see.sentences import comparable, leaves_range
from regard.questions.see.word_panels import neutral_range_in_words

ROWS = 8  # of tables of occurrences and links
LEAST = 0.01  # smaller weights are not listed after the first


def brief_panels(summary: Summary) -> list[Panel]:
    """Return tables of a followed word's occurrences and reference words, or of the links of whole texts."""
    if summary.word is None:
        return [_links(summary)] if summary.target is None and any(each.links for each in summary.highlights) else []
    if not summary.occurrences or summary.target is not None:
        return []
    several = [_by_occurrence(summary)] if len(summary.occurrences) > 2 else []
    return [*several, *([_references(summary)] if summary.references else [])]


def _by_occurrence(summary: Summary) -> Panel:
    """A row for each occurrence: what it attends to most, and the cosine of its last vector to the first one's."""
    seen, place = summary.occurrences, layer_looked_at(summary) or 0
    first, layer = seen[0].label, seen[0].attends[place].layer if seen[0].attends else "–"
    ends = {pair.b: pair.hidden_states[-1] for pair in summary.pairs if pair.a == first}
    rows: list[list[Cell]] = [
        [each.label, _attends_to(each, place, summary) if each.attends else "", ends.get(each.label)]
        for each in seen[:ROWS]
    ]
    left = len(seen) - ROWS
    note = f"{left} more occurrences are not shown." if left > 0 else ""
    columns = [Column("occurrence"), Column(f"attends to in layer {layer}"), Column(f"cosine to {first}", 2)]
    return Table(name="In short", title="", note=note, columns=columns, rows=rows, screen=True, brief=True)


def _attends_to(occurrence: Occurrence, place: int, summary: Summary) -> Shares:
    """The tokens with the largest weights of an occurrence in one layer, special tokens and sinks aside."""
    tokens, top = summary.tokens[occurrence.text], occurrence.attends[place].top
    named = [
        (called(share.token, tokens), share.weight) for n, share in enumerate(top) if not n or share.weight >= LEAST
    ]
    return Shares(named, one_line=True)


def _references(summary: Summary) -> Panel:
    """A row for each reference word: its cosine to each occurrence, and to the word in neutral sentences."""
    seen: Sequence[Occurrence] = summary.occurrences[:4]
    neutral = {each.word: each for each in summary.neutral}
    rows: list[list[Cell]] = []
    for word in dict.fromkeys(reference.word for reference in summary.references):
        own = {each.occurrence: each for each in summary.references if each.word == word}
        among = neutral.get(word)
        cells: list[Cell] = [word, *([neutral_range_in_words(among) if among else ""] if neutral else [])]
        for occurrence in seen:
            value = own[occurrence.label].last_hidden_state
            cells.append(f"{number(value)} {leaves_range(summary, occurrence.label, word, value) or ''}".rstrip())
        rows.append(cells)
    columns = [Column("cosine to"), *([Column("neutral: mean (range)")] if neutral else [])]
    columns += [Column(f"text {occurrence.label}") for occurrence in seen]
    left = len(summary.occurrences) - len(seen)
    notes = [f"{left} more occurrences are not shown."] if left > 0 else []
    if summary.control is None:
        notes.append("Without neutral sentences, nothing says whether a text moves the word.")
    elif summary.control.refused is not None:
        notes.append(f"Movement isn't reported: {summary.control.refused}.")
    elif not all(comparable(summary, occurrence.label) for occurrence in seen):
        notes.append("Movement isn't reported for massive activations and for words that are split into other tokens.")
    return Table(
        name="Reference words, in short", title=f"Cosine of {quoted(summary.word or '')} to reference words",
        columns=columns, rows=rows, screen=True, brief=True, note=" ".join(notes),
    )  # fmt: skip


def _links(summary: Summary) -> Panel:
    """Distinctive links between words of each text."""
    several = len(summary.texts) > 1
    each = max(2, ROWS // max(1, len(summary.texts)))
    rows: list[list[Cell]] = [
        [*([label] if several else []), called(link.query, tokens), called(link.key, tokens),
         short_head(link.layer, link.head), link.weight]
        for label, tokens, found in zip(summary.labels, summary.tokens, summary.highlights, strict=True)
        for link in found.links[:each]
    ]  # fmt: skip
    columns = [*([Column("text")] if several else []), Column("token"), Column("attends to"), Column("head")]
    title = "Distinctive links between words"
    return Table(name="Links", title=title, columns=[*columns, Column("weight", 2, bar=True)], rows=rows, screen=True)
