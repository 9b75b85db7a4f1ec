"""Name a push: a vector that is added to the hidden states of a run: `interventions=[steer(vector, layer=6)]`.

Source of the method: Turner et al. 2023, "Activation Addition: Steering Language Models Without Optimization".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

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
from regard.text.words import Place
from regard.trace.trace import PairTrace, Trace


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
