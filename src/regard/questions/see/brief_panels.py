"""The tables of a first screen: where a followed word looks in the layers that tell most, beside what; sharp links."""

from collections.abc import Sequence

from regard.display.panels import Cell, Column, Panel, Shares, Table
from regard.explain.texts.occurrences import Occurrence
from regard.explain.texts.summary import Summary
from regard.explain.wording import called, number, place_in_brackets
from regard.questions.movement.sentences import told
from regard.questions.see.looks import given_to_others, layer_looked_at
from regard.questions.see.word_panels import neutral_range_in_words

LAYERS = 8  # that the table has, of a deeper model those in which most happens
ROWS = 8  # of tables of occurrences and links
LEAST = 0.01  # weights below it are not named behind others


def brief_panels(summary: Summary) -> list[Panel]:
    """Of a followed word where it looks and what it is beside; of texts without one their sharpest links."""
    if summary.word is None:
        return [_links(summary)] if summary.target is None and any(each.links for each in summary.highlights) else []
    if not summary.occurrences or summary.target is not None:
        return []
    looks = _by_layer(summary) if len(summary.occurrences) <= 2 else _by_occurrence(summary)
    return [looks, *([_references(summary)] if summary.references else [])]


def _by_layer(summary: Summary) -> Panel:
    """Show for some layers, the last among them, how alike the occurrences are and what they attend to."""
    seen, pair, most = summary.occurrences, next(iter(summary.pairs), None), given_to_others(summary)
    last = [len(most) - 1] if most else []  # the sentences report it
    best = sorted(set(range(len(most))).difference(last), key=lambda place: -most[place])
    places = sorted([*last, *best[: LAYERS - 1]])
    rows: list[list[Cell]] = []
    for place in places:
        layer = seen[0].attends[place].layer
        alike: list[Cell] = []
        if pair is not None:
            alike = [pair.hidden_states[layer + 1] if layer + 1 < len(pair.hidden_states) else None]
        rows.append([str(layer), *alike, *(_looks(each, place, summary) for each in seen)])
    note = "Cosine: of the two that leave the layer; " if pair is not None else ""
    note += "special tokens and sinks are not listed"
    left = len(seen[0].attends) - len(places)
    note += f"; {left} layers in which they look at other words less are left out" if left else ""
    columns = [Column("layer"), *([Column("cosine", 2)] if pair is not None else [])]
    columns += [Column(f"text {each.label} looks at") for each in seen]
    return Table(name="In short", title="", note=f"{note}.", columns=columns, rows=rows, screen=True, brief=True)


def _looks(occurrence: Occurrence, place: int, summary: Summary) -> Shares:
    """What one layer's row looks at most."""
    tokens, top = summary.tokens[occurrence.text], occurrence.attends[place].top
    named = [(called(each.token, tokens), each.weight) for each in top[:1] + [s for s in top[1:] if s.weight >= LEAST]]
    return Shares(named, digits=2, one_line=True)


def _by_occurrence(summary: Summary) -> Panel:
    """A row for each occurrence: where it looks most, and how alike it ends to the first."""
    seen, place = summary.occurrences, layer_looked_at(summary) or 0
    first, layer = seen[0].label, seen[0].attends[place].layer if seen[0].attends else "–"
    ends = {pair.b: pair.hidden_states[-1] for pair in summary.pairs if pair.a == first}
    rows: list[list[Cell]] = [
        [each.label, _looks(each, place, summary) if each.attends else "", ends.get(each.label)] for each in seen[:ROWS]
    ]
    left = len(seen) - ROWS
    note = f"{left} more occurrences are left out." if left > 0 else ""
    columns = [Column("occurrence"), Column(f"looks at in layer {layer}"), Column(f"cosine to {first}", 2)]
    return Table(name="In short", title="", note=note, columns=columns, rows=rows, screen=True, brief=True)


def _references(summary: Summary) -> Panel:
    """A row for each reference word: its cosine to each occurrence, and to the word in neutral sentences."""
    seen: Sequence[Occurrence] = summary.occurrences[:4]
    neutral = {each.word: each for each in summary.neutral}
    rows: list[list[Cell]] = []
    for word in dict.fromkeys(reference.word for reference in summary.references):
        own = {each.occurrence: each for each in summary.references if each.word == word}
        among = neutral.get(word)
        cells: list[Cell] = [word, *([neutral_range_in_words(among, 2) if among else ""] if neutral else [])]
        for each in seen:
            said = "" if among is None else told(summary, own[each.label], among) or ""
            cells.append(f"{number(own[each.label].last_hidden_state, '.2f')} {said}".rstrip())
        rows.append(cells)
    left = len(summary.occurrences) - len(seen)
    columns = [Column("cosine to"), *([Column("neutral: mean (range)")] if neutral else [])]
    columns += [Column(f"text {each.label}") for each in seen]
    return Table(
        name="Beside", title="", columns=columns, rows=rows, screen=True, brief=True,
        note=f"{left} more occurrences are left out." if left > 0 else "",
    )  # fmt: skip


def _links(summary: Summary) -> Panel:
    """The sharpest links between words of each text."""
    several = len(summary.texts) > 1
    each = max(2, ROWS // max(1, len(summary.texts)))
    rows: list[list[Cell]] = [
        [*([label] if several else []), link.query_text + place_in_brackets(tokens, link.query),
         link.key_text + place_in_brackets(tokens, link.key), str(link.layer), str(link.head), link.weight]
        for label, tokens, found in zip(summary.labels, summary.tokens, summary.highlights, strict=True)
        for link in found.links[:each]
    ]  # fmt: skip
    columns = [*([Column("text")] if several else []), Column("word"), Column("looks at"), Column("layer")]
    columns += [Column("head"), Column("weight", 2, bar=True)]
    return Table(name="Links", title="The sharpest links between words", columns=columns, rows=rows, screen=True)
