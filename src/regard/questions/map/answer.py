"""Hold one layer's attention over a whole text, as `matrix` and `windowed` find it; all numbers count from 0."""

import re
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from regard.display.answer import TracesAnswer
from regard.display.panels import InContext
from regard.display.sentences import Template, sentences
from regard.explain.frames import Row
from regard.explain.matrices import Band, OffsetMeans
from regard.explain.wording import quoted
from regard.questions.map import panels
from regard.text.word_pieces import is_content_word
from regard.trace.status import Status

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PART = 0.005  # fractions of all attention below it round to 0%

FAR = "In layer {layer}, tokens attend {mean:n} tokens away on average"
SPECIAL = "Special tokens receive {special:%} of all attention"
TABLE: list[list[Template]] = [
    [
        ("{query} attends to {key} {distance} tokens {way} (weight {weight}, layer {layer}, head {head}).", None),
        ("Apart from special tokens and sinks, no token attends more than {far} tokens away.", lambda n: n["long"]),
    ],
    [(FAR + ", from {least:n} in head {near} to {most:n} in head {far_head}.", None), (FAR + " ({whose}).", None)],
    [
        (SPECIAL + " and attention sinks {sinks:%}.", lambda n: min(n["special"], n["sinks"]) >= PART),
        (
            SPECIAL + ", from {low:%} in head {low_head} to {high:%} in head {high_head}.",
            lambda n: n["special"] >= PART,
        ),
        (SPECIAL + ".", lambda n: n["special"] >= PART),
        ("Attention sinks receive {sinks:%} of all attention.", lambda n: n["sinks"] >= PART),
        ("A learned sink, which isn't a token, takes {learned:%} of all attention.", lambda n: n["learned"] >= PART),
    ],
    [("Apart from special tokens and sinks, {token} receives most attention ({times:n} times the average).", None)],
]
AROUND = 24  # characters of the text that are shown on either side of a token


def of_matrix(matrix: "Matrix") -> list[str]:
    """Collect the numbers and write the sentences."""
    heads, reach = matrix.heads, matrix.tokens if matrix.band is None else matrix.band.window
    names = ("distance", "special", "sink_tokens", "sink")
    mean, special, sinks, learned = (sum(getattr(head, name) for head in heads) / len(heads) for name in names)
    numbers: dict[str, Any] = {"layer": matrix.layer, "far": matrix.far, "long": reach > matrix.far, "mean": mean}
    numbers |= {"special": special, "sinks": sinks, "learned": learned}
    numbers["whose"] = f"mean of {len(heads)} heads" if matrix.head is None else f"head {matrix.head}"
    near, furthest = (end(heads, key=lambda head: head.distance) for end in (min, max))
    if f"{near.distance:.2f}" != f"{furthest.distance:.2f}":
        numbers |= {"least": near.distance, "near": near.head, "most": furthest.distance, "far_head": furthest.head}
    low, high = (end(heads, key=lambda head: head.special) for end in (min, max))
    if f"{low.special:.0%}" != f"{high.special:.0%}":
        numbers |= {"low": low.special, "low_head": low.head, "high": high.special, "high_head": high.head}
    if matrix.pairs:
        # a link between two content words says more than one between pieces or repetitions of a word
        telling = (
            pair for pair in matrix.pairs
            if is_content_word(pair.query.text) and is_content_word(pair.key.text)
            and pair.query.text.strip().isalpha() and pair.key.text.strip().isalpha()
            and pair.query.text.casefold() != pair.key.text.casefold()
        )  # fmt: skip
        pair = next(telling, matrix.pairs[0])
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
    """A token of the text, its characters [start, end), and the text around it."""

    token: int
    text: str
    start: int
    end: int
    around: str

    def in_text(self) -> InContext:
        """Mark it in the text around it, blanks as one; a special token stands for no characters, and nowhere."""
        if self.start == self.end:
            return InContext("", self.text, "")
        at = min(self.start, AROUND)
        own = at + self.end - self.start
        parts = self.around[:at], self.around[at:own], self.around[own:]
        return InContext(*(re.sub(r"\s+", " ", part) for part in parts))


