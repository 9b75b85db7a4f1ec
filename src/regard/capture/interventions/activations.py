"""Name changed activations of a run: `interventions=[patch("values", layer=3, …), steer(vector, layer=6)]`.

A patch puts in what another run had at some place:

    what            is at layer n                                        of one position
    --------------  ---------------------------------------------------  ------------------------------
    hidden_states   what leaves layer n; "input" is what enters layer 0  (M,)
    head_outputs    weights @ values of a head, before W_O               (E,) a head
    values          the value vectors that weights multiply              (E,) a key head
    weights         the weights of a query on all keys                   (S,) a head
    feed_forward    what the feed-forward block adds to the states       (M,)

Source of the method: Vig et al. 2020, "Investigating Gender Bias in Language Models Using Causal Mediation Analysis";
Meng et al. 2022, "Locating and Editing Factual Associations in GPT".

Steering adds a vector to hidden states. Source of that method: Turner et al. 2023, "Activation Addition: Steering
Language Models Without Optimization".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from regard.capture.interventions.names import (
    OF,
    Part,
    Places,
    check_intervention_part,
    check_number,
    places_of_intervention,
    written,
)
from regard.checks import arguments_named
from regard.errors import RegardError
from regard.text.tokens import shortened
from regard.text.words import Place
from regard.trace.trace import PairTrace, Trace

What = Literal["hidden_states", "head_outputs", "values", "weights", "feed_forward"]
WHATS: tuple[What, ...] = get_args(What)
OF_HEADS: tuple[What, ...] = ("head_outputs", "values", "weights")
Source = Trace | PairTrace | Sequence[Trace | PairTrace] | Literal["zero"]


@dataclass(frozen=True, eq=False)
class Patch:
    """A patch, as `patch` returns it. sources: the traces whose mean is put in, None for zero."""

    what: What
    layer: int | Literal["input"]
    at: Places | None
    sources: tuple[Trace | PairTrace, ...] | None
    source_at: Places | None = None
    head: int | None = None
    part: Part | None = None

    @property
    def state(self) -> int:
        """The number of the hidden state that is meant: 0 enters layer 0, n + 1 leaves layer n."""
        return 0 if self.layer == "input" else self.layer + 1

    def __str__(self) -> str:
        what = f"{self.what} of layer {self.layer}"
        if self.what == "hidden_states":
            what = "input of layer 0" if self.layer == "input" else f"output of layer {self.layer}"
        head = "" if self.head is None else f", head {self.head}"
        return f"patched: {what}{OF[self.part]}{head} at {written(self.at)}, from {self._origin()}"

    def _origin(self) -> str:
        if self.sources is None:
            return "zero"
        texts = [trace.sides[0].text for trace in self.sources]
        there = "" if self.source_at is None else f" at {written(self.source_at)}"
        if len(texts) > 1:
            return f"the mean of {len(texts)} texts{there}"
        return f"{shortened(texts[0])}{there}"


@arguments_named
def patch(
    what: What,
    *,
    layer: int | Literal["input"],
    source: Source,
    at: Place | Sequence[Place] | None = None,
    source_at: Place | Sequence[Place] | None = None,
    head: int | None = None,
    part: Part | None = None,
) -> Patch:
    """Put what another run had at some place into this one.

    Args:
        what: "hidden_states" (what leaves the layer), "head_outputs" (weights @ values, before W_O), "values",
            "weights" (the rows of the queries at `at`, on all keys) or "feed_forward" (what that block adds).
        layer: counted from 0 as in `trace.attention`; of hidden states also "input", what enters layer 0.
        source: the trace that it is taken from, several traces for their mean, or "zero".
        at: a word (all its occurrences), an occurrence such as ("bank", 1), the number of a token, or a list of these;
            None for all positions, of which both texts must then have the same number.
        source_at: where it stands in the source, where that is not what `at` says; as many tokens.
        head: the one that is patched, None for all; of values a key head, as `trace.values` counts them.
        part: of an encoder-decoder "encoder", "decoder" or "cross", as in `regard.head`; the values of "cross" are at
            tokens of the text, all else in it at tokens of the target.

    Raises:
        RegardError: a name, number, place or source of another kind, or a combination that means nothing.
    """
    if what not in WHATS:
        raise RegardError(f"patch: given {what!r}, needs one of {', '.join(map(repr, WHATS))}")
    check_intervention_part(part)
    if layer != "input":
        check_number("layer", layer)
    elif what != "hidden_states":
        raise RegardError(f'patch: layer="input" is what enters layer 0, of hidden_states alone; given {what!r}')
    if head is not None:
        check_number("head", head)
        if what not in OF_HEADS:
            raise RegardError(f"patch: {what} have no heads, leave out head={head}")
    if what not in OF_HEADS and part == "cross":
        raise RegardError(f'patch: {what} belong to "encoder" or "decoder", given part="cross"')
    places, source_places = places_of_intervention("at", at), places_of_intervention("source_at", source_at)
    if source_places is not None and places is None:
        raise RegardError("patch: source_at is given without at: say which positions are patched, too")
    sources = _checked_patch_sources(source)
    if sources is None and source_places is not None:
        raise RegardError('patch: source_at is given, and source="zero" has no positions')
    if sources is None and what == "weights":
        raise RegardError(
            'patch: weights sum to 1 and cannot be "zero": patch head_outputs with zero, or regard.ablate(regard.head)'
        )
    return Patch(what, layer, places, sources, source_places, head, part)


def _checked_patch_sources(source: Any) -> tuple[Trace | PairTrace, ...] | None:
    if isinstance(source, str) and source == "zero":
        return None
    sources = [source] if isinstance(source, (Trace, PairTrace)) else source
    needs = 'a trace, several traces for their mean, or "zero"'
    if not isinstance(sources, Sequence) or isinstance(sources, str):
        raise RegardError(f"source: given {source!r:.60}, needs {needs}")
    for trace in sources:
        if not isinstance(trace, (Trace, PairTrace)):
            raise RegardError(f"source: given {type(trace).__name__}, needs {needs}")
    if not sources:
        raise RegardError(f"source: given none, needs {needs}")
    return tuple(sources)


@dataclass(frozen=True, eq=False)
class Steer:
    """A push, as `steer` returns it: strength * vector is added. origin: what the vector is, for a status."""

    vector: Float[Tensor, " M"]
    layer: int | Literal["input"]
    at: Places | None
    strength: float
    part: Part | None = None
    origin: str = "a given vector"

    @property
    def state(self) -> int:
        """The number of the hidden state that is meant: 0 enters layer 0, n + 1 leaves layer n."""
        return 0 if self.layer == "input" else self.layer + 1

    def __str__(self) -> str:
        where = "input of layer 0" if self.layer == "input" else f"output of layer {self.layer}"
        return f"steered: {where}{OF[self.part]} at {written(self.at)}, by {self.strength:g} × {self.origin}"


@arguments_named
def steering_vector(
    towards: Trace | PairTrace, away_from: Trace | PairTrace, *, layer: int | Literal["input"], part: Part | None = None
) -> Float[Tensor, " M"]:
    """Subtract the mean hidden state of one text from that of another, both as they leave a layer.

    The mean is over all tokens, special ones too. layer="input" is what enters layer 0;

    Args:
        towards, away_from: traces of the two texts; the mean of the second is what is subtracted.
        part: the side of pairs.

    Raises:
        RegardError: something else than traces, or a layer that they do not have.
    """
    _check_steering_layer(layer, part)
    means = []
    for trace in (towards, away_from):
        if not isinstance(trace, (Trace, PairTrace)):
            raise RegardError(f"steering_vector: given {type(trace).__name__}, needs two traces")
        side = trace
        if isinstance(trace, PairTrace):
            if part is None:
                raise RegardError('steering_vector: given pairs of texts: say part="encoder" or part="decoder"')
            side = trace.encoder if part == "encoder" else trace.decoder
        assert isinstance(side, Trace)
        means.append(side.hidden_states[0 if layer == "input" else layer + 1].mean(0))
    if means[0].shape != means[1].shape:
        raise RegardError(f"steering_vector: states of {means[0].shape[-1]} and {means[1].shape[-1]} components")
    return means[0] - means[1]


@arguments_named
def steer(
    vector: Float[Tensor, " M"] | Sequence[Trace | PairTrace],
    *,
    layer: int | Literal["input"],
    at: Place | Sequence[Place] | None = None,
    strength: int | float = 1.0,
    part: Part | None = None,
) -> Steer:
    """Add strength × a vector to the hidden states that leave a layer.

    Args:
        vector: (M,), such as `steering_vector` gives; or two traces (towards, away_from), whose vector that is.
        layer: what leaves it is steered, counted from 0; "input" is what enters layer 0.
        at: as in `regard.patch`; None for all positions, in `generate` of all tokens that are written, too.
        strength: what the vector is multiplied by; negative to push the other way.
        part: of an encoder-decoder, "encoder" or "decoder".

    Raises:
        RegardError: an argument of another kind, or a vector that holds NaN or infinity.
    """
    _check_steering_layer(layer, part)
    places, origin = places_of_intervention("at", at), "a given vector"
    if not isinstance(vector, Tensor):
        if not isinstance(vector, Sequence) or len(vector) != 2:
            raise RegardError(f"steer: given {type(vector).__name__}, needs a vector (M,) or two traces")
        towards, away = vector
        vector = steering_vector(towards, away, layer=layer, part=part)
        origin = f"(the mean state of {towards.sides[0].text!r} less that of {away.sides[0].text!r})"
    if vector.ndim != 1 or not vector.is_floating_point():
        raise RegardError(f"steer: given a tensor of shape {tuple(vector.shape)}, needs a vector (M,) of floats")
    if not bool(torch.isfinite(vector).all()):
        raise RegardError("steer: the vector holds NaN or infinity")
    if isinstance(strength, bool) or not isinstance(strength, (int, float)) or strength != strength:
        raise RegardError(f"strength: given {strength!r}, needs a number")
    return Steer(vector.detach(), layer, places, float(strength), part, origin)


def _check_steering_layer(layer: int | Literal["input"], part: Part | None) -> None:
    check_intervention_part(part)
    if layer != "input":
        check_number("layer", layer)
    if part == "cross":
        raise RegardError('steer: hidden states belong to "encoder" or "decoder", given part="cross"')
