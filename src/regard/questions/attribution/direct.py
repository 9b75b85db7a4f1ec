"""Direct logit attribution: split a logit, a logit difference or a cosine into the components written directly.

    logit[token] = Σ_a (output of writer a at this position) through the final norm, times the token's head column

Direct logit attribution (Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits"; nostalgebraist 2020
for reading the stream through the head) splits into embeddings, each head by source token, each feed-forward layer, and
biases. The statistics of all norms are frozen. A component belongs to its writer, whatever the writer's input was.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from regard.capture.score_path import AttributionTarget, Side, SideParts, Writer, outcome_path
from regard.display.answer import Answer, Read
from regard.errors import InexactError, RegardError
from regard.explain.causes.score_writers import By, named, writers_by_group
from regard.explain.frames import Row
from regard.explain.wording import Place, exactly_split, tokens_of
from regard.models.inputs import class_or_token_id
from regard.models.model import Model
from regard.models.readout import splitter
from regard.questions.attribution.panels import parts_panels, parts_sentences, plain
from regard.text.quoting import quoted
from regard.text.tokens import Token
from regard.text.word_pieces import spelling, words
from regard.trace.trace import PairTrace, Trace

TOLERANCE = 1e-4  # largest difference of the sum from the outcome, relative to the sum of absolute values
SAME = 1e-3  # largest difference of the outcome from the trace's, relative to the same sum
# Runs the model and splits the mean outcome of some tokens.
Split = Callable[[AttributionTarget, Sequence[int]], SideParts]


@dataclass(frozen=True, eq=False, repr=False)
class Attribution(Answer):
    """An outcome and its components. outcome: its name. value: its number, the sum of all components.

    error: the difference of their sum from it, relative to the sum of their absolute values. unit: what source tokens
    are shown as, tokens or words.
    """

    format: ClassVar[str] = "regard attribute"
    findings, panels = parts_sentences, parts_panels

    outcome: str
    value: float
    error: float
    parts: SideParts = field(repr=False)
    tokens: Mapping[Side | None, Sequence[Token]] = field(repr=False)
    unit: Literal["token", "word"] = field(default="token", kw_only=True)

    def by(self, by: By = "writer", *, words: bool = False) -> list[tuple[str, float]]:
        """Return each component's name and contribution, the largest absolute numbers first. They sum to the value.

        by: what a component is: a "writer" (an embedding, a head, a feed-forward layer, a layer's biases), a writer's
        attention to one "token", all attention to one "source" token, a "layer", or a "kind". words: whether the source
        tokens of a word are summed, under the number of the first.
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
        """The groups with the source tokens of a word as one, their sums, and the tokens named by their words."""
        first: dict[Side | None, list[int]] = {}
        tokens: dict[Side | None, list[Token]] = {}
        for side, own in self.tokens.items():
            parted = words(own)
            first[side] = [word[0] for word in parted for _ in word]
            tokens[side] = [replace(own[n], text=spelling(own, word)) for word in parted for n in word]
        places: dict[Writer, int] = {}
        order = []
        for group in groups:
            if group.source is not None:
                group = replace(group, source=first["encoder" if group.cross else group.side][group.source])
            order.append(places.setdefault(group, len(places)))
        return tuple(places), sums.new_zeros(len(places), 1).index_add_(0, torch.tensor(order), sums), tokens

    def rows(self) -> list[Row]:
        """List one row per writer and source token (or word), the largest absolute numbers first: part, adds."""
        return [{"part": name, "adds": added} for name, added in self.by("token", words=self.unit == "word")]

    def title(self) -> str:
        """Name the outcome, with its value."""
        return f"Contributions to the {self.outcome} ({plain(self.value)})"

    def exactness(self) -> list[str]:
        """Say how exactly the components sum to the outcome."""
        return [exactly_split("components", "outcome", self.error)]

    def data(self) -> dict[str, object]:
        """Return the outcome, and its components in every grouping."""
        ways: tuple[By, ...] = ("token", "writer", "source", "layer", "kind")
        parts = {way: self.by(way) for way in ways} | {"word": self.by("token", words=True)}
        own = {each: [{"part": name, "adds": n} for name, n in rows] for each, rows in parts.items()}
        return {"method": "direct", "outcome": self.outcome, "value": self.value, "error": self.error, "parts": own}


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
    """Split a logit, a logit difference or a cosine into the components written directly (direct logit attribution).

    Args:
        model: the model of the trace.
        trace: a trace without interventions.
        place: the word or token of the outcome: in a causal model the position before the token. None for a model that
            labels the whole text.
        token, to: the token, by its text (with a space before it if it has one) or id, or a classifier's label. A
            classifier's activations after its last layer are frozen, as the statistics of norms are.
        against: a token or label whose logit is subtracted.
        toward: instead of a token, a direction (M,): the outcome is the cosine of the last hidden state with it.

    Raises:
        RegardError: no such place or token, both or neither of token and direction, a model without a language head, or
            one whose outcome has no known exact split.
    """
    split = splitter(model, trace, "attribution", outcome_path)
    token = to if token is None else token
    if (token is None) == (toward is None) or (against is not None and token is None):
        raise RegardError("attribution: needs a token, and perhaps another against it, or a direction toward=")
    named = partial(class_or_token_id, model.labels, model._tokenizer, what="attribution")
    ids = [None if each is None else named(each) for each in (token, against)]
    if token is not None and ids[0] == ids[1]:
        raise RegardError(f"attribution: given {against!r} against itself: needs two that differ")
    return split_outcome(trace, place, AttributionTarget(ids[0], ids[1], toward), split)


def split_outcome(
    trace: Trace | PairTrace, place: Place | None, outcome: AttributionTarget, split: Split
) -> Attribution:
    """Split an outcome at a word or token, or a label of the whole text (None)."""
    own = trace.decoder if isinstance(trace, PairTrace) else trace
    whole = own.logits is not None and own.logits.ndim == 1 and outcome.token is not None
    if whole != (place is None):
        needs = "no place: it labels the whole text" if whole else "a place, a word or the number of a token"
        raise RegardError(f"attribution: {own.status.model} needs {needs}")
    rows = list(range(len(own.tokens))) if place is None else tokens_of(own, place)
    rows = rows[:1] if own.labels and place is not None and outcome.token is not None else rows  # a word's label
    where = "" if place is None else f" at {quoted(', '.join(own.tokens[n].text.strip() for n in rows))}"
    expected, said = _outcome_to_attribute(own, rows, outcome)
    name = f"attribution in {own.status.model}"
    parts = split(outcome, rows)
    value, sums = float(parts.whole[0]), writers_by_group(parts, "writer")[1]
    size = float(sums.abs().sum())
    apart = abs(value - expected) / max(size, torch.finfo(torch.float64).tiny)
    if not apart <= SAME:
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
    return Attribution(f"{said}{where}", value, error, parts, tokens, about=Read.of(trace))


def _outcome_to_attribute(trace: Trace, rows: list[int], outcome: AttributionTarget) -> tuple[float, str]:
    """Return the outcome in the trace, and its name."""
    if outcome.token is None:
        assert outcome.direction is not None
        state = trace.last_hidden_state[rows].double().cpu().mean(0)
        direction = outcome.direction.double().cpu()
        if direction.shape != state.shape or not float(direction.norm()) > 0:
            raise RegardError(
                f"attribution: toward has shape {tuple(direction.shape)}, needs {tuple(state.shape)} and not to be zero"
            )
        return float(torch.cosine_similarity(state, direction, dim=0)), "cosine to the direction"
    if trace.logits is None:
        raise RegardError(f"attribution: the trace of {trace.status.model} holds no logits: give toward=, a direction")
    logits = trace.logits.double() if trace.logits.ndim == 1 else trace.logits[rows].double().mean(0)
    for number in (outcome.token, outcome.against):
        if number is not None and not 0 <= number < len(logits):
            raise RegardError(f"attribution: token id {number} is out of range: there are ids 0 to {len(logits) - 1}")
    names = [
        trace.labels[n] if trace.labels else str(n) if trace.names is None else trace.names(n).strip()
        for n in (outcome.token, outcome.against)
        if n is not None
    ]
    value = float(logits[outcome.token])
    if outcome.against is None:
        return value, f"logit of {quoted(names[0])}"
    return value - float(logits[outcome.against]), f"logit difference {quoted(names[0])} − {quoted(names[1])}"
