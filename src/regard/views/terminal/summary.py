"""A summary in a terminal of 80 columns or more, or in a pipe, where it is plain text."""

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import groupby

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from regard.explain.findings.movement import told
from regard.explain.texts.summary import Attended, Occurrence, Pair, Summary
from regard.explain.vectors.neutral import Neutral
from regard.explain.weights.sinks import Sink
from regard.text.quoting import quoted
from regard.text.tokens import Token
from regard.trace.status import merge_statuses
from regard.views.terminal import static_words
from regard.views.terminal.alignment import across, alignment
from regard.views.terminal.layer_updates import moving
from regard.views.terminal.layout import (
    columns,
    in_title,
    put,
    section,
    shares,
    short,
    shown,
    sink_name,
    spelled,
    status,
)  # fmt: skip
from regard.views.terminal.predictions import lens, predictions
from regard.views.terminal.unknown_tokens import of_summary, unknown_first

# Backgrounds that black letters are readable on, also for colour-blind eyes (after Okabe and Ito's palette).
COLOURS = ("#8fd0f5", "#f5c76b", "#7fd6bd", "#f2ec8a", "#e9a9cd", "#c9c9c9")
MOST_PAIRS = 16  # pairs of occurrences that are all shown; of more, those with the first
VALUES = 4  # how many values of a vector are shown


def show(summary: Summary, console: Console, took: float | None = None) -> None:
    """Print a summary. took: seconds for everything."""
    put(render(summary, console.width, took), console)


def render(summary: Summary, width: int = 80, took: float | None = None) -> list[RenderableType]:
    """The parts of a summary, in the order of the way that the data takes."""
    parts: list[RenderableType] = [*unknown_first(of_summary(summary)), _tokens(summary)]
    if summary.windows:
        parts.append(windows_table(summary))
    if summary.target is None:
        parts += _side(summary, "text", width)
    else:
        parts += [_tokens(summary.target.summary, "Tokens of the targets", summary.target.generated)]
        parts += [alignment(each, summary, width) for each in summary.target.alignments]
        parts += (
            _side(summary, "text", width)
            + across(summary, width)
            + _side(summary.target.summary, "target", width, summary)
        )
    words = list(dict.fromkeys(reference.word for reference in summary.references))
    statuses = summary.statuses
    if summary.target is not None:
        statuses = [merge_statuses(*each) for each in zip(statuses, summary.target.summary.statuses, strict=True)]
    parts.append(status(statuses, dict(zip(words, summary.reference_statuses, strict=True)), took=took))
    return parts


def _side(summary: Summary, side: str, width: int, source: Summary | None = None) -> list[RenderableType]:
    """What is shown of texts, or of their targets: of the word where it occurs there, or of all tokens.

    source: of targets, the texts.
    """
    parts: list[RenderableType] = []
    if summary.word is None:
        parts += [_overview(summary, n, side, width) for n in range(len(summary.texts))]
    elif summary.occurrences:
        parts += [_learned(summary, side), _layers(summary, side), _states(summary, side)]
        parts += [_attends(summary, occurrence, side, width) for occurrence in summary.occurrences]
        parts += [moving(each, summary, side, width, source) for each in summary.layer_updates]
        if summary.references:
            parts.append(_references(summary))
        if summary.static is not None:
            parts.append(static_words.table(summary.static))
    if summary.predictions:
        parts.append(predictions(summary, side, width))
    return parts + [lens(each, summary, side, width) for each in summary.logit_lenses]


def _tokens(summary: Summary, title: str = "Tokens", generated: Sequence[bool] = ()) -> Group:
    lines: list[RenderableType] = []
    marked = {(o.text, n) for o in summary.occurrences for n in o.tokens}
    for number, tokens in enumerate(summary.tokens):
        line = Text.assemble((f"{summary.labels[number]}  ", "bold"))
        for place, token in enumerate(tokens):
            line.append(*_token(token, place, (number, place) in marked))
            line.append(" ")
        lines.append(line)
    counts = ", ".join(str(len(tokens)) for tokens in summary.tokens)
    if any(generated):
        which = "" if all(generated) else " " + ", ".join(summary.labels[n] for n, own in enumerate(generated) if own)
        lines.append(Text(f"the model wrote target{which} itself: the likeliest token each time", style="dim"))
    lines += [_sink(sink, summary.labels[n]) for n, each in enumerate(summary.sinks) for sink in each]
    return section(f"{title} ({counts}, special ones included)", *lines)


def _sink(sink: Sink, label: str) -> Text:
    which = "the first token" if sink.token == 0 else f"token {sink.token}"
    sentence = (
        f"{label}: {which}, {quoted(spelled(sink.text))}, is an attention sink: on average it gets {sink.share:.2f} of "
        f"what others give, in {sink.heads:.0%} of all heads far more than its share, whatever it means"
    )
    return Text(sentence, style="dim")


