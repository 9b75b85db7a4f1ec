"""Define changes to activations: `interventions=[patch("values", layer=3, …), steer(vector, layer=6)]`.

A patch inserts activations from another run:

    what            at layer n                                           at one position
    --------------  ---------------------------------------------------  ------------------------------
    hidden_states   output of layer n; "input" is the input of layer 0   (M,)
    head_outputs    weights @ values of a head, before W_O               (E,) per head
    values          value vectors, which the weights multiply            (E,) per key head
    weights         weights of a query on all keys                       (S,) per head
    feed_forward    output of the feed-forward block                     (M,)

Sources: Vig et al. 2020, "Investigating Gender Bias in Language Models Using Causal Mediation Analysis"; Meng et al.
2022, "Locating and Editing Factual Associations in GPT".

Steering adds a vector to hidden states. Source: Turner et al. 2023, "Activation Addition: Steering
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


class _AtLayer:
    """A change of activations at a layer, or at "input", the input of layer 0. part: for an encoder-decoder."""

    layer: int | Literal["input"]
    part: Part | None

    @property
    def state(self) -> int:
        """Return the number of the hidden state to change: 0 enters layer 0, n + 1 leaves layer n."""
        return 0 if self.layer == "input" else self.layer + 1

    @property
    def state_name(self) -> str:
        """Describe the hidden state to change in a status."""
        return ("input of layer 0" if self.layer == "input" else f"output of layer {self.layer}") + OF[self.part]


@dataclass(frozen=True, eq=False)
class Patch(_AtLayer):
    """A patch, as `patch` returns it. sources: the traces whose mean is inserted, None for zero."""

    what: What
    layer: int | Literal["input"]
    at: Places | None
    sources: tuple[Trace | PairTrace, ...] | None
    source_at: Places | None = None
    head: int | None = None
    part: Part | None = None

    def __str__(self) -> str:
        of_states = self.what == "hidden_states"
        name = self.state_name if of_states else f"{self.what} of layer {self.layer}{OF[self.part]}"
        head = "" if self.head is None else f", head {self.head}"
        return f"patched: {name}{head} at {written(self.at)}, from {self._source_text()}"

    def _source_text(self) -> str:
        if self.sources is None:
            return "zero"
        texts = [trace.sides[0].text for trace in self.sources]
        position = "" if self.source_at is None else f" at {written(self.source_at)}"
        if len(texts) > 1:
            return f"the mean of {len(texts)} texts{position}"
        return f"{shortened(texts[0])}{position}"


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
    """Insert activations from another run into this run (activation patching).

    Args:
        what: "hidden_states" (output of the layer), "head_outputs" (weights @ values, before W_O), "values",
            "weights" (rows of the queries at `at`, on all keys) or "feed_forward" (output of the feed-forward block).
        layer: counted from 0 as in `trace.attention`. For hidden states also "input", the input of layer 0.
        source: the trace to copy from, several traces for their mean, or "zero".
        at: a word (all its occurrences), an occurrence such as ("bank", 1), a token number, or a list of these. None
            for all positions, if both texts have the same number of tokens.
        source_at: the position in the source, if it differs from `at`. It must have the same number of tokens.
        head: the head to patch, None for all. For values, a key head as in `trace.values`.
        part: for an encoder-decoder, "encoder", "decoder" or "cross", as in `regard.head`. In "cross", values belong to
            tokens of the text, and all other activations to tokens of the target.

    Raises:
        RegardError: an argument has a wrong value, or the arguments contradict each other.
    """
    if what not in WHATS:
        raise RegardError(f"what: got {what!r}, expected one of {', '.join(map(repr, WHATS))}")
    check_intervention_part(part)
    if layer != "input":
        check_number("layer", layer)
    elif what != "hidden_states":
        raise RegardError(f'patch: layer="input" is the input of layer 0, for hidden_states only, not for {what!r}')
    if head is not None:
        check_number("head", head)
        if what not in OF_HEADS:
            raise RegardError(f"patch: {what} have no heads, leave out head={head}")
    if what not in OF_HEADS and part == "cross":
        raise RegardError(f'patch: {what} belong to "encoder" or "decoder", not to part="cross"')
    places, source_places = places_of_intervention("at", at), places_of_intervention("source_at", source_at)
    if source_places is not None and places is None:
        raise RegardError("patch: source_at needs at: pass the positions to patch as well")
    sources = _checked_patch_sources(source)
    if sources is None and source_places is not None:
        raise RegardError('patch: source="zero" has no positions: leave out source_at')
    if sources is None and what == "weights":
        raise RegardError(
            'patch: weights sum to 1 and cannot be "zero": patch head_outputs with zero, or regard.ablate(regard.head)'
        )
    return Patch(what, layer, places, sources, source_places, head, part)


def _checked_patch_sources(source: Any) -> tuple[Trace | PairTrace, ...] | None:
    if isinstance(source, str) and source == "zero":
        return None
    sources = [source] if isinstance(source, (Trace, PairTrace)) else source
    needs = 'a trace, traces for their mean, or "zero"'
    if not isinstance(sources, Sequence) or isinstance(sources, str):
        raise RegardError(f"source: got {source!r:.60}, expected {needs}")
    for trace in sources:
        if not isinstance(trace, (Trace, PairTrace)):
            raise RegardError(f"source: got {type(trace).__name__}, expected {needs}")
    if not sources:
        raise RegardError(f"source: got none, expected {needs}")
    return tuple(sources)


@dataclass(frozen=True, eq=False)
class Steer(_AtLayer):
    """A steering intervention from `steer`: adds strength * vector. origin: describes the vector in a status."""

    vector: Float[Tensor, " M"]
    layer: int | Literal["input"]
    at: Places | None
    strength: float
    part: Part | None = None
    origin: str = "a given vector"

    def __str__(self) -> str:
        return f"steered: {self.state_name} at {written(self.at)}, by {self.strength:g} × {self.origin}"


@arguments_named
def steering_vector(
    towards: Trace | PairTrace, away_from: Trace | PairTrace, *, layer: int | Literal["input"], part: Part | None = None
) -> Float[Tensor, " M"]:
    """Compute the difference between the mean hidden states of two texts at the output of a layer.

    The mean is over all tokens, including special tokens. layer="input" is the input of layer 0.

    Args:
        towards, away_from: traces of the two texts. The mean of the second is subtracted.
        part: the side, if the traces are pairs.

    Raises:
        RegardError: an argument isn't a trace, or the traces don't have the layer.
    """
    _check_steering_layer(layer, part)
    means = []
    for trace in (towards, away_from):
        if not isinstance(trace, (Trace, PairTrace)):
            raise RegardError(f"steering_vector: got {type(trace).__name__}, expected two traces")
        side = trace
        if isinstance(trace, PairTrace):
            if part is None:
                raise RegardError('steering_vector: for traces of text pairs, pass part="encoder" or part="decoder"')
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
    """Add strength × a vector to the hidden states at the output of a layer.

    Args:
        vector: (M,), for example from `steering_vector`, or two traces (towards, away_from) to compute it from.
        layer: steer the output of this layer, counted from 0. "input" is the input of layer 0.
        at: as in `regard.patch`. None for all positions, including new tokens in `generate`.
        strength: the factor of the vector. Use a negative number to steer the other way.
        part: for an encoder-decoder, "encoder" or "decoder".

    Raises:
        RegardError: an argument has a wrong value, or the vector contains NaN or infinity.
    """
    _check_steering_layer(layer, part)
    places, origin = places_of_intervention("at", at), "a given vector"
    if not isinstance(vector, Tensor):
        if not isinstance(vector, Sequence) or len(vector) != 2:
            raise RegardError(f"steer: got {type(vector).__name__}, expected a vector (M,) or two traces")
        towards, away = vector
        vector = steering_vector(towards, away, layer=layer, part=part)
        origin = f"(the mean state of {towards.sides[0].text!r} less that of {away.sides[0].text!r})"
    if vector.ndim != 1 or not vector.is_floating_point():
        raise RegardError(f"steer: got a tensor of shape {tuple(vector.shape)}, expected a vector (M,) of floats")
    if not bool(torch.isfinite(vector).all()):
        raise RegardError("steer: the vector holds NaN or infinity")
    if isinstance(strength, bool) or not isinstance(strength, (int, float)) or strength != strength:
        raise RegardError(f"strength: got {strength!r}, expected a number")
    return Steer(vector.detach(), layer, places, float(strength), part, origin)


def _check_steering_layer(layer: int | Literal["input"], part: Part | None) -> None:
    check_intervention_part(part)
    if layer != "input":
        check_number("layer", layer)
    if part == "cross":
        raise RegardError('steer: hidden states belong to "encoder" or "decoder", not to part="cross"')
