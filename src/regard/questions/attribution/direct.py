"""Direct logit attribution: split a logit, a logit difference or a cosine into direct contributions of components.

    logit[token] = Σ_a (final norm applied to writer a's output at this position) · the token's column of the head

Direct logit attribution (Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits"; nostalgebraist 2020
for reading the stream through the head) splits into embeddings, heads by source token, feed-forward layers, and biases.
The statistics of all norms are frozen. A component belongs to its writer, whatever the writer's input was.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from regard.capture.gradients.score_path import AttributionTarget, Side, SideParts, Writer, outcome_path
from regard.display.answer import Answer, Read
from regard.display.panels import Bars, Behind, Cell, Column, Heat, Panel, Strip, Table, TokenText, decimals
from regard.display.sentences import Template, sentences
from regard.errors import InexactError, RegardError
from regard.explain.causes.score_writers import By, named, writers_by_group
from regard.explain.wording import Place, exactly_split, number, signed, tokens_of
from regard.models.inputs import class_or_token_id
from regard.models.model import Model
from regard.models.readout import bind_to_trace
from regard.shown import Row
from regard.text.quoting import direction as text_direction
from regard.text.quoting import quoted
from regard.text.tokens import Token
from regard.text.words import spelling, words
from regard.trace.trace import PairTrace, Trace

TOLERANCE = 1e-4  # largest difference of the components' sum from the outcome, relative to the sum of absolute values
SAME = 1e-3  # largest difference between the outcome and the trace's outcome, relative to the same sum
# Runs the model and returns the components of an outcome's mean over some tokens.
Split = Callable[[AttributionTarget, Sequence[int]], SideParts]
HeadRow = tuple[Side | None, bool, int]
Heads = dict[HeadRow, dict[int, list[float]]]
COMPONENTS = "Components"  # the page's tab with bars for the components
COLOURS = "Red increases the outcome, blue reduces it."
MIN_PART_OF_LARGEST = 0.05  # of the largest contribution; sentences name no smaller component

TABLE: list[list[Template]] = [
    [("The scores sum to {sum} instead of {due}, so don't trust single scores. Try more steps.", None)],
    [
        ("The largest contribution to the {outcome} ({value}) is {most_adds}, from {most}.", None),
        ("The largest reduction of the {outcome} ({value}) is {least_adds}, from {least}.", None),
        ("Every contribution to the {outcome} ({value}) is 0.", None),
    ],
    [("Among heads, {heads}.", None), ("The largest reduction is {least_adds}, from {least}.", lambda n: "most" in n)],
    [("Summed over heads, {tokens}.", None)],
    [("If the baseline embedding replaces every token, the outcome is {baseline}.", None)],
]


def attribution_sentences(result: "Attribution") -> list[str]:
    """Return sentences on the components, heads and source tokens that contribute most."""
    parts, sources = result.by(), result.by("source", words=result.unit == "word")
    numbers = extreme_parts(parts) | {"outcome": result.outcome, "value": as_text(result.value)}
    if "head " not in numbers.get("most", ""):
        numbers["heads"] = extreme_parts([part for part in parts if "head " in part[0]])["clauses"]
    tokens = [(f"attention to {source_token(name)}", value) for name, value in sources if "attention from " in name]
    return sentences(TABLE, numbers | {"tokens": extreme_parts(tokens)["clauses"]})


def source_token(name: str) -> str:
    """Return the source token in a component's name, with its number and stack: “run” (2) of the encoder."""
    token = name.partition("attention from ")[2]
    return token.replace(" of the decoder", " of the encoder") if name.startswith("cross-") else token


def as_text(value: float, *others: float) -> str:
    """Format an outcome with two decimals, or with more if it and the other values are small."""
    return number(value, f".{decimals([value, *others])}f")


def extreme_parts(parts: list[tuple[str, float]]) -> dict[str, Any]:
    """Return the largest positive and negative contribution, if not small, for sentences. parts: in order of size."""
    numbers: dict[str, Any] = {}
    clauses, form = [], f".{decimals(value for _, value in parts)}f"
    for key, sign, verb in (("most", 1, "contributes most"), ("least", -1, "reduces the outcome most")):
        name, value = next((part for part in parts if part[1] * sign > 0), ("", 0.0))
        if name and abs(value) >= MIN_PART_OF_LARGEST * abs(parts[0][1]):
            name = re.sub(r"layer (\d+), (feed-forward|biases)", r"the \2 of layer \1", name)
            name = re.sub(r"(^\w+ embedding|^biases )", r"the \1", name).replace("forward of", "forward block of")
            numbers |= {key: name, f"{key}_adds": signed(value, form)}
            clauses.append(f"{name} {verb} ({signed(value, form)})")
    return numbers | {"clauses": " and ".join(clauses) or None}


