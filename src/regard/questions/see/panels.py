"""Build the panels of `regard see`: texts, occurrences, links, reference words, alignments and logit lens."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from regard.display.panels import Cell, Column, Later, Panel, Shares, Strip, Table
from regard.explain.logits import LogitLens, Prediction
from regard.explain.texts.occurrences import Occurrence
from regard.explain.texts.summary import Summary, comparable, layer_looked_at, leaves_range
from regard.explain.wording import (
    called,
    capital,
    listed,
    mean_or_head,
    number,
    place_in_brackets,
    short_head,
    state_name,
)
from regard.questions.movement import updates_table
from regard.questions.see.alignment import alignment_tables, cross_attention_tables
from regard.text.quoting import quoted

if TYPE_CHECKING:
    from regard.questions.see.answer import Seen

TEXTS, WINDOWS = 4, 8  # at most this many on the first screen
ROWS, REFERENCE_COLUMNS = 8, 4  # at most, in tables of occurrences and links, and of reference words
FULL = 0.30  # weight of a full bar
MAX_PAIRS = 16  # of occurrences; if there are more, only pairs with the first occurrence are shown


def summary_panels(answer: "Seen") -> Sequence[Panel | Later]:
    """Return all panels of a summary: the texts, short tables for the first screen, then the detailed tables."""
    first, target = answer.summary, answer.summary.target
    panels: list[Panel | Later] = [*text_strips(first, "text"), *([_windows(first)] if first.windows else [])]
    if target is not None:
        panels += text_strips(target.summary, "target")
        panels += alignment_tables(first)
    elif len(first.occurrences) > 2:
        panels.append(_occurrences_table(first))
    elif any(text.links for text in first.highlights):
        panels.append(links_table(first))
    panels += [references_table(first)] if first.references else []
    sides = [("text", "", first)] + ([("target", " of targets", target.summary)] if target is not None else [])
    for side, of_side, summary in sides:
        source = None if summary is first else first
        panels += cross_attention_tables(first, target) if target is not None and source is not None else []
        for n, label in enumerate(summary.labels if summary.word is None else ()):
            panels.append(Later(f"Every token, {side} {label}", partial(every_token_table, answer, summary, n, side)))
        if summary.pairs:
            panels.append(Later(f"Cosines{of_side}", partial(cosines_table, summary, side)))
        for occurrence in summary.occurrences:
            panels.append(Later(f"Attends to, {side} {occurrence.label}", partial(attends, summary, occurrence, side)))
            name = f"Single heads, {side} {occurrence.label}"
            panels += [attends(summary, occurrence, side, name, heads=True)] if occurrence.heads else []
        for word in summary.layer_updates:
            name = f"Layer by layer, {side} {word.occurrence}"
            panels.append(Later(name, partial(updates_table, word, summary, side, source)))
        if summary.predictions:
            panels.append(Later(f"Predictions{of_side}", partial(_predictions_table, summary, side)))
        panels += [lens_table(lens, summary, side) for lens in summary.logit_lenses]
    return panels


def text_strips(summary: Summary, side: str) -> list[Panel]:
    """Return a strip of each text's tokens, with bars for the attention from the followed word in one layer."""
    index, strips = layer_looked_at(summary), list[Strip]()
    for n, (label, tokens) in enumerate(zip(summary.labels, summary.tokens, strict=True)):
        words = [occurrence for occurrence in summary.occurrences if occurrence.text == n]
        names = [quoted(s.text) + place_in_brackets(tokens, s.token) if s.token else "the first token"
                 for s in summary.sinks[n]]  # fmt: skip
        are = "is an attention sink" if len(names) == 1 else "are attention sinks"
        received = listed([number(sink.share) for sink in summary.sinks[n]])
        title = f"{side.capitalize()} {label}: {len(tokens):,} tokens, including special tokens"
        values: Sequence[float | None] = [None] * len(tokens)
        if words and index is not None:
            row, suffix = words[0].attends[index], "" if words[0].label == label else f" ({words[0].label})"
            values = row.weights or values
            title = f"Attention from {quoted(words[0].word)}{suffix} in layer {row.layer}, mean of heads"
            title += f" (full bar: {FULL:.2f})"
        strips.append(Strip(
            name=f"{side.capitalize()} {label}", title=title,
            note=f"{capital(listed(names))} {are} (mean weight received: {received})." if names else "",
            tokens=[token.text for token in tokens], values=values, unit="weight", full=FULL, label=label,
            marked=[token for word in words for token in word.tokens],
            special=[token for token, other in enumerate(tokens) if other.special], screen=n < TEXTS,
        ))  # fmt: skip
    same = [*(one.title == other.title for one, other in pairwise(strips)), False]  # a repeated title is shown once
    return [replace(s, joined=same[n], title="" if n and same[n - 1] else s.title) for n, s in enumerate(strips)]


