"""Compute every step of attention for one query in one head, in float64, from products to weighted values."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.capture.interventions.names import Part
from regard.checks import from_zero
from regard.errors import RegardError
from regard.trace.trace import Trace, asks_for_cross_attention

TOLERANCE = 1e-5  # largest difference of the weights from the map's, whose kernel rounds differently


@dataclass(frozen=True, eq=False)
class HeadSteps:
    """The steps of attention for one query in one head, in float64.

    products = key @ query; scaled = scale · products; capped = softcap · tanh(scaled / softcap), or scaled without a
    softcap; scores = capped + bias, -inf at masked keys; exponentials = exp(scores - largest score); total = the sum of
    exponentials, including a learned sink's; weights = exponentials / total; weighted = weights · value, one row per
    key; context = the sum of these rows. error: largest difference from the weights of the model's map.
    """

    query: Float[Tensor, " D"]
    key: Float[Tensor, "S D"]
    value: Float[Tensor, "S E"]
    scale: float
    softcap: float | None
    sink: float | None
    products: Float[Tensor, " S"]
    scaled: Float[Tensor, " S"]
    capped: Float[Tensor, " S"]
    bias: Float[Tensor, " S"]
    scores: Float[Tensor, " S"]
    exponentials: Float[Tensor, " S"]
    total: float
    weights: Float[Tensor, " S"]
    weighted: Float[Tensor, "S E"]
    context: Float[Tensor, " E"]
    error: float

    @property
    def contributions(self) -> Float[Tensor, " S"]:
        """Return the fraction of the context vector from each key, (S,), by projection of its weighted value."""
        length = float(self.context @ self.context)
        return (self.weighted @ self.context) / length if length > 0 else self.weights * 0.0


def steps(
    map: AttentionMap, value: Float[Tensor, "G S E"] | Float[Tensor, "S E"], query: int, *, head: int = 0
) -> HeadSteps:
    """Compute each step of attention for one query in one head of a map. value: the value vectors.

    Raises:
        RegardError: the query or head doesn't exist, or the weights differ from the map's by more than 1e-5.
    """
    if not 0 <= query < map.query.shape[2]:
        raise RegardError(f"query {query} is out of range: there are queries 0 to {map.query.shape[2] - 1}")
    rule, heads = map.rule, map.query.shape[1]
    head = from_zero("head", head, heads, "there are")
    values = value if value.ndim == 3 else value[None]
    q = map.query[0, head, query].double()  # (D,)
    k = map.key[0, head * map.key.shape[1] // heads].double()  # (S, D)
    v = values[head * len(values) // heads].double()  # (S, E)
    products = k @ q
    scaled = rule.scale * products
    capped = scaled if rule.softcap is None else rule.softcap * torch.tanh(scaled / rule.softcap)
    bias = torch.zeros_like(capped)
    if rule.bias is not None:
        expanded = rule.bias.expand(*map.query.shape[:3], len(k))
        bias = expanded[0, head, query].double()
    row = (0,) * (map.ndim - 3) + (head,) * (map.ndim > 2) + (query,)  # index into a map with 4, 3 or 2 axes
    map_scores = map.scores[row]
    scores = (capped + bias).masked_fill(map_scores == -torch.inf, -torch.inf)
    sink = None if rule.sinks is None else float(rule.sinks[head])
    largest = max(float(scores.max()), -torch.inf if sink is None else sink)
    if largest == -torch.inf:
        raise RegardError(f"query {query} can't attend to any key, so it has no weights")
    exponentials = (scores - largest).exp()
    total = exponentials.sum() + (0.0 if sink is None else torch.tensor(sink - largest).double().exp())
    weights = exponentials / total
    weighted = weights[:, None] * v
    error = float((weights - map[row].double()).abs().max())
    if not error <= TOLERANCE:
        raise RegardError(f"the steps of query {query}, head {head} are {error:.1e} from the map's weights")
    return HeadSteps(
        q, k, v, float(rule.scale), rule.softcap, sink, products, scaled, capped, bias, scores, exponentials,
        float(total), weights, weighted, weighted.sum(0), error,
    )  # fmt: skip


def head_steps(trace: Trace, token: int, layer: int, head: int, *, part: Part | None = None) -> HeadSteps:
    """Compute each step of attention for one token in one layer and head. part: "cross" for attention to the source.

    Layers and heads count from 0, or from the end: -1 is the last.

    Raises:
        RegardError: the token, layer, head or part doesn't exist, or the trace lacks the layer's values.
    """
    cross = asks_for_cross_attention("head_steps", part)
    maps, values = (trace.cross, trace.cross_values) if cross else (trace.attention, trace.values)
    if not 0 <= token < len(trace.tokens):
        raise RegardError(f"token {token} is out of range: there are tokens 0 to {len(trace.tokens) - 1}")
    layer = from_zero("layer", layer, len(maps), "there are")
    value = values[layer]
    if value is None:
        raise RegardError(f"the trace has no values for layer {layer}")
    return steps(maps[layer], value, token, head=head)
