"""The tables of a followed word (where it starts, how it moves, what it attends to) and of cross-attention."""

from collections.abc import Sequence

from regard.display.panels import Bars, Cell, Column, Panel, Shares, Table
from regard.explain.causes.layer_updates import LARGEST_SHARES, Attending
from regard.explain.texts.occurrences import Occurrence, WordUpdates
from regard.explain.texts.summary import Summary, Target
from regard.explain.vectors.neutral import Neutral
from regard.explain.vectors.static_words import Static
from regard.explain.weights.alignment import Alignment, why_these_layers
from regard.explain.weights.attended import Attended
from regard.explain.wording import called, capital, listed, number, quoted, state_name
from regard.questions.see.sentences import leaves_range
from regard.text.tokens import Token

SAME = 1e-6  # two cosines this near are one
PAIRS = 16  # of occurrences that are all shown; of more, those with the first
VALUES = 4  # of a vector that are shown
TEXTS = 2  # whose table stands on a first screen


def token_embeddings(summary: Summary, side: str, name: str) -> Panel:
    """The token embeddings that the occurrences start as."""
    rows: list[list[Cell]] = []
    for each in summary.occurrences:
        tokens = [f"{summary.tokens[each.text][n].text} at {n}" for n in each.tokens]
        values = "the model has none" if each.token_embeddings is None else _few(each.token_embeddings)
        rows.append([each.label, " ".join(tokens), values])
    equal, note = [pair.token_embeddings_equal for pair in summary.pairs], ""
    if equal and None not in equal:
        unknown = any(each.word in summary.statuses[each.text].unknown for each in summary.occurrences)
        note = "equal to the last bit" if all(equal) else "not equal, because the tokens differ"
        note = f"The token embeddings are {note}{'. The tokenizer does not know the word' * unknown}."
    sums = [each.embedding_difference for each in summary.statuses if each.embedding_difference is not None]
    if sums:
        note = f"{note} With position embeddings they sum to the model's input within {max(sums):.1e}.".strip()
    width = len(summary.occurrences[0].token_embeddings or ())
    columns = [Column(side), Column("tokens"), Column(f"first {VALUES} values")]
    title = f"{_whose(summary, side)}: token embedding, {width} values"
    return Table(name=name, title=title, note=note, columns=columns, rows=rows)


def cosines(summary: Summary, side: str, name: str) -> Panel:
    """The cosine between the occurrences, state by state."""
    pairs, note = summary.pairs, ""
    if len(pairs) > PAIRS:
        first = summary.occurrences[0].label
        pairs = [pair for pair in pairs if pair.a == first]
        note = f"Only pairs with occurrence {first} are shown, of {len(summary.pairs)}. --json has the others."
    states = [pair.hidden_states for pair in pairs]
    rows: list[list[Cell]] = [["token embedding", *(pair.token_embeddings for pair in pairs)]]
    rows += [[state_name(n), *cosines] for n, cosines in enumerate(zip(*states, strict=True))]
    title = f"{_whose(summary, side)}: cosine between occurrences, by {side}"
    columns = [Column("state"), *(Column(f"{pair.a} · {pair.b}", 2) for pair in pairs)]
    return Table(name=name, title=title, note=note, columns=columns, rows=rows)


def states(summary: Summary, side: str, name: str) -> Panel:
    """The word's vector in every state: its first values in each text, and its length."""
    rows: list[list[Cell]] = []
    for n in range(len(summary.occurrences[0].hidden_states)):
        held = [(each.label, state) for each in summary.occurrences if (state := each.hidden_states[n]) is not None]
        rows += [[state_name(n), label, _few(state), sum(x * x for x in state) ** 0.5] for label, state in held]
    columns = [Column("state"), Column(side), Column(f"first {VALUES} values"), Column("length", 2, unbounded=True)]
    title = f"{_whose(summary, side)}: hidden states"
    return Table(name=name, title=title, columns=columns, rows=rows)


def attends(summary: Summary, own: Occurrence, side: str, name: str) -> Panel:
    """Where an occurrence looks, layer by layer."""
    tokens, it = summary.tokens[own.text], f"{quoted(own.word)} in {side} {own.label}"
    sink = set(own.tokens) & {each.token for each in summary.sinks[own.text]}
    # a causal model's first token gives all its weight to itself
    only = len(own.tokens) == 1 and all(row.weights and row.weights[own.tokens[0]] == 1 for row in own.attends)
    alone = " It can attend only to itself." if 0 in sink and only else ""
    note = f"{it} is an attention sink: other tokens attend to its position, not to its meaning.{alone}"
    return Table(
        name=name, title=f"{it} attends to (mean of heads)", note=note if sink else "",
        columns=[Column("layer"), Column("special", 2), _looks_column(own)],
        rows=[[str(row.layer), row.special, _looks_in_row(row, tokens)] for row in own.attends],
    )  # fmt: skip


def single_heads(summary: Summary, own: Occurrence, side: str) -> Panel:
    """Where an occurrence looks in the single heads that were asked for."""
    tokens, it = summary.tokens[own.text], f"{quoted(own.word)} in {side} {own.label}"
    return Table(
        name=f"Single heads, {side} {own.label}", title=f"{it} attends to, single heads", screen=True,
        columns=[Column("layer"), Column("head"), Column("special", 2), _looks_column(own)],
        rows=[[str(row.layer), str(row.head), row.special, _looks_in_row(row, tokens)] for row in own.heads],
    )  # fmt: skip


