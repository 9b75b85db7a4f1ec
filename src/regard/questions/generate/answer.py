"""Show the probability of each token that a causal model wrote, also in a steered text."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from regard.capture.interventions.activations import steer
from regard.display.answer import MAX_TITLE, Read, TracesAnswer
from regard.display.panels import Cell, Column, Data, Panel, Shares, Strip, Table
from regard.display.sentences import Template, sentences
from regard.errors import RegardError, control_name
from regard.explain.logits import names_of
from regard.explain.weights.attended import check_layer
from regard.explain.wording import count_of_tokens, fixed, named, number
from regard.generation.generator import Generated
from regard.models.model import Model
from regard.models.readout import Readout
from regard.questions.generate.writing import Writing, WrittenToken, describe_writing
from regard.shown import Row
from regard.text.quoting import quoted, visible
from regard.text.tokens import Token, shortened
from regard.text.words import FUNCTION_WORDS, spelling, wordlike, words
from regard.trace.trace import Trace

if TYPE_CHECKING:
    from regard.web.page import Page

ENDED = {"end": "ended the text itself", "stop": "stopped at a stop string", "length": "stopped at the token limit"}
MAX_ALTERNATIVES = 3  # other likely tokens in a table row
TABLE: list[list[Template]] = [
    [("The model wrote {said} (probability {its}). Only the last {few} {layers} layers would have predicted it.",
      None),
     ("The model wrote {said} (probability {its}). From layer {since} on, each would have predicted it.", None)],
    [("The model wrote nothing after the prompt.", lambda n: n["nothing"]),
     ("When writing {at}, the model attended unusually strongly to {key} ({weight}, {head}).", None)],
    [("The least certain token was {least} (probability {probability}, with {other} at {chance}).", None),
     ("The least certain token was {least} (probability {probability}).", None)],
]  # fmt: skip
STEERED: list[list[Template]] = [
    [("Steering changed no token: try a larger {strength} or another {layer}.", lambda n: n["same"]),
     ("The texts differ from written token {at}: {plain} in the plain text, {steered} in the steered text.", None)],
    [("The least certain token was {plain_least} ({plain_chance}) in the plain text and {steered_least} "
      "({steered_chance}) in the steered text.", lambda n: not n["same"])],
]  # fmt: skip


def notable_token(written: "Written") -> WrittenToken | None:
    """Return a likely new content word that only the last layers predict, None without a logit lens."""
    known, new = {*FUNCTION_WORDS}, set()
    for word in words(written.tokens):
        name = spelling(written.tokens, word).lower()
        plain = len(word) == 1 and wordlike(name) and not written.tokens[word[0]].special
        new |= {word[0]} if plain and name not in known else set()
        known.add(name)
    likely = [token for token in written.how.tokens if token.layers and token.late and token.token in new]
    return max(likely, key=lambda token: token.probability * (1 - token.late / len(token.layers)), default=None)


def generation_panels(answer: "Generation") -> list[Panel]:
    """Return panels of the text, its probabilities and least likely tokens, or of both texts and their differences."""
    likely: list[Panel] = []
    for name, written in answer.each:
        title = "Probability of each written token" + f", {name}" * bool(answer.push)
        likely.append(Strip(
            name=title, title=title, tokens=[token.text for token in written.how.tokens],
            values=[token.probability for token in written.how.tokens], unit="probability", picture=True,
            note="Probabilities before temperature and top-k.", tab="Probability" * bool(answer.push),
        ))  # fmt: skip
    if answer.steered is None:
        attended = _attention_to_prompt(answer.plain)
        return [_text_with_bars(answer.plain), *likely, *attended, least_likely(answer.plain.how.tokens)]
    lines: list[list[Cell]] = [[text.text for _, text in answer.each]]
    columns = [Column(name) for name, _ in answer.each]
    texts = Table(name="Texts", title="Plain and steered text", columns=columns, rows=lines, screen=True)
    start = answer.first_difference or 0  # the table begins at the first token that differs
    pairs = zip_longest(*(text.how.tokens[start:] for _, text in answer.each))
    cells = [[[quoted(token.text), token.probability] if token else ["", None] for token in pair] for pair in pairs]
    rows: list[list[Cell]] = [[f"{n}", *plain, *steered] for n, (plain, steered) in enumerate(cells, start + 1)]
    columns = [Column("token"), *(c for column in columns for c in (column, Column("probability", 2, bar=True)))]
    title = "Token by token" + (", from the first difference" if answer.first_difference is not None else "")
    note = "Tokens are counted from the first written token."
    table = Table(name="Token by token", title=title, note=note, columns=columns, rows=rows, screen=True)
    return [texts, *likely, table]


def _text_with_bars(written: "Written") -> Strip:
    """Return a strip of the whole text, with a bar for the probability of each written token."""
    pieces, start = [""] * len(written.tokens), 0  # each token's characters, up to the next token
    positions = [n for n, token in enumerate(written.tokens) if token.end > token.start]
    for n, after in zip(positions, [*positions[1:], None], strict=True):
        stop = len(written.text) if after is None else max(start, written.tokens[after].start)
        pieces[n], start = written.text[start:stop], stop
    chances = {token.token: token.probability for token in written.how.tokens}
    ended, wrote = ENDED[written.how.ended], count_of_tokens(len(chances))
    return Strip(
        name="Text", title="Probability of each written token (full bar: 1)", tokens=pieces,
        values=[chances.get(n) for n in range(len(pieces))], unit="probability",
        note=f"The model wrote {wrote} after a prompt of {written.how.given} and {ended}.",
        full=1.0, running=True, screen=True,
    )  # fmt: skip


def _attention_to_prompt(written: "Written") -> list[Panel]:
    """Return a strip with the attention to each word of the prompt, or no panel if nothing was written."""
    how, tokens = written.how, written.tokens
    excluded = {*how.sink_tokens, *(n for n, token in enumerate(tokens) if token.special)}
    spans = words(tokens[: how.given])
    grey = [n for n, word in enumerate(spans) if excluded & {*word}]
    weights = [sum(how.received[n] for n in word) for word in spans]
    largest = max((weight for n, weight in enumerate(weights) if n not in grey), default=0.0)
    if not how.tokens or largest == 0:
        return []
    in_grey = "; special tokens and attention sinks are in grey" * bool(grey)
    return [Strip(
        name="Attention to the prompt", unit="attention", screen=True, full=largest, special=grey,
        title=f"Attention to the prompt while writing, by word (full bar: {fixed(largest, 2)})",
        tokens=[spelling(tokens, word) or visible("".join(tokens[n].text for n in word)) for word in spans],
        values=weights,
        note=f"Mean of all layers, heads and rows that wrote a token{in_grey}.",
    )]  # fmt: skip


def least_likely(tokens: Sequence[WrittenToken]) -> Table:
    """Return a table of the written tokens, the least likely first, with other likely tokens."""
    rows: list[list[Cell]] = []
    for rare in sorted(tokens, key=lambda token: token.probability):
        others = [(quoted(other.text), other.probability) for other in rare.others[:MAX_ALTERNATIVES]]
        rows.append([f"{rare.token}", quoted(rare.text), rare.probability, Shares(others, digits=2, one_line=True)])
    columns = [Column("token"), Column("written"), Column("probability", 2, bar=True), Column("alternatives")]
    return Table(name="Least likely tokens", title="Least likely tokens", columns=columns, rows=rows, screen=bool(rows))


def generation_sentences(answer: "Generation") -> list[str]:
    """Return sentences on an unusual weight and the least likely token, or on where the steered text differs."""
    at, numbers = answer.first_difference, _text_numbers(answer.plain)
    if answer.steered is None:
        return sentences(TABLE, numbers)
    numbers = {
        "same": at is None, "at": at if at is None else at + 1, "strength": control_name("strength", "--strength"),
        "layer": control_name("layer", "--layer"),
    }  # fmt: skip
    for name, text in (("plain", answer.plain), ("steered", answer.steered)):
        facts, written = _text_numbers(text), text.how.tokens
        numbers |= {f"{name}_least": facts.get("least"), f"{name}_chance": facts.get("probability"), name: "the end"}
        if at is not None and at < len(written):
            chance = number(written[at].probability)
            numbers[name] = f"{named(text.tokens, written[at].token)} (probability {chance})"
    return sentences(STEERED, numbers)


def _text_numbers(text: "Written") -> dict[str, Any]:
    """Return the numbers and names that fill the templates of a text's sentences."""
    writing, tokens = text.how, text.tokens
    numbers: dict[str, Any] = {"nothing": not writing.tokens}
    unlikely = min(writing.tokens, key=lambda token: token.probability, default=None)
    late = notable_token(text)
    if late is not None:
        layers = len(late.layers) - 1
        alone = late.late <= layers / 2 and sum(layer.rank == 1 for layer in late.layers) == late.late
        numbers |= {"said": named(tokens, late.token), "its": late.probability, "layers": layers}
        numbers |= {"few": f"{late.late} of" if late.late > 1 else "of"} if alone else {"since": layers - late.late}
    if (first := late or unlikely) is not None and first.links:
        link = first.links[0]
        numbers |= {"at": named(tokens, first.token), "key": named(tokens, link.key), "weight": link.weight}
        numbers["head"] = f"layer {link.layer}, head {link.head}"
    if unlikely and len(writing.tokens) > 1:
        numbers |= {"least": named(tokens, unlikely.token), "probability": unlikely.probability}
        for other in unlikely.others[:1]:
            numbers |= {"other": quoted(other.text), "chance": other.probability}
    return numbers


