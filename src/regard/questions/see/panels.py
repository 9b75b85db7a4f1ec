"""The tables of a summary: the texts, what a first screen has, then all of the word, and what the model says.

The texts themselves, the windows they were read in, where every token looks, and what the model says are made here.
"""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from regard.display.panels import Bars, Cell, Column, Later, Panel, Shares, Strip, Table
from regard.explain.texts.occurrences import Occurrence
from regard.explain.texts.summary import Summary
from regard.explain.weights.attended import other_words
from regard.explain.wording import called, capital, listed, number, place_in_brackets, quoted, short_head
from regard.questions import lens
from regard.questions.see import word_panels as word
from regard.questions.see.sentences import comparable, leaves_range
from regard.questions.see.word_panels import neutral_range_in_words

if TYPE_CHECKING:
    from regard.questions.see.answer import Seen

TEXTS, WINDOWS = 4, 8  # that a first screen shows
FULL = 0.30  # the weight that fills a bar
ROWS = 8  # of tables of occurrences and links
LEAST = 0.01  # smaller weights are not listed after the first


def of_summary(found: "Seen") -> Sequence[Panel | Later]:
    """The texts, what a first screen says of them in short, then every table in the order of the data's way."""
    summary, target = found.summary, found.summary.target
    panels: list[Panel | Later] = [*texts(summary, "text"), *windows(summary)]
    if target is not None:
        panels += texts(target.summary, "target")
        panels += [word.looks(each, summary, n < word.TEXTS) for n, each in enumerate(target.alignments)]
    panels += brief_panels(summary)
    panels += _side(found, summary, "text")
    if target is not None:
        panels += [*word.across(summary, target), *_side(found, target.summary, "target", summary)]
    return panels


def _side(found: "Seen", summary: Summary, side: str, source: Summary | None = None) -> list[Panel | Later]:
    """What is shown of texts, or of their targets: of the word where it occurs there, or of all tokens.

    source: of targets, the texts.
    """
    panels: list[Panel | Later] = []
    if summary.word is None:
        every = enumerate(summary.labels)
        panels += [
            Later(f"Every token, {side} {label}", partial(overview, found, summary, n, side)) for n, label in every
        ]
    elif summary.occurrences:
        panels.append(Later(name_of("Token embedding", side), partial(word.token_embeddings, summary, side)))
        if summary.pairs:
            panels.append(Later(name_of("Cosines", side), partial(word.cosines, summary, side)))
        panels.append(Later(name_of("Hidden states", side), partial(word.states, summary, side)))
        for own in summary.occurrences:
            panels.append(Later(f"Attends to, {side} {own.label}", partial(word.attends, summary, own, side)))
            panels += [word.single_heads(summary, own, side)] if own.heads else []
        for each in summary.layer_updates:
            name = f"Layer by layer, {side} {each.occurrence}"
            panels.append(Later(name, partial(word.updates, each, summary, side, source)))
        panels += [Later("Reference words", partial(word.references, summary))] if summary.references else []
        panels += [word.static(summary.static)] if summary.static is not None else []
    panels += [Later(name_of("Predictions", side), partial(_predictions, summary, side))] if summary.predictions else []
    return panels + [lens.table(each, summary, side) for each in summary.logit_lenses]


def texts(summary: Summary, side: str) -> list[Panel]:
    """The tokens of each text, with bars of what the followed word looks at where it looks at others most."""
    place, titles = layer_looked_at(summary), []
    values: list[Sequence[float | None]] = []
    for n, (label, tokens) in enumerate(zip(summary.labels, summary.tokens, strict=True)):
        own = next((each for each in summary.occurrences if each.text == n), None)
        titles.append(f"{side.capitalize()} {label}: {len(tokens):,} tokens, including special tokens")
        values.append([None] * len(tokens))
        if own is not None and place is not None:
            row, which = own.attends[place], "" if own.label == label else f" ({own.label})"
            values[n] = row.weights or values[n]
            titles[n] = f"Attention from {quoted(own.word)}{which} in layer {row.layer}, mean of heads"
            titles[n] += f" (full bar: {FULL:.2f})"
    same = [n > 0 and titles[n] == titles[n - 1] for n in range(len(titles))]
    return [
        Strip(
            name=f"{side.capitalize()} {label}", title="" if same[n] else titles[n], note=_sinks(summary, n),
            tokens=[token.text for token in tokens], values=values[n], unit="weight", full=FULL, label=label,
            marked=[place for each in summary.occurrences if each.text == n for place in each.tokens],
            special=[place for place, token in enumerate(tokens) if token.special],
            screen=n < TEXTS, joined=n + 1 < len(same) and same[n + 1],
        )
        for n, (label, tokens) in enumerate(zip(summary.labels, summary.tokens, strict=True))
    ]  # fmt: skip


def _sinks(summary: Summary, text: int) -> str:
    """Which tokens of a text are attention sinks, and what makes them so."""
    found = summary.sinks[text]
    named = [quoted(sink.text) + place_in_brackets(summary.tokens[text], sink.token) for sink in found]
    names = listed(["the first token" if sink.token == 0 else name for sink, name in zip(found, named, strict=True)])
    get = listed([number(sink.share) for sink in found])
    are = "is an attention sink" if len(found) == 1 else "are attention sinks"
    return f"{capital(names)} {are} (mean weight received: {get})." if found else ""


