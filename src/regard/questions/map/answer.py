"""Define the result of `regard map`: one layer's attention over a whole text. All numbers count from 0."""

import math
import re
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from regard.display.answer import TracesAnswer
from regard.display.panels import Cell, Column, Curve, Curves, Heat, InContext, Number, Panel, Table
from regard.display.sentences import Template, sentences
from regard.explain.matrices import Band, OffsetMeans
from regard.explain.texts.highlights import LINKS, Link, numbers_of_links
from regard.explain.weights.sinks import sinks
from regard.explain.wording import number, quoted
from regard.shown import Row
from regard.text.words import is_content_word

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MIN_FULL_BAR = 2.0  # times the average: smallest value that a full bar can have
ATTENDED = 0.05  # smallest weight from another token by which a token counts as attended
FULL_QUANTILE = 0.98  # fraction of parts within a full bar; else one special token would make all others flat
PART = 0.005  # smaller fractions of all attention are printed as 0%

FAR = "In layer {layer}, tokens attend {mean:n} tokens away on average"
SPECIAL = "Special tokens receive {special:%} of all attention"
TABLE: list[list[Template]] = [
    [(LINKS, None),
     ("{query} attends to {key} {distance} tokens {way} (weight {weight}, layer {layer}, head {head}).", None),
     ("Apart from special tokens and sinks, no token attends more than {far} tokens away.", lambda n: n["long"])],
    [(FAR + ", from {least:n} in head {near} to {most:n} in head {far_head}.", None), (FAR + " ({whose}).", None)],
    [(SPECIAL + " and attention sinks {sinks:%}.", lambda n: min(n["special"], n["sinks"]) >= PART),
     (SPECIAL + ", from {low:%} in head {low_head} to {high:%} in head {high_head}.", lambda n: n["special"] >= PART),
     (SPECIAL + ".", lambda n: n["special"] >= PART),
     ("Attention sinks receive {sinks:%} of all attention.", lambda n: n["sinks"] >= PART),
     ("A learned sink, which isn't a token, takes {learned:%} of all attention.", lambda n: n["learned"] >= PART)],
    [("Apart from special tokens and sinks, {token} receives most attention ({times:n} times the average).", None)],
]  # fmt: skip
AROUND = 24  # characters of context on either side of a token