@dataclass(frozen=True)
class Written:
    """A text that a model continued. given, new: the prompt and the written text. tokens: of both. how: the numbers."""

    given: str
    new: str
    tokens: Sequence[Token]
    how: Writing

    @property
    def text(self) -> str:
        """Return the prompt and the written text as one string."""
        return self.given + self.new


@dataclass(frozen=True, eq=False, repr=False)
class Generation(TracesAnswer):
    """A text that a model wrote. steered: the text with steered hidden states. push: a name for the steering."""

    format = "regard generate"
    findings = generation_sentences
    panels = generation_panels

    plain: Written
    steered: Written | None = None
    push: str = ""

    @property
    def each(self) -> list[tuple[str, Written]]:
        """Return (name, text) for the plain and, if there is one, the steered text."""
        return [("plain", self.plain), *([] if self.steered is None else [("steered", self.steered)])]

    def title(self) -> str:
        """Return the title, which names the prompt and the steering."""
        return f"Text generated after {shortened(self.plain.given, MAX_TITLE)}{'; ' if self.push else ''}{self.push}"

    def exactness(self) -> list[str]:
        """Return notes on the kind of probabilities and on the exactness of the logit lens."""
        lens = list(dict.fromkeys(version.how.lens for _, version in self.each if version.how.lens))
        return ["Probabilities are the model's own, before temperature and top-k.", *lens]

    @property
    def first_difference(self) -> int | None:
        """Return the number of the first written token that differs between the texts, or None if they are equal."""
        ids = [[token.id for token in written.how.tokens] for _, written in self.each]
        return next((n for n, (a, b) in enumerate(zip_longest(ids[0], ids[-1])) if a != b), None)

    def rows(self) -> list[Row]:
        """List one row per written token in text order: its probability, its rank, and the likeliest other token."""
        rows: list[Row] = []
        for name, token in ((name, token) for name, written in self.each for token in written.how.tokens):
            row: Row = {} if self.steered is None else {"written": name}
            row |= {"token": token.token, "text": token.text, "probability": token.probability, "rank": token.rank}
            other, chance = [*((other.text, other.probability) for other in token.others), (None, None)][0]
            rows.append(row | {"likeliest_other": other, "its_probability": chance})
        return rows

    def data(self) -> dict[str, object]:
        """Return the steering, and for each text its tokens with their numbers."""
        return {
            "steering": self.push or None,
            "written": [
                {"called": name, "text": text.text, "new": text.new} | asdict(text.how) for name, text in self.each
            ],
        }

    def opening(self) -> dict[str, str | int | None]:
        """Return the page's first token: from the first sentence, the least likely, or the first that differs."""
        tokens, at = self.plain.how.tokens, self.first_difference
        first = notable_token(self.plain) if at is None else next(iter(tokens[at:]), None)
        first = first or min(tokens, key=lambda token: token.probability, default=None)
        return {"token": None if first is None else first.token}

    def overview(self, page: "Page") -> Data | None:
        """Return the data of the written texts that the page's first view shows."""
        return page.writing_stage([version for _, version in self.each], [trace.trace for trace in self.traces])