def _windows(summary: Summary) -> Panel:
    """Return a table of the windows in which long texts were read, with each window's text and tokens."""
    rows: list[list[Cell]] = [
        [label, str(w.text + 1), f"{w.window + 1} of {w.windows}", f"{w.start} to {w.stop - 1}"]
        for label, w in zip(summary.labels, summary.windows, strict=True)
    ]
    note = "The model reads each window as a text. Each occurrence is shown in the window with most text around it."
    columns = [*map(Column, ("shown as", "text", "window", "tokens"))]
    return Table(name="Windows", title="Windows", note=note, columns=columns, rows=rows, screen=len(rows) <= WINDOWS)


def every_token_table(answer: "Seen", summary: Summary, text: int, side: str, name: str) -> Panel:
    """Return a table of the token that each token attends to most, for every layer."""
    attended, chat = answer.attended(text, side), any(token.turn for token in summary.tokens[text])
    rows: list[list[Cell]] = []
    for n, (token, layers) in enumerate(zip(summary.tokens[text], attended, strict=True)):
        largest = [(f"{row.layer}: {row.top[0].text}{'*' * (row.apart > 0.5)}", row.top[0].weight)
                   for row in layers if row.top]  # fmt: skip
        rows.append([f"{n} {token.text}", *([token.turn] if chat else []), Shares(largest)])
    head = next((row.head for layers in attended for row in layers), None)
    excluded = "special tokens and sinks" if summary.sinks[text] else "special tokens"
    return Table(
        name=name, rows=rows, note=f"The largest weight in each layer, without {excluded}. *: {excluded} receive more "
        "than half.",
        title=f"{side.capitalize()} {summary.labels[text]}: what each token attends to most ({mean_or_head(head)})",
        columns=[Column("token"), *([Column("message")] if chat else []), Column("layer: largest weight")],
    )  # fmt: skip


def _predictions_table(summary: Summary, side: str, name: str) -> Panel:
    """Return a table of the likeliest tokens after (causal models) or at (masked models) each position."""
    after = summary.predictions[0].after
    rows: list[list[Cell]] = [
        [*predicted_position(summary, prediction), Shares([(c.text, c.probability) for c in prediction.candidates])]
        for prediction in summary.predictions
    ]
    likeliest = f"likeliest {'labels' if after is None else 'tokens'} with probability"
    columns = [Column(side), Column("after" if after else "at"), Column(likeliest)]
    return Table(name=name, title=f"What the model predicts {'next' if after else 'here'}", columns=columns, rows=rows)