@dataclass(frozen=True)
class Receiver:
    """A token that is attended to. received: the weights on it, summed over all queries, mean of heads; 1 is average.

    largest: the largest weight that another token gives it in any head, None below 0.05. share: its part of all
    attention. sink: whether it is an attention sink.
    """

    place: TokenInText
    received: float
    largest: float | None
    share: float
    special: bool
    sink: bool


@dataclass(frozen=True)
class FarPair:
    """A query that attends to a key far from it, in one head."""

    head: int
    query: TokenInText
    key: TokenInText
    weight: float
    distance: int


@dataclass(frozen=True)
class HeadFigures:
    """Means over the queries of one head: entropy in nats, distance in tokens, shares of special tokens, of a sink that
    the head has learned (no token), and of sink_tokens, those that are attention sinks."""

    head: int
    entropy: float
    distance: float
    special: float
    sink: float
    sink_tokens: float


@dataclass(frozen=True, eq=False, repr=False)
class Matrix(TracesAnswer):
    """One layer's attention over a whole text, of one head or (head None) the mean of all.

    near: the mean weight of each head at each distance up to 64 tokens. receivers: the tokens that receive most. pairs:
    the largest weights between tokens more than far apart, special ones and attention sinks aside, in any of the heads
    shown. unattended: how many tokens get less than 0.05 from every other one, in each head. picture: mean weights of
    cells, query down and key across; None of a text that was read in windows, which has a band in its place, and no
    traces. received: what the keys of each of the picture's columns, or of as many parts of the text, receive, as in
    Receiver, mean over them. why: the reason for the layer, where it was chosen.
    """

    format: ClassVar[str] = "regard map"
    one_line: ClassVar[bool] = True  # it has 65,536 numbers: one a line would be most of the file
    findings = of_matrix
    panels = panels.of_matrix

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
    why: str = field(default="", kw_only=True)

    @property
    def status(self) -> Status:
        """How it was computed."""
        return self.about.statuses[0]

    def title(self) -> str:
        """Say of how many tokens, how they were read, and which layer and heads."""
        read, band = "", self.band
        if band is not None:
            read = f" read in {band.windows} windows of {band.window} tokens, stride {band.stride}"
        heads = f"mean of {len(self.heads)} heads" if self.head is None else f"head {self.head}"
        return f"Attention of {self.tokens:,} tokens{read}, layer {self.layer}, {heads}"

    def exactness(self) -> list[str]:
        """Say why it is this layer, where nobody asked for one."""
        return [self.why] if self.why else []

    def rows(self) -> list[Row]:
        """List one row a far pair: its head, weight and distance, the tokens and their numbers."""
        return [
            {
                "head": pair.head, "weight": pair.weight, "distance": pair.distance, "query": pair.query.token,
                "key": pair.key.token, "query_text": pair.query.text, "key_text": pair.key.text,
            }
            for pair in self.pairs
        ]  # fmt: skip

    def data(self) -> dict[str, object]:
        """Give all of it but the traces."""
        own = asdict(replace(self, traces=()))
        return {name: each for name, each in own.items() if name not in ("about", "traces", "names", "why")}

    def opening(self) -> dict[str, str | int | None]:
        """Return the map of this layer and head, at the strongest far link that the sentences tell."""
        token = self.pairs[0].query.token if self.pairs else None
        return {"view": "map", "layer": self.layer, "head": self.head, "token": token}

    def layers(self) -> list[int]:
        """This one alone."""
        return [self.layer]

    def painted(self) -> "tuple[Figure, list[str]]":
        """Draw it over its text."""
        from regard.questions.map.picture import paint_map

        return paint_map(self), []