def generate(model: Model, text: str, steering: Any = None, **options: Any) -> Generation:
    """Let a model continue a text, plain and, if requested, steered. steering: (towards, away, layer, strength)."""
    steered, push = None, ""
    if steering is not None:
        towards, away, layer, strength = steering
        traces = model.trace([towards, away], logits=False, attention_outputs=False)
        vector = steer((traces[0], traces[1]), layer=check_layer(traces[0], layer), strength=strength)
        steered, push = model.generate(text, interventions=[vector], **options), str(vector)
    return generated(model.generate(text, **options), steered, push)


def generated(plain: Generated, steered: Generated | None = None, push: str = "") -> Generation:
    """Return the answer for a causal model's text. steered: its steered text. push: a name for the steering."""
    results, names = ([plain], None) if steered is None else ([plain, steered], ("plain", "steered"))
    about = Read.of(*(result.trace for result in results))
    readout = None if plain.model is None else partial(Readout, plain.model, plain.trace.sides[-1])
    written = []
    for result in results:
        trace = result.trace
        if not isinstance(trace, Trace):
            raise RegardError("generation: got an encoder-decoder's target, expected text from a causal model")
        writing = describe_writing(trace, result.start, result.ended, names_of(trace), readout)
        written.append(Written(result.text.removesuffix(result.new), result.new, trace.tokens, writing))
    return Generation(written[0], written[1] if steered else None, push, traces=results, names=names, about=about)