def windows(summary: Summary) -> list[Panel]:
    """Where each window comes from, of texts that were read in windows."""
    rows: list[list[Cell]] = [
        [label, str(each.text + 1), f"{each.window} of {each.windows}", f"{each.start} to {each.stop - 1}"]
        for label, each in zip(summary.labels, summary.windows, strict=bool(summary.windows))
    ]
    note = "The model reads each window as a text. Each occurrence is shown in the window with most text around it."
    columns = [Column("shown as"), Column("text"), Column("window"), Column("tokens")]
    own = Table(name="Windows", title="Windows", note=note, columns=columns, rows=rows, screen=len(rows) <= WINDOWS)
    return [own] if rows else []


def overview(found: "Seen", summary: Summary, text: int, side: str, name: str) -> Panel:
    """For each token, where most of its attention goes in each layer."""
    sinks, chat = bool(summary.sinks[text]), any(token.turn for token in summary.tokens[text])
    rows: list[list[Cell]] = []
    attended = found.attended(text, side)
    for n, (token, looks) in enumerate(zip(summary.tokens[text], attended, strict=True)):
        most = [
            (f"{row.layer}: {row.top[0].text}{'*' * (row.apart > 0.5)}", row.top[0].weight) for row in looks if row.top
        ]
        rows.append([f"{n} {token.text}", *([token.turn] if chat else []), Shares(most, digits=2)])
    head = next((row.head for looks in attended for row in looks), None)
    aside = "special tokens and sinks" if sinks else "special tokens"
    note = f"The largest weight in each layer, without {aside}. *: {aside} receive"
    title = f"{side.capitalize()} {summary.labels[text]}: what each token attends to most"
    title += f" ({'mean of heads' if head is None else f'head {head}'})"
    return Table(
        name=name, title=title, note=f"{note} more than half.", rows=rows,
        columns=[Column("token"), *([Column("message")] if chat else []), Column("layer: largest weight")],
    )  # fmt: skip


def name_of(table: str, side: str) -> str:
    """Name a table of texts, or of their targets."""
    return table if side == "text" else f"{table} of targets"


def _predictions(summary: Summary, side: str, name: str) -> Panel:
    """The likeliest tokens after a place (causal models), or at it (masked language models)."""
    after = summary.predictions[0].after
    rows: list[list[Cell]] = [
        [*lens.place(summary, each), Shares([(c.text, c.probability) for c in each.candidates])]
        for each in summary.predictions
    ]
    title = "What the model predicts next" if after else "What the model predicts here"
    likeliest = f"likeliest {'labels' if after is None else 'tokens'} with probability"
    columns = [Column(side), Column("after" if after else "at"), Column(likeliest)]
    return Table(name=name, title=title, columns=columns, rows=rows)


def likeliest_tokens_seen(summary: Summary) -> list[Bars]:
    """The likeliest tokens of each place, as a picture has them; nothing comes after the end token of a text."""
    made = []
    for each in summary.predictions:
        tokens, (label, at) = summary.tokens[each.text], lens.place(summary, each)
        if each.after and each.token == len(tokens) - 1 and tokens[-1].special:
            continue
        title = f"{label}: {'after' if each.after else 'at'} {quoted(at)}: likeliest tokens"
        parts = [(c.text, c.probability) for c in each.candidates]
        made.append(Bars(name=title, title=title, parts=parts, part="token", unit="probability", signed=False))
    return made


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
    for name in dict.fromkeys(reference.word for reference in summary.references):
        own = {each.occurrence: each for each in summary.references if each.word == name}
        among = neutral.get(name)
        cells: list[Cell] = [name, *([neutral_range_in_words(among) if among else ""] if neutral else [])]
        for occurrence in seen:
            value = own[occurrence.label].last_hidden_state
            cells.append(f"{number(value)} {leaves_range(summary, occurrence.label, name, value) or ''}".rstrip())
        rows.append(cells)
    columns = [Column("cosine to"), *([Column("neutral: mean (range)")] if neutral else [])]
    columns += [Column(f"text {occurrence.label}") for occurrence in seen]
    left = len(summary.occurrences) - len(seen)
    notes = [f"{left} more occurrences are not shown."] if left > 0 else []
    if summary.control is None:
        notes.append("Without neutral sentences, you can't tell whether a text moves the word.")
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


def layer_looked_at(summary: Summary) -> int | None:
    """Find the layer in which the occurrences attend most to another word, sinks aside: its place in their `attends`.

    The largest weights of the occurrences are summed. None if a trace holds no layer.
    """
    best: tuple[float, int] | None = None
    for place, rows in enumerate(zip(*(occurrence.attends for occurrence in summary.occurrences), strict=False)):
        total = 0.0
        for occurrence, row in zip(summary.occurrences, rows, strict=True):
            sinks = {sink.token for sink in summary.sinks[occurrence.text]}
            others = other_words(summary.tokens[occurrence.text], occurrence.tokens, sinks)
            total += max(((row.weights or [])[n] for n in others), default=0.0)
        if best is None or total > best[0]:
            best = total, place
    return None if best is None else best[1]