def windows_table(summary: Summary) -> Group:
    """Where each window comes from, of texts that were read in windows."""
    table = columns("shown as", ("text", "right"), ("window", "right"), ("its tokens", "right"))
    for label, each in zip(summary.labels, summary.windows, strict=True):
        table.add_row(label, str(each.text + 1), f"{each.window} of {each.windows}", f"{each.start} to {each.stop - 1}")
    note = (
        "each window is a text of its own to the model; an occurrence is shown in the one where it is furthest inside"
    )
    return section("Windows", table, Text(note, style="dim"))


def _token(token: Token, place: int, marked: bool) -> tuple[str, str]:
    if token.special:
        return spelled(token.text, 1000), "dim"
    style = f"black on {COLOURS[place % len(COLOURS)]}"
    return spelled(token.text, 1000), f"bold underline {style}" if marked else style


def _learned(summary: Summary, side: str) -> Group:
    table = columns(side, "tokens", ("first values", "right"))
    for occurrence in summary.occurrences:
        tokens = [summary.tokens[occurrence.text][n] for n in occurrence.tokens]
        names = " ".join(f"{spelled(t.text)} at {n}" for t, n in zip(tokens, occurrence.tokens, strict=True))
        values = "the model has none" if occurrence.learned is None else _values(occurrence.learned, VALUES)
        table.add_row(occurrence.label, names, values)
    equal = [pair.learned_equal for pair in summary.pairs]
    lines: list[RenderableType] = [table]
    if equal and None not in equal:
        verdict = "equal to the last bit" if all(equal) else "not equal: the word is spelled by other tokens"
        unknown = any(o.word in summary.statuses[o.text].unknown for o in summary.occurrences)
        verdict += ", but the tokenizer does not know the word" if unknown else ""
        good = all(equal) and not unknown
        lines.append(Text(f"The learned embeddings are {verdict}.", style="green" if good else "yellow"))
    width = len(summary.occurrences[0].learned or ())
    return section(f"{_whose(summary, side)}: learned embedding, {width} values", *lines)


def _layers(summary: Summary, side: str) -> Group:
    """Cosine between the texts, layer by layer."""
    pairs: Sequence[Pair] = summary.pairs
    if not pairs:
        return section(f"{_whose(summary, side)}: one occurrence, so there is nothing to compare it with")
    note = ""
    if len(pairs) > MOST_PAIRS:
        first = summary.occurrences[0].label
        pairs = [pair for pair in pairs if pair.a == first]
        note = f"{len(summary.pairs)} pairs in all; shown are those with occurrence {first}, --json has the others"
    rows = [["learned", *(shown(pair.learned) for pair in pairs)]]
    for n in range(len(pairs[0].hidden_states)):
        rows.append([_state_name(n), *(shown(pair.hidden_states[n]) for pair in pairs)])
    tables: list[RenderableType] = []
    for start in range(0, len(pairs), 8):
        table = columns("", *((f"{pair.a} · {pair.b}", "right") for pair in pairs[start : start + 8]))
        for row in rows:
            table.add_row(row[0], *row[1 + start : 9 + start])
        tables.append(table)
    tables += [Text(note, style="dim")] if note else []
    return section(f"{_whose(summary, side)}: cosine between its occurrences, by {side}", *tables)


def _states(summary: Summary, side: str) -> Group:
    """The word's vector at every layer: its first values in each text."""
    table = columns("", side, (f"first {VALUES} values", "right"), ("length", "right"))
    count = len(summary.occurrences[0].hidden_states)
    for n in range(count):
        for occurrence in summary.occurrences:
            state = occurrence.hidden_states[n]
            if state is None:
                continue
            name = _state_name(n) if occurrence is summary.occurrences[0] else ""
            length = sum(x * x for x in state) ** 0.5
            table.add_row(name, occurrence.label, _values(state, VALUES), f"{length:.2f}")
    return section(f"{_whose(summary, side)}: contextual embedding", table)


def attended_by_head(summary: Summary, occurrence: Occurrence, width: int) -> Group:
    """Where the single heads of an occurrence look that were asked for: a table for each layer."""
    counts = Counter(token.text for token in summary.tokens[occurrence.text])
    tables = _by_head(occurrence, {text for text, count in counts.items() if count > 1}, width)
    return section(f"{in_title(occurrence.word)} in text {occurrence.label}", *tables)


def _by_head(occurrence: Occurrence, repeated: Collection[str], width: int) -> list[RenderableType]:
    """A table for each layer whose heads are shown."""
    parts: list[RenderableType] = []
    for layer, heads in groupby(occurrence.heads, key=lambda h: h.layer):
        parts.append(Text(f"single heads of layer {layer}", style="italic"))
        parts.append(_attention_table(list(heads), "head", repeated, width))
    return parts


def _attends(summary: Summary, occurrence: Occurrence, side: str, width: int) -> Group:
    counts = Counter(token.text for token in summary.tokens[occurrence.text])
    repeated = {text for text, count in counts.items() if count > 1}
    parts: list[RenderableType] = [
        Text("mean of heads, by layer", style="italic"),
        _attention_table(occurrence.attends, "layer", repeated, width),
    ]
    parts += _by_head(occurrence, repeated, width)
    own = {sink.token for sink in summary.sinks[occurrence.text]} & set(occurrence.tokens)
    if own:
        reason = "it sees nothing but itself, and what" if 0 in own and _sees_itself(occurrence) else "what"
        parts.append(Text(f"{in_title(occurrence.word)} is an attention sink: {reason} others give it is for its "
                          "place, not for its meaning", style="dim"))  # fmt: skip
    return section(f"{in_title(summary.word)} in {side} {occurrence.label} attends to", *parts)