def _occurrences_table(summary: Summary) -> Panel:
    """Return a short table of each occurrence's most unusual link and cosine to the first occurrence."""
    first = summary.occurrences[0]
    ends = {pair.b: pair.hidden_states[-1] for pair in summary.pairs if pair.a == first.label}
    rows: list[list[Cell]] = []
    for occurrence in summary.occurrences[:ROWS]:
        link, tokens = occurrence.link, summary.tokens[occurrence.text]
        linked: list[Cell] = ["", None, None, ""]
        if link is not None:
            linked = [called(link.token, tokens), link.weight, link.expected, short_head(link.layer, link.head)]
        rows.append([occurrence.label, *linked, ends.get(occurrence.label)])
    hidden = len(summary.occurrences) - len(rows)
    return Table(
        name="In short", title="", note=f"{hidden} more occurrences are not shown." if hidden else "",
        rows=rows, screen=True, brief=True,
        columns=[*map(Column, ("occurrence", "attends unusually to")), Column("weight", 2), Column("expected", 2),
                 Column("head"), Column(f"cosine to {first.label}", 2)],
    )  # fmt: skip


def references_table(summary: Summary) -> Panel:
    """Return a table of each reference word's cosines to the occurrences and in neutral sentences."""
    shown, neutral = summary.occurrences[:REFERENCE_COLUMNS], {row.word: row for row in summary.neutral}
    values = {(reference.word, reference.occurrence): reference.last_hidden_state for reference in summary.references}
    rows: list[list[Cell]] = []
    for word in dict.fromkeys(reference.word for reference in summary.references):
        cosines = [(occurrence.label, values[word, occurrence.label]) for occurrence in shown]
        row: list[Cell] = [f"{number(value)} {leaves_range(summary, label, word, value) or ''}".rstrip()
                           for label, value in cosines]  # fmt: skip
        if neutral:
            ends = [curve[-1] for curve in (neutral[word].mean, neutral[word].low, neutral[word].high)]
            row.insert(0, "{} ({} to {})".format(*("–" if end is None else number(end) for end in ends)))
        rows.append([word, *row])
    hidden = len(summary.occurrences) - len(shown)
    note = f"{hidden} more occurrences are not shown. --json has them." if hidden else ""
    if summary.control is None:
        note += " Without neutral sentences, you can't tell whether a text moves the word."
    elif summary.control.refused is not None:
        note += f" Movement isn't reported: {summary.control.refused}."
    elif not all(comparable(summary, occurrence.label) for occurrence in shown):
        note += " Movement isn't reported for massive activations and for words that are split into other tokens."
    columns = [Column("cosine to"), *([Column("neutral: mean (range)")] if neutral else [])]
    return Table(
        name="Reference words", title=f"Cosine of {quoted(summary.word or '')} to reference words", note=note.strip(),
        columns=[*columns, *(Column(f"text {occurrence.label}") for occurrence in shown)], rows=rows,
        screen=summary.target is None,
    )  # fmt: skip