def attribution_panels(result: "Attribution") -> list[Panel]:
    """Return the grid of heads, strips of source tokens, table of layers, and bars of all components."""
    heads, words = _heads_by_source(result), result.unit == "word"
    by_source = result.by("source", words=words)
    sources = [(source_token(name), value) for name, value in by_source if "attention from " in name]
    return [
        *([_heads_grid(result, heads)] if heads else []),
        *(_source_strip(result, heads, side) for side in dict.fromkeys(map(_text_of_row, heads))),
        _layers_table(result),
        Bars(
            name="Components", title=result.title(), note=f"Heads are split by source {result.unit}", part="component",
            unit="contribution", whole=result.value, parts=short_heads(result.by("token", words=words)), screen=True,
            picture=True, tab=COMPONENTS,
        ),
        Bars(
            name="Sources", title=f"Contributions of attention by source {result.unit}, summed over heads",
            part=f"source {result.unit}", unit="contribution", parts=sources,
            whole=sum((value for _, value in sources), 0.0), screen=True, tab=COMPONENTS,
        ),
    ]  # fmt: skip


def short_heads(parts: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """Shorten head names for tables and plots: "layer 5, head 7" to L5H7."""
    return [(re.sub(r"layer (\d+), (cross )?head (\d+)", r"\2L\1H\3", name), value) for name, value in parts]


def _heads_by_source(result: "Attribution") -> Heads:
    """Return each source token's contribution by row (stack, whether cross-attention, layer) and head."""
    heads: Heads = {}
    for writer, value in zip(result.parts.writers, result.parts.vectors[:, 0].tolist(), strict=True):
        if writer.kind == "attention" and writer.head is not None:
            assert writer.layer is not None and writer.source is not None  # noqa: PT018
            row = writer.side, writer.cross, writer.layer
            empty = [0.0] * len(result.tokens[_text_of_row(row)])
            heads.setdefault(row, {}).setdefault(writer.head, empty)[writer.source] += value
    order = {None: 0, "encoder": 1, "decoder": 2}
    return dict(sorted(heads.items(), key=lambda item: (order[item[0][0]], item[0][2], item[0][1])))


def _text_of_row(row: HeadRow) -> Side | None:
    """Return the stack whose text the heads of a row attend to."""
    return "encoder" if row[1] else row[0]


def _heads_grid(result: "Attribution", heads: Heads) -> Heat:
    """Return a grid of heads, one row per attention call, with the contributions of each head's source tokens."""
    names = [f"{side} layer {n}{', cross' * cross}" if side else f"layer {n}" for side, cross, n in heads]
    texts = [result.tokens[_text_of_row(row)] for row in heads]
    columns, known = range(1 + max(map(max, heads.values()))), list(dict.fromkeys(map(tuple, texts)))
    behind = Behind(
        note="The head's contribution, split by the token that it attends to.",
        texts=[TokenText(text := [token.text for token in tokens], text_direction("".join(text))) for tokens in known],
        of=[known.index(tuple(text)) for text in texts],
        values=[[row.get(head) for head in columns] for row in heads.values()],
    )
    return Heat(
        name="Heads", title="Contribution of each head", note=f"{COLOURS} Choose a head to see its source tokens.",
        axes=("layer", "head"), rows=names, columns=[f"head {head}" for head in columns],
        values=[[sum(row[head]) if head in row else None for head in columns] for row in heads.values()],
        unit="contribution", signed=True, behind=behind,
    )  # fmt: skip


def _source_strip(result: "Attribution", heads: Heads, side: Side | None) -> Strip:
    """Return a strip of a text's tokens with the contributions of the attention to each token, summed over heads."""
    parts = [by_token for row, values in heads.items() if _text_of_row(row) == side for by_token in values.values()]
    of = "" if side is None else f" of the {side}"
    return Strip(
        name=f"Source tokens{of}", title=f"Source tokens{of}", tokens=[token.text for token in result.tokens[side]],
        values=[sum(values) for values in zip(*parts, strict=True)], signed=True, unit="contribution",
        note="Direct contributions by attention to each token, summed over heads. Paths through other tokens are not "
        "included.",
    )  # fmt: skip


def _layers_table(result: "Attribution") -> Table:
    """Return a table of each layer's contribution, split into attention, feed-forward and biases."""
    kinds = ("attention", "feed-forward", "bias")
    layers: dict[tuple[str, int | None], dict[str, float]] = {}
    for writer, value in zip(result.parts.writers, result.parts.vectors[:, 0].tolist(), strict=True):
        sums = layers.setdefault((writer.side or "", writer.layer), dict.fromkeys(("other", *kinds), 0.0))
        sums[writer.kind if writer.kind in kinds and writer.layer is not None else "other"] += value
    rows: list[list[Cell]] = []
    for (side, layer), sums in sorted(
        layers.items(), key=lambda item: (item[0][0], -1 if item[0][1] is None else item[0][1])
    ):
        name = "outside the layers" if layer is None else f"layer {layer}"
        cells: list[Cell] = [None if layer is None else sums[kind] for kind in kinds]
        rows.append([f"{side} {name}".strip(), sum(sums.values()), *cells])
    totals = [sum(sums[kind] for (_, n), sums in layers.items() if n is not None) for kind in kinds]
    parts = (Column(kind, 2, signed=True) for kind in ("attention", "feed-forward", "biases"))
    return Table(
        name="Layers", title="Contribution of each layer", rows=rows,
        note="The layers, the embeddings and the other biases (outside the layers) sum to the outcome.",
        total=["all", result.value, *totals],
        columns=[Column("layer"), Column("sum", 2, bar=True, signed=True), *parts],
    )  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Attribution(Answer):
    """An outcome split into components. outcome: its name. value: its value, the sum of all components.

    error: the difference between this sum and the value, relative to the sum of absolute values. unit: whether source
    tokens are shown separately or summed to words.
    """

    format = "regard attribute"
    findings, panels = attribution_sentences, attribution_panels

    outcome: str
    value: float
    error: float
    parts: SideParts = field(repr=False)
    tokens: Mapping[Side | None, Sequence[Token]] = field(repr=False)
    unit: Literal["token", "word"] = field(default="token", kw_only=True)

    def by(self, by: By = "writer", *, words: bool = False) -> list[tuple[str, float]]:
        """Return each component's name and contribution, the largest absolute values first. They sum to the value.

        by: the kind of component: a "writer" (an embedding, a head, a feed-forward layer, a layer's biases), a writer's
        attention to one "token", all attention to one "source" token, a "layer", or a "kind". words: sum the source
        tokens of each word, under the number of its first token.
        """
        groups, sums = writers_by_group(self.parts, by)
        tokens: Mapping[Side | None, Sequence[Token]] = self.tokens
        if words:
            groups, sums, tokens = self._by_word(groups, sums)
        order = sums[:, 0].abs().sort(descending=True, stable=True).indices.tolist()
        return [(named(groups[n], by, tokens), float(sums[n, 0])) for n in order]

    def _by_word(
        self, groups: tuple[Writer, ...], sums: Float[Tensor, "P 1"]
    ) -> tuple[tuple[Writer, ...], Float[Tensor, "p 1"], dict[Side | None, list[Token]]]:
        """Merge groups whose source tokens belong to one word. Return groups, sums, and tokens with words as texts."""
        first: dict[Side | None, list[int]] = {}
        tokens: dict[Side | None, list[Token]] = {}
        for side, pieces in self.tokens.items():
            spans = words(pieces)
            first[side] = [word[0] for word in spans for _ in word]
            tokens[side] = [replace(pieces[n], text=spelling(pieces, word)) for word in spans for n in word]
        row_of: dict[Writer, int] = {}
        order = []
        for group in groups:
            if group.source is not None:
                group = replace(group, source=first["encoder" if group.cross else group.side][group.source])
            order.append(row_of.setdefault(group, len(row_of)))
        return tuple(row_of), sums.new_zeros(len(row_of), 1).index_add_(0, torch.tensor(order), sums), tokens

    def rows(self) -> list[Row]:
        """Return one row per writer and source token (or word), the largest absolute values first: part, adds."""
        return [{"part": name, "adds": added} for name, added in self.by("token", words=self.unit == "word")]

    def title(self) -> str:
        """Return a title that names the outcome and its value."""
        return f"Contributions to the {self.outcome} ({as_text(self.value)})"

    def exactness(self) -> list[str]:
        """Return a note on how exactly the components sum to the outcome."""
        return [exactly_split("components", "outcome", self.error)]

    def data(self) -> dict[str, object]:
        """Return the outcome and its components in every grouping, as JSON data."""
        ways: tuple[By, ...] = ("token", "writer", "source", "layer", "kind")
        parts = {way: self.by(way) for way in ways} | {"word": self.by("token", words=True)}
        groups = {way: [{"part": name, "adds": n} for name, n in rows] for way, rows in parts.items()}
        return {"method": "direct", "outcome": self.outcome, "value": self.value, "error": self.error, "parts": groups}


def attribution(
    model: Model,
    trace: Trace | PairTrace,
    place: Place | None = None,
    token: str | int | None = None,
    *,
    to: str | int | None = None,
    against: str | int | None = None,
    toward: Float[Tensor, " M"] | None = None,
) -> Attribution:
    """Split a logit, a logit difference or a cosine into direct contributions (direct logit attribution).

    Args:
        model: the model of the trace.
        trace: a trace without interventions.
        place: the word or token of the outcome, in a causal model the token before the predicted token. None for a
            model that labels the whole text.
        token, to: the token, as its text (with its leading space, if any) or id, or a classifier's label. The
            activations after a classifier's last layer are frozen, like the statistics of norms.
        against: a token or label whose logit is subtracted.
        toward: instead of a token, a direction (M,). The outcome is the cosine of the last hidden state with it.

    Raises:
        RegardError: the place or token doesn't exist, both or neither of token and direction are passed, the model has
            no language head, or no exact split is known for its outcome.
    """
    split = bind_to_trace(model, trace, "attribution", outcome_path)
    token = to if token is None else token
    if (token is None) == (toward is None) or (against is not None and token is None):
        raise RegardError("attribution: pass a token (optionally with against=) or a direction toward=")
    token_id = partial(class_or_token_id, model.labels, model._tokenizer, what="attribution")
    ids = [None if name is None else token_id(name) for name in (token, against)]
    if token is not None and ids[0] == ids[1]:
        raise RegardError(f"attribution: got {against!r} against itself: pass two different tokens")
    return split_outcome(trace, place, AttributionTarget(ids[0], ids[1], toward), split)


def split_outcome(
    trace: Trace | PairTrace, place: Place | None, outcome: AttributionTarget, split: Split
) -> Attribution:
    """Split an outcome at a word or token (place None: of the whole text) into components, and check their sum."""
    side = trace.decoder if isinstance(trace, PairTrace) else trace
    of_text = side.logits is not None and side.logits.ndim == 1 and outcome.token is not None
    if of_text != (place is None):
        needs = "no place: it labels the whole text" if of_text else "a place, a word or the number of a token"
        raise RegardError(f"attribution: {side.status.model} needs {needs}")
    rows = list(range(len(side.tokens))) if place is None else tokens_of(side, place)
    rows = rows[:1] if side.labels and place is not None and outcome.token is not None else rows  # a word's label
    where = "" if place is None else f" at {quoted(', '.join(side.tokens[n].text.strip() for n in rows))}"
    expected, description = _outcome_to_attribute(side, rows, outcome)
    name = f"attribution in {side.status.model}"
    parts = split(outcome, rows)
    value, sums = float(parts.whole[0]), writers_by_group(parts, "writer")[1]
    size = float(sums.abs().sum())
    difference = abs(value - expected) / max(size, torch.finfo(torch.float64).tiny)
    if not difference <= SAME:
        raise RegardError(
            f"{name}: the outcome is {value:.4g} where the trace has {expected:.4g}: the trace has to be of this "
            "model, in its dtype, without interventions"
        )
    error = abs(float(sums.sum()) - value) / max(size, torch.finfo(torch.float64).tiny)
    if not error <= TOLERANCE:
        raise InexactError(
            f"{name}: the parts' sum differs from the outcome by {error:.1e} of the sum of their absolute values, "
            f"allowed is {TOLERANCE:.0e}"
        )
    names: tuple[Side | None, ...] = ("encoder", "decoder") if isinstance(trace, PairTrace) else (None,)
    tokens = {name: side.tokens for name, side in zip(names, trace.sides, strict=True)}
    return Attribution(f"{description}{where}", value, error, parts, tokens, about=Read.of(trace))


def _outcome_to_attribute(trace: Trace, rows: list[int], outcome: AttributionTarget) -> tuple[float, str]:
    """Return the outcome's value in the trace, the mean over rows, and its name."""
    if outcome.token is None:
        assert outcome.direction is not None
        state = trace.last_hidden_state[rows].double().cpu().mean(0)
        direction = outcome.direction.double().cpu()
        if direction.shape != state.shape or not float(direction.norm()) > 0:
            raise RegardError(
                f"attribution: toward has shape {tuple(direction.shape)}, expected {tuple(state.shape)}, not all 0"
            )
        return float(torch.cosine_similarity(state, direction, dim=0)), "cosine to the direction"
    if trace.logits is None:
        raise RegardError(f"attribution: the trace of {trace.status.model} has no logits: pass a direction, toward=")
    logits = trace.logits.double() if trace.logits.ndim == 1 else trace.logits[rows].double().mean(0)
    for token in (outcome.token, outcome.against):
        if token is not None and not 0 <= token < len(logits):
            raise RegardError(f"attribution: token id {token} is out of range: there are ids 0 to {len(logits) - 1}")
    names = [
        trace.labels[n] if trace.labels else str(n) if trace.names is None else trace.names(n).strip()
        for n in (outcome.token, outcome.against)
        if n is not None
    ]
    value = float(logits[outcome.token])
    if outcome.against is None:
        return value, f"logit of {quoted(names[0])}"
    return value - float(logits[outcome.against]), f"logit difference {quoted(names[0])} − {quoted(names[1])}"