def _received_along_map(answer: "Matrix") -> Curves:
    """Return curves of the attention received along the text, without special tokens above a full bar."""
    count, received = len(answer.received), list[Number](answer.received)
    full = max(MIN_FULL_BAR, sorted(answer.received)[int(FULL_QUANTILE * (count - 1))])
    tall = [token for token in answer.receivers if (token.special or token.sink) and token.received > full]
    parts = [((n + 1) * count - 1) // answer.tokens for n in range(answer.tokens)]  # the number of each token's part
    for part in {parts[token.place.token] for token in tall}:
        tokens = [token.received for token in tall if parts[token.place.token] == part]
        rest = parts.count(part) - len(tokens)
        received[part] = (answer.received[part] * (rest + len(tokens)) - sum(tokens)) / rest if rest else None
    omitted = ", ".join(f"{token.place.text.strip()} {number(token.received, '.2f')}" for token in tall)
    starts = [n * answer.tokens // count for n in range(count)]
    return Curves(
        name="Along the text",
        title=f"Attention received along the text ({answer.tokens:,} tokens), layer {answer.layer}, {answer.whose}",
        note="The average token receives 1.", x="token", y="times the average",
        caption=f"Left out to keep the others visible: {omitted}." if omitted else "",
        series=[Curve("received", starts, received)], screen=True, full=full,
    )  # fmt: skip


def _far_pairs_of_map(answer: "Matrix") -> Table:
    """Return a table of the largest weights between distant tokens, with each token in its context."""
    several = len(answer.heads) > 1
    columns = [
        Column("weight", 2, bar=True), *([Column("head", 0)] if several else []), Column("distance", 0),
        Column("query"), Column("key"), Column("tokens", detail=True),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [
            pair.weight, *([pair.head] if several else []), pair.distance, pair.query.in_text(), pair.key.in_text(),
            f"{pair.query.token}→{pair.key.token}",
        ]
        for pair in answer.pairs
    ]  # fmt: skip
    return Table(
        name="Far pairs", columns=columns, rows=rows, screen=True,
        title=f"Strongest links over more than {answer.far} tokens, layer {answer.layer}, "
        + ("all heads" if answer.head is None else f"head {answer.head}"),
        note="Special tokens and attention sinks are left out. The query attends to the key.",
    )  # fmt: skip


def _receivers_of_map(answer: "Matrix") -> Table:
    """Return a table of the tokens that receive most attention, each in its context."""
    rows: list[list[Cell]] = [
        [
            receiver.place.text + (" (special)" if receiver.special else " (sink)" if receiver.sink else ""),
            receiver.place.token, receiver.received, receiver.largest, receiver.place.in_text(),
        ]
        for receiver in answer.receivers
    ]  # fmt: skip
    note = (
        "Received is the sum of the weights on the token (average: 1). Max weight is the largest from another token in "
        f"any head. It is less than {number(ATTENDED)} for {answer.unattended:,} of {answer.tokens:,} tokens."
    )
    columns = [Column("token"), Column("position", 0), Column("received", 2, bar=True, unbounded=True)]
    return Table(
        name="Who receives most", rows=rows, note=note, screen=not answer.pairs,
        title=f"Tokens that receive most attention, layer {answer.layer}, {answer.whose}",
        columns=[*columns, Column("max weight", 2), Column("context")],
    )  # fmt: skip


def _heads_of_map(answer: "Matrix") -> Table:
    """Return a table of each head's spread, mean distance, and attention to special tokens and sinks."""
    shares = {"special": "% to special tokens", "sink_tokens": "% to sink tokens", "sink": "% to learned sink"}
    names = [name for name in shares if name == "special" or any(getattr(head, name) > 0 for head in answer.heads)]
    columns = [Column("head", 0), Column("spread", 2, unbounded=True), Column("distance", 2, bar=True, unbounded=True)]
    return Table(
        name="Each head", title=f"Layer {answer.layer}, {'each head' if answer.head is None else answer.whose}",
        columns=[*columns, *(Column(shares[name], 2, unbounded=True) for name in names)],
        rows=[[head.head, math.exp(head.entropy), head.distance, *(100 * getattr(head, name) for name in names)]
              for head in answer.heads],
        note="Means over all queries, in tokens. Spread is the number of equally attended tokens (exp(entropy)).",
    )  # fmt: skip


def near_offsets_of_map(answer: "Matrix") -> Heat:
    """Return a heat map of each head's mean weight by offset. For causal models, it has only earlier tokens."""
    values, first = answer.near.values, answer.near.first
    nonzero = [n for n in range(len(values[0])) if any(row[n] for row in values)] or [0]
    shown = range(nonzero[0], nonzero[-1] + 1)
    return Heat(
        name="By distance", title=f"Mean weight by distance, layer {answer.layer}, per head",
        note="Offsets below 0 are earlier tokens.", axes=("head", "offset"),
        rows=[f"head {head.head}" for head in answer.heads], columns=[str(first + n) for n in shown],
        values=[[row[n] for n in shown] for row in values], unit="mean weight",
    )  # fmt: skip


def matrix_sentences(matrix: "Matrix") -> list[str]:
    """Return sentences on the first link, distances, special tokens and sinks, and the top receiver."""
    heads, reach = matrix.heads, matrix.tokens if matrix.band is None else matrix.band.window
    names = ("distance", "special", "sink_tokens", "sink")
    mean, special, sinks, learned = (sum(getattr(head, name) for head in heads) / len(heads) for name in names)
    numbers: dict[str, Any] = {"layer": matrix.layer, "far": matrix.far, "long": reach > matrix.far, "mean": mean}
    numbers |= {"special": special, "sinks": sinks, "learned": learned, "whose": matrix.whose}
    near, furthest = (end(heads, key=lambda head: head.distance) for end in (min, max))
    if f"{near.distance:.2f}" != f"{furthest.distance:.2f}":
        numbers |= {"least": near.distance, "near": near.head, "most": furthest.distance, "far_head": furthest.head}
    low, high = (end(heads, key=lambda head: head.special) for end in (min, max))
    if f"{low.special:.0%}" != f"{high.special:.0%}":
        numbers |= {"low": low.special, "low_head": low.head, "high": high.special, "high_head": high.head}
    pair = matrix.main_pair
    if matrix.link is not None:
        numbers |= numbers_of_links(matrix.traces[0].tokens, [matrix.link])
    elif pair is not None:
        query, key = quoted(pair.query.text), quoted(pair.key.text)
        numbers |= {"query": query, "key": f"another {key}" if query == key and "“" in key else key}
        numbers |= {"distance": pair.distance, "way": "ahead" if pair.key.token > pair.query.token else "back"}
        numbers |= {"weight": pair.weight, "head": pair.head}
    first = next((receiver for receiver in matrix.receivers if not receiver.special and not receiver.sink), None)
    if first is not None:
        numbers |= {"token": f"{quoted(first.place.text)} (token {first.place.token})", "times": first.received}
    return sentences(TABLE, numbers)


@dataclass(frozen=True)
class TokenInText:
    """A token's number and text, its characters [start, end) in the whole text, and its context."""

    token: int
    text: str
    start: int
    end: int
    around: str

    @property
    def is_word(self) -> bool:
        """Return whether the token is a whole content word."""
        return is_content_word(self.text) and self.text.strip().isalpha()

    def in_text(self) -> InContext:
        """Return the token in its context, with blanks collapsed. Special tokens have no context."""
        if self.start == self.end:
            return InContext("", self.text, "")
        at = min(self.start, AROUND)
        stop = at + self.end - self.start
        parts = self.around[:at], self.around[at:stop], self.around[stop:]
        return InContext(*(re.sub(r"\s+", " ", part) for part in parts))


@dataclass(frozen=True)
class Receiver:
    """A token with the attention that it receives. received: sum over queries, mean over heads (on average 1).

    largest: the largest weight from another token in any head, None below 0.05. share: the fraction of all attention.
    sink: whether it is an attention sink.
    """

    place: TokenInText
    received: float
    largest: float | None
    share: float
    special: bool
    sink: bool


@dataclass(frozen=True)
class FarPair:
    """A query and a distant key, with the weight between them in one head and their distance in tokens."""

    head: int
    query: TokenInText
    key: TokenInText
    weight: float
    distance: int


@dataclass(frozen=True)
class HeadFigures:
    """Means over one head's queries: entropy in nats, distance in tokens, and fractions of attention to special tokens,
    to the head's learned sink (which isn't a token), and to sink_tokens (tokens that are attention sinks)."""

    head: int
    entropy: float
    distance: float
    special: float
    sink: float
    sink_tokens: float


@dataclass(frozen=True, eq=False, repr=False)
class Matrix(TracesAnswer):
    """One layer's attention over a whole text, of one head or (head None) as the mean of all heads.

    near: each head's mean weight at each offset up to 64 tokens. receivers: the tokens that receive most. pairs: the
    largest weights in the shown heads between tokens more than `far` apart, without special tokens and attention sinks.
    link: the link that `see` names first, or the first of a requested layer, for a short text in which regard chose
    what counts as far. unattended: the number of tokens that receive less than 0.05 from every other token, in each
    head. picture: mean weights of cells, queries down and keys across. It is None for a text that was read in several
    windows, which has a band instead, and no traces. received: the mean attention (as in `Receiver`) that the tokens of
    each picture column, or of each equal part of the text, receive. why: the reason for the layer, if regard chose it.
    """

    format = "regard map"
    one_line = True  # otherwise the JSON file would have 65,536 lines of numbers
    findings = matrix_sentences

    layer: int
    head: int | None
    tokens: int
    characters: int
    heads: list[HeadFigures]
    near: OffsetMeans
    receivers: list[Receiver]
    unattended: int
    far: int
    pairs: list[FarPair]
    picture: list[list[float]] | None
    band: Band | None
    received: list[float]
    link: Link | None = field(default=None, kw_only=True)
    why: str = field(default="", kw_only=True)

    @property
    def whose(self) -> str:
        """Return the name of the head, or, for example, "mean of 12 heads"."""
        return f"mean of {len(self.heads)} heads" if self.head is None else f"head {self.head}"

    def panels(self) -> list[Panel]:
        """Return panels of attention along the text, distant pairs (if any), top receivers, heads and offsets."""
        pairs = [_far_pairs_of_map] if self.pairs else []
        parts = _received_along_map, *pairs, _receivers_of_map, _heads_of_map, near_offsets_of_map
        return [part(self) for part in parts]

    def title(self) -> str:
        """Return a title with the number of tokens, the windows (if any), the layer and the head."""
        read, band = "", self.band
        if band is not None:
            read = f" read in {band.windows} windows of {band.window} tokens, stride {band.stride}"
        return f"Attention of {self.tokens:,} tokens{read}, layer {self.layer}, {self.whose}"

    @property
    def main_pair(self) -> FarPair | None:
        """The strongest distant link between two different content words, which says most, or else the strongest."""
        different = (pair for pair in self.pairs if pair.query.text.casefold() != pair.key.text.casefold())
        words = (pair for pair in different if pair.query.is_word and pair.key.is_word)
        return next(words, self.pairs[0] if self.pairs else None)

    def exactness(self) -> list[str]:
        """Return the reason for the layer, if regard chose it."""
        return [self.why] if self.why else []

    def rows(self) -> list[Row]:
        """Return one row per distant pair: head, weight, distance, and the tokens with their numbers."""
        return [
            {
                "head": pair.head, "weight": pair.weight, "distance": pair.distance, "query": pair.query.token,
                "key": pair.key.token, "query_text": pair.query.text, "key_text": pair.key.text,
            }
            for pair in self.pairs
        ]  # fmt: skip

    def data(self) -> dict[str, object]:
        """Return every field except the traces and notes, as JSON data."""
        fields = asdict(replace(self, traces=()))
        return {name: value for name, value in fields.items() if name not in ("about", "traces", "names", "why")}

    def opening(self) -> dict[str, str | int | None]:
        """Return the view at which the page opens: the map, at the link and head of the first sentence.

        Without such a link, it is the token that attends most to the top receiver: a content word if there is one, and
        no sink of any layer.
        """
        opening: dict[str, str | int | None] = {"view": "map", "layer": self.layer, "head": self.head}
        if self.link is not None:
            return opening | {"head": self.link.head, "token": self.link.query, "key": self.link.key}
        if (pair := self.main_pair) is not None:
            return opening | {"head": pair.head, "token": pair.query.token, "key": pair.key.token}
        (trace,) = self.traces
        apart = {n for n, token in enumerate(trace.tokens) if token.special} | {sink.token for sink in sinks(trace)}
        places = [receiver.place for receiver in self.receivers if receiver.place.token not in apart]
        if places:
            top = next((place for place in places if place.is_word), places[0]).token
            weights = trace.attention[self.layer][:, :, top]
            column = weights.mean(0) if self.head is None else weights[self.head]
            column[[*apart, top]] = 0
            opening["token"] = int(column.argmax())
        return opening

    def layers(self) -> list[int]:
        """Return the matrix's layer, the only layer of the page."""
        return [self.layer]

    def painted(self) -> "tuple[Figure, list[str]]":
        """Draw the distant links over the text and the matrix, as a figure without notes."""
        from regard.questions.map.picture import paint_map

        return paint_map(self), []
