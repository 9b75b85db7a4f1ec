"""Ablate a word, and measure an ablation's effect on a word's hidden state and on the next-token distribution."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from regard.capture.interventions.names import STACKS, Ablate, Part, ablate, edge
from regard.errors import RegardError
from regard.explain.wording import Place, tokens_of
from regard.text.words import Word
from regard.trace.trace import PairTrace, Trace, is_causal


@dataclass(frozen=True)
class Effect:
    """The effect of an ablation on a place (a word or token) and on the model's next-token distribution.

    moved: 1 - cosine of the place's last hidden states without and with the ablation. The other two are
    Kullback-Leibler divergences, in nats, of the next-token distribution without the ablation from that with it.
    next_token: after the text's last token. after_place: after the place's last token, before the rest of the text.
    Both are None if the model doesn't predict next tokens.
    """

    moved: float
    next_token: float | None
    after_place: float | None = None


def effect(trace: Trace, ablated: Trace, place: Place) -> Effect:
    """Measure the effect of an ablation on a place, from traces of the same text without and with it."""
    return effects(trace, place)(ablated)


def effects(trace: Trace, place: Place) -> Callable[[Trace], Effect]:
    """Return a function that measures the effect of each ablation of a text. Values of `trace` are computed once."""
    tokens = tokens_of(trace, place)
    before = trace.last_hidden_state[tokens].double().mean(0)
    speaks = trace.logits is not None and trace.logits.ndim == 2 and not trace.labels and is_causal(trace)
    logits = trace.logits if speaks else None

    def compare(ablated: Trace) -> Effect:
        after = ablated.last_hidden_state[tokens].double().mean(0)
        moved = max(1 - float(torch.dot(before, after) / (before.norm() * after.norm())), 0.0)  # rounding; NaN stays
        if logits is None or ablated.logits is None:
            return Effect(moved, None, None)
        return Effect(moved, *(divergence(logits[n], ablated.logits[n]) for n in (-1, tokens[-1])))

    return compare


def divergence(kept: Float[Tensor, " V"], changed: Float[Tensor, " V"]) -> float:
    """Compute the Kullback-Leibler divergence, in nats, between the distributions of kept and changed logits."""
    p, q = (logits.double().log_softmax(-1) for logits in (kept, changed))
    return max(float(torch.where(p > -torch.inf, p.exp() * (p - q), 0.0).sum()), 0.0)  # rounding; NaN stays


def removal(trace: Trace | PairTrace, place: Place, *, part: Part | None = None) -> list[Ablate]:
    """Return the ablations that hide a word or token from all other tokens.

        model.trace(text, interventions=removal(trace, "river"))

    Every softmax leaves out the attention to the word, and the other weights of the row grow. The text keeps its length
    and positions. A source word is hidden from the encoder's and the decoder's tokens, a target word from the
    decoder's. place: a word that occurs once, an occurrence, or a token's number. part: for an encoder-decoder, the
    stack that reads the word's text, "encoder" or "decoder".
    """
    if not isinstance(trace, (Trace, PairTrace)):
        kind = type(trace).__name__
        raise RegardError(f"removal: got {kind}, expected the trace of a text, or of a text and its target")
    if part not in (STACKS if isinstance(trace, PairTrace) else (None,)):
        ways = " or ".join(map(repr, STACKS))
        needs = ways if isinstance(trace, PairTrace) else "none: it is not an encoder-decoder"
        raise RegardError(f"removal: part: got {part!r}, but {trace.sides[0].status.model} needs {needs}")
    side = trace.sides[0 if part == "encoder" else -1]
    across = [_hide_place(trace.sides[-1], side, place, "cross")] if part == "encoder" else []
    return [_hide_place(side, side, place, part), *across]


def _hide_place(queries: Trace, keys: Trace, place: Place, part: Part | None) -> Ablate:
    """Return the ablation that hides a place from every token, also from its own tokens (no other token sees them)."""
    tokens = tuple(tokens_of(keys, place))
    name = place.text if isinstance(place, Word) else place if isinstance(place, str) else keys.tokens[tokens[0]].text
    everyone = Word("every token", 0, 0, tuple(range(len(queries.tokens))))
    return ablate(edge(everyone, Word(name, 0, 0, tokens), part=part))


def spearman(a: Sequence[float], b: Sequence[float]) -> float:
    """Compute Spearman's rank correlation. Ties have their mean rank. The result is NaN if a side is constant."""
    x, y = (_mean_ranks(values) for values in (a, b))
    x, y = x - x.mean(), y - y.mean()
    return float((x * y).sum() / (x.norm() * y.norm()))


def _mean_ranks(values: Sequence[float]) -> Float[Tensor, " n"]:
    numbers = torch.tensor(values, dtype=torch.float64)
    _, inverse, counts = numbers.unique(return_inverse=True, return_counts=True)
    last = counts.cumsum(0).double()
    return (last - (counts - 1) / 2)[inverse]