def links_table(summary: Summary) -> Panel:
    """Return a table of each text's distinctive attention links between words."""
    several, count = len(summary.texts) > 1, max(2, ROWS // max(1, len(summary.texts)))
    rows: list[list[Cell]] = [
        [label, called(link.query, tokens), called(link.key, tokens), short_head(link.layer, link.head),
         link.expected, link.weight]
        for label, tokens, text in zip(summary.labels, summary.tokens, summary.highlights, strict=True)
        for link in text.links[:count]
    ]  # fmt: skip
    columns = [*map(Column, ("text", "token", "attends to", "head")), Column("expected", 2)]
    columns.append(Column("weight", 2, bar=True))
    rows, columns = ([row[not several :] for row in rows], columns[not several :])
    return Table(name="Links", title="Distinctive links between words", columns=columns, rows=rows, screen=True)


def cosines_table(summary: Summary, side: str, name: str) -> Panel:
    """Return a table of the cosine of each pair of occurrences, for every hidden state."""
    pairs, equal, note = summary.pairs, [pair.token_embeddings_equal for pair in summary.pairs], ""
    if len(pairs) > MAX_PAIRS:
        first = summary.occurrences[0].label
        pairs = [pair for pair in pairs if pair.a == first]
        note = f"Only pairs with occurrence {first} are shown, of {len(summary.pairs)}. --json has the others. "
    if None not in equal:
        unknown = any(other.word in summary.statuses[other.text].unknown for other in summary.occurrences)
        note += "The token embeddings are equal to the last bit." if all(equal) else "Some token embeddings differ."
        note += " The tokenizer does not know the word." * unknown
    states = enumerate(zip(*(pair.hidden_states for pair in pairs), strict=True))
    rows: list[list[Cell]] = [["token embedding", *(pair.token_embeddings for pair in pairs)]]
    word = quoted(summary.word or "") + (" in the targets" if side == "target" else "")
    return Table(
        name=name, title=f"{word}: cosine between occurrences, by {side}", note=note.strip(),
        columns=[Column("state"), *(Column(f"{pair.a} · {pair.b}", 2) for pair in pairs)],
        rows=[*rows, *([state_name(n), *values] for n, values in states)],
    )  # fmt: skip


def attends(summary: Summary, occurrence: Occurrence, side: str, name: str, *, heads: bool = False) -> Panel:
    """Return a table of the tokens that an occurrence attends to, per layer or per requested head."""
    it = f"{quoted(occurrence.word)} in {side} {occurrence.label}"
    sink = set(occurrence.tokens) & {sink.token for sink in summary.sinks[occurrence.text]}
    # a causal model's first token can attend only to itself
    only = len(occurrence.tokens) == 1 and all(
        row.weights and row.weights[occurrence.tokens[0]] == 1 for row in occurrence.attends
    )
    note = f"{it} is an attention sink: other tokens attend to its position, not to its meaning."
    note += " It can attend only to itself." * (0 in sink and only)
    rows: list[list[Cell]] = []
    for row in occurrence.heads if heads else occurrence.attends:
        sinks = [("first token (sink)" if s.token == 0 else f"{s.text} ({s.token}, sink)", s.weight) for s in row.sinks]
        parts = [*sinks, *((called(s.token, summary.tokens[occurrence.text]), s.weight) for s in row.top)]
        numbers = [str(row.layer), *[str(row.head)] * heads]
        rows.append([*numbers, row.special, Shares(parts, apart=len(sinks))])
    first = "sinks, then " * any(row.sinks for row in occurrence.attends)
    columns = [Column("layer"), *[Column("head")] * heads, Column("special", 2)]
    return Table(
        name=name, title=f"{it} attends to{', single heads' if heads else ' (mean of heads)'}", rows=rows, screen=heads,
        note=note * bool(sink and not heads),
        columns=[*columns, Column(f"{first}other tokens with the largest weights")],
    )  # fmt: skip


def lens_table(lens: LogitLens, summary: Summary, side: str) -> Panel:
    """Return the logit lens table: each layer's most likely tokens at one position."""
    label, token = predicted_position(summary, lens)
    at = f"{'after' if lens.after else 'at'} {quoted(token)}"
    rows: list[list[Cell]] = [
        [state_name(layer.state), Shares([(c.text, c.probability) for c in layer.candidates]), str(layer.rank)]
        for layer in lens.layers
    ]
    final = quoted(lens.final.text)
    columns = [Column("state"), Column("most likely tokens, with probability"), Column(f"rank of {final}")]
    title = f"Predictions {at} in {side} {label}, layer by layer (logit lens)"
    note = f"Each state goes through the model's final norm and output head. The model predicts {final} "
    note += f"({number(lens.final.probability)}). "
    note += f"The last state's logits are within {lens.difference:.1e} of the model's."
    name = f"Logit lens, {side} {label} {at}"
    return Table(name=name, title=title, note=note, columns=columns, rows=rows, screen=True)


def predicted_position(summary: Summary, prediction: Prediction | LogitLens) -> tuple[str, str]:
    """Return the label of a prediction's text or occurrence, and the token's text, numbered if it is repeated."""
    tokens = summary.tokens[prediction.text]
    return prediction.occurrence or summary.labels[prediction.text], called(prediction.token, tokens)
