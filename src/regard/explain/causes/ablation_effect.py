"""Measure what an ablation changed: a word's contextual embedding, and a causal model's next-token distribution."""

from collections.abc import Callable
from dataclasses import dataclass
from math import isnan

import torch
from jaxtyping import Float
from torch import Tensor

from regard.explain.places import Place, tokens_of
from regard.trace.trace import Trace, is_causal


@dataclass(frozen=True)
class Effect:
    """moved: 1 - cosine of the place's contextual embedding with and without the ablation; 0 where nothing changed.

    The other two are Kullback-Leibler divergences, in nats, of the next-token distribution under the ablation from the
    one without it: next_token after the text's last token, after_place after the place's last token, where the model
    has read no further than the word. Both are None where the model has no language head, or one that fills gaps
    (BERT's) and says nothing of what comes next.
    """

    moved: float
    next_token: float | None
    after_place: float | None = None


def effect(trace: Trace, ablated: Trace, place: Place) -> Effect:
    """Compare a trace with one of the same text in which something was ablated."""
    return effects(trace, place)(ablated)


def effects(trace: Trace, place: Place) -> Callable[[Trace], Effect]:
    """Make what compares a trace with another of the same text; what all comparisons share is computed once."""
    tokens = tokens_of(trace, place)
    before = trace.last_hidden_state[tokens].double().mean(0)
    speaks = trace.logits is not None and trace.logits.ndim == 2 and not trace.labels and is_causal(trace)
    logits = trace.logits if speaks else None

    def compare(ablated: Trace) -> Effect:
        after = ablated.last_hidden_state[tokens].double().mean(0)
        moved = _effect_not_negative(1 - float(torch.dot(before, after) / (before.norm() * after.norm())))
        if logits is None or ablated.logits is None:
            return Effect(moved, None, None)
        return Effect(moved, *(divergence(logits[n], ablated.logits[n]) for n in (-1, tokens[-1])))

    return compare


def divergence(kept: Float[Tensor, " V"], changed: Float[Tensor, " V"]) -> float:
    """Compute the Kullback-Leibler divergence, in nats, of what some logits say from what others said before."""
    p, q = (logits.double().log_softmax(-1) for logits in (kept, changed))
    return _effect_not_negative(float(torch.where(p > -torch.inf, p.exp() * (p - q), 0.0).sum()))


def _effect_not_negative(value: float) -> float:
    """What cannot be negative but for rounding; NaN stays what it is."""
    return value if isnan(value) else max(0.0, value)
