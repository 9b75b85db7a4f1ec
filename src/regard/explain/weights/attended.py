"""Rows of attention weights as a person reads them: the tokens they go to, special ones and sinks apart."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.checks import from_zero
from regard.errors import RegardError
from regard.explain.places import refuse_pairs
from regard.text.tokens import Token
from regard.trace.layer_subset import CallNumber, call_numbers, kept_numbers
from regard.trace.trace import Trace
from regard.trace.word_rows import special_share


@dataclass(frozen=True)
class Share:
    """A token that attention goes to, and how much of it: weight is a part of 1."""

    token: int
    text: str
    weight: float


@dataclass(frozen=True)
class Attended:
    """Where attention goes in one layer, from one token or word: of one head, or (head None) the mean of all heads.

    special: what all special tokens take together. sinks: what each attention sink takes, in the text's order. top: the
    largest others. weights: one for every token, None in an overview.
    """

    layer: int
    head: int | None
    special: float
    sinks: list[Share]
    top: list[Share]
    weights: list[float] | None

    @property
    def apart(self) -> float:
        """What special tokens and sinks take together."""
        return self.special + sum(share.weight for share in self.sinks)


def attended(
    weights: Float[Tensor, " S"],
    tokens: Sequence[Token],
    layer: int,
    head: int | None,
    top: int,
    sinks: Collection[int] = (),
) -> Attended:
    """One row of weights as a person reads it: special tokens and sinks apart, then the largest others.

    sinks: the numbers of the tokens that are attention sinks.
    """
    order = weights.sort(descending=True, stable=True)
    best = [
        Share(number, tokens[number].text, weight)
        for weight, number in zip(order.values.tolist(), order.indices.tolist(), strict=True)
        if not tokens[number].special and number not in sinks and weight > 0  # what it may not see is not named
    ]
    each = weights.tolist()
    own = [Share(number, tokens[number].text, each[number]) for number in sorted(sinks) if each[number] > 0]
    return Attended(layer, head, float(special_share(weights, tokens)), own, best[:top], each)


def check_heads(trace: Trace, layer: int | None, head: int | None) -> tuple[int | None, int | None]:
    """A layer and a head counted from 0, where -1 was the last.

    Raises:
        RegardError: the model has no such layer or head (the range is named), or the trace does not hold it.
    """
    return (
        None if layer is None else check_layer(trace, layer),
        None if head is None else check_head(trace, head),
    )


def check_layer(trace: Trace, layer: int) -> int:
    """As `check_heads`, of a layer."""
    _holds_any(trace)
    layer = from_zero("layer", layer, len(trace.attention), f"{trace.status.model} has")
    trace.attention[layer]  # says so itself where it is not held
    return layer


def check_head(trace: Trace, head: int) -> int:
    """As `check_heads`, of a head."""
    held = _holds_any(trace)
    return from_zero("head", head, trace.attention[held[0]].shape[0], f"{trace.status.model} has")


def held_calls(trace: Trace) -> tuple[CallNumber, ...]:
    """List the attention calls whose maps the trace of one text holds, of which there has to be one.

    Raises:
        RegardError: the whole trace of an encoder-decoder, or a trace without attention.
    """
    refuse_pairs(trace)
    _holds_any(trace)
    return call_numbers(trace.attention)


def maps_between_tokens(trace: Trace, unknown: str) -> list[AttentionMap]:
    """List the maps (H, L, L) of these calls. unknown: what is not known where keys are no tokens, for the message.

    Raises:
        RegardError: as of `held_calls`, and keys that are no tokens of the text.
    """
    maps: list[AttentionMap] = []
    size = len(trace.tokens)
    for call in held_calls(trace):
        maps.append(trace.attention[call])
        if maps[-1].shape[1:] != (size, size):
            raise RegardError(f"layer {call[0]} has keys that are no tokens of the text: {unknown}")
    return maps


def _holds_any(trace: Trace) -> tuple[int, ...]:
    """The layers whose attention a trace holds, of which there has to be one."""
    held = kept_numbers(trace.attention)
    if not held:
        raise RegardError(f"the trace of {trace.status.model} holds no attention")
    return held