def _sees_itself(occurrence: Occurrence) -> bool:
    """Whether a word of one token gives all its weight to itself, as a causal model's first token does."""
    (token, *more) = occurrence.tokens
    return not more and all(each.weights is not None and each.weights[token] == 1 for each in occurrence.attends)


def _attention_table(rows: Sequence[Attended], by: str, repeated: Collection[str], width: int) -> Table:
    """Where attention goes; a token that the text holds more than once is followed by its number."""
    order = (
        "sinks, then other tokens, largest first" if any(row.sinks for row in rows) else "other tokens, largest first"
    )
    table = columns((by, "right"), ("special", "right"), order)
    room = max(30, width - 2 - len(by) - len("special") - 6)
    for row in rows:
        named = [(spelled(s.text) + (f" ({s.token})" if s.text in repeated else ""), s.weight) for s in row.top]
        apart = [(sink_name(s.token, s.text), s.weight) for s in row.sinks]
        table.add_row(str(row.layer if by == "layer" else row.head), shown(row.special), shares(named, room, apart))
    return table


def _references(summary: Summary) -> Group:
    labels = [o.label for o in summary.occurrences]
    neutral = {each.word: each for each in summary.neutral}
    beside = ["neutral", ""] if neutral else []
    table = columns("word", "text", ("contextual", "right"), *beside, ("learned", "right"))
    for word, group in groupby(summary.references, key=lambda r: r.word):
        for each in sorted(group, key=lambda r: labels.index(r.occurrence)):
            name, cells = short(word) if each.occurrence == labels[0] else "", []
            if word in neutral:
                among = neutral[word]
                cells = [_ranged(among), told(summary, each, among) or ""]
            table.add_row(name, each.occurrence, shown(each.contextual), *cells, shown(each.learned))
    lines: list[RenderableType] = [table]
    lines.append(Text("cosine; a reference word's embeddings are its own, as a text of its own", style="dim"))
    apart = "contextual and learned embeddings are of two spaces: nothing follows from the difference of their cosines"
    lines.append(Text(apart, style="dim"))
    if summary.control is not None and neutral:
        count = len(summary.control.sentences)
        neutral_note = f"neutral: the word in {count} sentences that say nothing of its meaning, mean (range)"
        lines.append(Text(neutral_note, style="dim"))
    return section(f"{in_title(summary.word)} beside reference words", *lines)


def _ranged(neutral: Neutral) -> str:
    """The mean of cosines in neutral sentences, and their range."""
    return f"{shown(neutral.mean[-1])} ({shown(neutral.low[-1])} to {shown(neutral.high[-1])})"


def _overview(summary: Summary, number: int, side: str, width: int) -> Group:
    """For each token, where most of its attention goes in each layer; as many layers a table as fit."""
    table_rows, tokens = summary.overview[number], summary.tokens[number]
    sinks = {sink.token for sink in summary.sinks[number]}
    layers = [each.layer for each in table_rows[0]]
    longest = max(len(spelled(token.text, 1000)) for token in tokens)
    cell = min(longest, 12) + 5
    first = min(longest, 16) + 6
    fit = max(1, (width - first - 2) // (cell + 2))
    parts: list[RenderableType] = []
    for start in range(0, len(layers), fit):
        shown = range(start, min(start + fit, len(layers)))
        table = columns("token", *(f"layer {layers[n]}" for n in shown))
        for place, (token, row) in enumerate(zip(tokens, table_rows, strict=True)):
            cells = [_most(row[n]) for n in shown]
            style = "dim" if token.special or place in sinks else ""
            table.add_row(Text(f"{place:>3} {spelled(token.text, 1000)}", style=style), *cells)
        parts.append(table)
    head = table_rows[0][0].head
    whose = "mean of heads" if head is None else f"head {head}"
    note = "the largest weight on a token that is not special; * where special tokens take more than half"
    if sinks:
        note = "the largest weight on a token that is neither special nor a sink; * where these take more than half"
    title = f"{side.capitalize()} {summary.labels[number]}: where each token looks most ({whose})"
    return section(title, *parts, Text(note, style="dim"))


def _most(row: Attended) -> Text:
    if not row.top:
        return Text("–*" if row.apart > 0.5 else "–", style="dim")
    name = spelled(row.top[0].text, 12)
    mark = "*" if row.apart > 0.5 else ""
    return Text.assemble(name, (f" {row.top[0].weight:.2f}{mark}", "dim"))


def _whose(summary: Summary, side: str) -> str:
    return in_title(summary.word) + (" in the targets" if side == "target" else "")


def _values(vector: Sequence[float], count: int) -> str:
    return " ".join(f"{value:z7.4f}" for value in vector[:count]) + (" …" if len(vector) > count else "")


def _state_name(n: int) -> str:
    return "enters layer 0" if n == 0 else f"after layer {n - 1}"
