"""Rows of attention weights as a person reads them: the tokens they go to, special ones apart."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor

from regard.errors import RegardError
from regard.partial import Partial
from regard.tokens import Token
from regard.trace import Trace, special_share


@dataclass(frozen=True)
class Share:
    """A token that attention goes to, and how much of it: weight is a part of 1."""

    token: int
    text: str
    weight: float


@dataclass(frozen=True)
class Attended:
    """Where attention goes in one layer, from one token or word: of one head, or (head None) the mean of all heads.

    special: what all special tokens take together. top: the largest others. weights: one for every token, None in
    an overview.
    """

    layer: int
    head: int | None
    special: float
    top: list[Share]
    weights: list[float] | None


def attended(weights: Float[Tensor, " S"], tokens: Sequence[Token], layer: int, head: int | None, top: int) -> Attended:
    """One row of weights as a person reads it: special tokens apart, then the largest others."""
    order = weights.sort(descending=True, stable=True)
    best = [
        Share(number, tokens[number].text, weight)
        for weight, number in zip(order.values.tolist(), order.indices.tolist(), strict=True)
        if not tokens[number].special and weight > 0  # what a causal model may not see is not named
    ]
    return Attended(layer, head, float(special_share(weights, tokens)), best[:top], weights.tolist())


def there(items: Sequence[Any]) -> list[int]:
    """The numbers of the layers or states that a trace holds: all of them, or those that were kept or saved."""
    return list(items.kept) if isinstance(items, Partial) else list(range(len(items)))


def check_heads(trace: Trace, layer: int | None, head: int | None) -> None:
    """Refuse a layer or head that the model does not have, or the trace does not hold; the range is named."""
    held = there(trace.attention)
    if not held:
        raise RegardError(f"the trace of {trace.status.model} holds no attention")
    layers, heads = len(trace.attention), trace.attention[held[0]].shape[0]
    for name, given, count in (("layer", layer, layers), ("head", head, heads)):
        if given is not None and not 0 <= given < count:
            raise RegardError(f"{name} {given} is out of range: {trace.status.model} has {name}s 0 to {count - 1}")
    if layer is not None:
        trace.attention[layer]  # says so itself where it is not held
