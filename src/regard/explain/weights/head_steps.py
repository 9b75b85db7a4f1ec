"""Compute every step of one query through one head, in float64: products, scale, scores, softmax, weighted values.

`score_directions` finds the pairs of directions that carry a head's scores over a text, by an SVD of its scores:

    scale · query · keyᵀ = Σ_i strength_i · queries_i · keys_iᵀ          strength_0 ≥ strength_1 ≥ …, D terms at most

The queries are x W_Q and the keys x W_K, as the head has them with bias, norm and rotary position: this is the singular
value decomposition of W_Q W_Kᵀ in the basis of the text's own states (on weights alone: Millidge and Black 2022, "The
Singular Value Decompositions of Transformer Weight Matrices are Highly Interpretable"). Each term is a question that
some tokens ask and an answer that others give. The mean key is taken off first: what every key gets alike moves no
weight. Two QR decompositions and one SVD of D × D numbers do it, in O(L + S) memory.
"""

from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.capture.interventions.names import Part
from regard.checks import from_zero
from regard.errors import RegardError
from regard.explain.frames import Row, Tabular
from regard.explain.weights.attended import check_layer
from regard.explain.wording import refuse_pairs
from regard.text.tokens import Token
from regard.trace.trace import Trace, asks_for_cross_attention

TOLERANCE = 1e-5  # how far a record's weights may be from the map's, whose kernel rounds otherwise


@dataclass(frozen=True, eq=False)
class HeadSteps:
    """Each step of one query through one head, in float64.

    products = key @ query; scaled = scale · products; capped = softcap · tanh(scaled / softcap), or scaled where there
    is no softcap; scores = capped + bias, -inf at masked keys; exponentials = exp(scores - largest score);
    total = the sum of exponentials and of a sink's; weights = exponentials / total; weighted = weights · value, with a
    row for each key; context = the sum of its rows. error: largest difference from the weights of the model's map.
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


def steps(
    map: AttentionMap, value: Float[Tensor, "G S E"] | Float[Tensor, "S E"], query: int, *, head: int = 0
) -> HeadSteps:
    """Compute every step of one query of an attention map; value has the vectors that are weighted.

    Raises:
        RegardError: there is no such query or head, or the record isn't within 1e-5 of the map's own weights.
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
        whole = rule.bias.expand(*map.query.shape[:3], len(k))
        bias = whole[0, head, query].double()
    row = (0,) * (map.ndim - 3) + (head,) * (map.ndim > 2) + (query,)  # of a map with all its axes, or the last ones
    own = map.scores[row]
    scores = (capped + bias).masked_fill(own == -torch.inf, -torch.inf)
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
    """Compute every step of one token of a trace in one layer and head; part "cross": on the encoder's tokens.

    Layers and heads count from 0, or from the end: -1 is the last.

    Raises:
        RegardError: there is no such token, layer or head, or another part is named, or the trace doesn't hold the
            layer's values.
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


MAX_NAMED_TOKENS = 4  # tokens at each end of a direction


@dataclass(frozen=True, eq=False, repr=False)
class ScoreDirections(Tabular):
    """The pairs of directions of one head over a text, the strongest first. In float64.

    strength: singular values. share: each one's part of the sum of all squared scores (masked ones too), minus the mean
    key's. queries, keys: how much of each query and key lies along each, columns of length 1; where both have one sign
    the score grows, and a pair may be turned over (both its signs changed) as one likes: here the largest key is
    positive.
    """

    layer: int
    head: int
    strength: Float[Tensor, " R"]
    share: Float[Tensor, " R"]
    queries: Float[Tensor, "L R"]
    keys: Float[Tensor, "S R"]
    tokens: tuple[Token, ...] = field(repr=False)

    def scores(self, count: int | None = None) -> Float[Tensor, "L S"]:
        """The scores that the first directions make (None: all of them), each row less its mean over all keys."""
        return (self.queries[:, :count] * self.strength[:count]) @ self.keys[:, :count].T

    def ends(self, direction: int, top: int = MAX_NAMED_TOKENS) -> dict[str, list[str]]:
        """The tokens that lie farthest along a direction: "asking" and "answering", and on the other side of both."""
        direction = from_zero("direction", direction, len(self.strength), "there are")
        query, key = self.queries[:, direction], self.keys[:, direction]
        return {
            "asking": self._named(query, top), "answering": self._named(key, top),
            "asking against": self._named(-query, top), "answering against": self._named(-key, top),
        }  # fmt: skip

    def rows(self) -> list[Row]:
        """List one row per direction: its number, strength and share, and the tokens at its ends."""
        return [
            {"direction": n, "strength": float(self.strength[n]), "share": float(self.share[n])}
            | {end: ", ".join(names) for end, names in self.ends(n).items()}
            for n in range(len(self.strength))
        ]

    def _named(self, along: Float[Tensor, " n"], top: int) -> list[str]:
        """The tokens farthest along, those below zero left out; each with its number."""
        order = along.sort(descending=True, stable=True).indices[:top].tolist()
        return [f"{self.tokens[n].text.strip()} ({n})" for n in order if float(along[n]) > 0]


def score_directions(trace: Trace, layer: int, head: int) -> ScoreDirections:
    """Find the pairs of directions that carry the scores of one head, from the queries and keys of its map.

    Softcap, bias and mask come after the scores, and are no part of them.
    """
    refuse_pairs(trace)
    layer = check_layer(trace, layer)
    own = trace.attention[layer]
    head = from_zero("head", head, own.query.shape[1], f"{trace.status.model} has")
    query = own.query[0, head].detach().cpu().double()  # (L, D)
    key = own.key[0, head * own.key.shape[1] // own.query.shape[1]].detach().cpu().double()  # (S, D)
    if len(key) != len(trace.tokens):
        raise RegardError(
            f"score_directions: layer {layer} of {trace.status.model} looks at {len(key)} keys where the text has "
            f"{len(trace.tokens)} tokens"
        )
    key = key - key.mean(0)
    (q, to_q), (k, to_k) = torch.linalg.qr(query), torch.linalg.qr(key)
    left, strength, right = torch.linalg.svd(own.rule.scale * to_q @ to_k.T, full_matrices=False)
    queries, keys = q @ left, k @ right.T
    largest = keys.gather(0, keys.abs().argmax(0, keepdim=True))
    sign = torch.where(largest < 0, -1.0, 1.0)
    square = strength.square()
    share = square / square.sum().clamp_min(torch.finfo(torch.float64).tiny)
    return ScoreDirections(layer, head, strength, share, queries * sign, keys * sign, trace.tokens)