def _looks_column(own: Occurrence) -> Column:
    sinks = any(row.sinks for row in own.attends)
    return Column(
        "sinks, then other tokens with the largest weights" if sinks else "other tokens with the largest weights"
    )


def _looks_in_row(row: Attended, tokens: Sequence[Token]) -> Shares:
    """Sinks, then the largest others."""
    sinks = [("first token (sink)" if s.token == 0 else f"{s.text} ({s.token}, sink)", s.weight) for s in row.sinks]
    return Shares([*sinks, *((called(s.token, tokens), s.weight) for s in row.top)], apart=len(sinks))


def updates(word: WordUpdates, summary: Summary, side: str, source: Summary | None, name: str) -> Panel:
    """Tell each layer's step, and the shares that attention (by token) and the rest of the layer have in it."""
    own = next(each for each in summary.occurrences if each.label == word.occurrence)
    steps = word.updates or []
    crosses = any(step.cross for step in steps)
    of = source if crosses and source is not None else summary
    sinks = {sink.token for sink in of.sinks[own.text]}

    def named(part: Attending | None) -> Shares:
        top = () if part is None else part.top
        names = [
            (called(each.token, of.tokens[own.text]) + ", sink" * (each.token in sinks), each.share) for each in top
        ]
        return Shares(names, digits=2, signed=True)

    rows: list[list[Cell]] = []
    for step in steps:
        blocks, most = (step.attention, step.cross)[: 1 + crosses], named(step.cross or step.attention)
        shares = [None if part is None else part.share for part in blocks]
        rows.append([str(step.layer), step.length, *shares, step.feed_forward_share, most])
    through = "cross-attention" if crosses else "attention"
    note = "Contributions to the residual update sum to 1. Rest: feed-forward and norms. "
    note += f"Tokens: contributions through {through}."
    parts = [Column("attention", 2), *([Column("cross", 2)] if crosses else []), Column("rest", 2)]
    return Table(
        name=name, title=f"Residual updates of {quoted(own.word)} in {side} {word.occurrence}",
        note=note if steps else f"Not shown: {word.refused}.",
        columns=[Column("layer"), Column("length", 2, unbounded=True), *parts, Column(LARGEST_SHARES)], rows=rows,
    )  # fmt: skip


def references(summary: Summary, name: str) -> Panel:
    """Reference words beside each occurrence, and beside the word in neutral sentences."""
    neutral = {each.word: each for each in summary.neutral}
    rows: list[list[Cell]] = []
    for each in sorted(summary.references, key=lambda r: [q.word for q in summary.references].index(r.word)):
        among = neutral.get(each.word)
        beside: list[Cell] = []
        if neutral:
            way = leaves_range(summary, each.occurrence, each.word, each.last_hidden_state)
            beside = ["", ""] if among is None else [neutral_range_in_words(among), way or ""]
        rows.append([each.word, each.occurrence, each.last_hidden_state, *beside, each.token_embeddings])
    note = "Each reference word is read as a separate text. Don't compare the two cosines: their spaces differ."
    if summary.control is not None and neutral:
        count = len(summary.control.sentences)
        note += f" Neutral: mean and range in {count} sentences that don't suggest a meaning."
    beside_columns = [Column("neutral"), Column("moved")] if neutral else []
    columns = [
        Column("word"),
        Column("text"),
        Column("last hidden state", 2),
        *beside_columns,
        Column("token embedding", 2),
    ]
    title = f"Cosine of {quoted(summary.word or '')} to reference words"
    return Table(name=name, title=title, note=note, columns=columns, rows=rows)


def static(static: Static) -> Panel:
    """The followed word's static vector beside those of reference words, the same in every text."""
    rows: list[list[Cell]] = [
        [each.word, "has no vector" if each.cosine is None else number(each.cosine)] for each in static.words[1:]
    ]
    note = f"Cosine of static vectors ({static.width} numbers, from {static.source}). They are the same in every text."
    columns = [Column("word"), Column("static")]
    title = f"{quoted(static.words[0].word)} as a static vector"
    return Table(name="Static vectors", title=title, note=note, columns=columns, rows=rows, screen=True)


def static_bars(static: Static) -> Bars:
    """The cosines of static vectors to the word's."""
    known = sorted(
        ((each.word, each.cosine) for each in static.words[1:] if each.cosine is not None), key=lambda e: -e[1]
    )
    title = f"Cosine to {quoted(static.words[0].word)} of static vectors ({static.source})"
    return Bars(name="Cosines", title=title, parts=known, part="word", unit="cosine", signed=False, digits=2)


def neutral_range_in_words(neutral: Neutral) -> str:
    """Write the mean of cosines in neutral sentences, and their range."""
    found = [each[-1] for each in (neutral.mean, neutral.low, neutral.high)]
    mean, low, high = ("–" if each is None else number(each) for each in found)
    return f"{mean} ({low} to {high})"


def _whose(summary: Summary, side: str) -> str:
    return quoted(summary.word or "") + (" in the targets" if side == "target" else "")


def _few(vector: Sequence[float]) -> str:
    return " ".join(f"{value:z.4f}" for value in vector[:VALUES]) + (" …" if len(vector) > VALUES else "")


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
