"""What a cut changed: a word's contextual embedding, and what a causal model would say next."""

from dataclasses import dataclass

import torch

from regard.explain.places import Place, tokens_of
from regard.trace import Trace


@dataclass(frozen=True)
class Effect:
    """moved: 1 - cosine of the place's contextual embedding with and without the cut; 0 where nothing changed.

    next_token: Kullback-Leibler divergence, in nats, of the next-token distribution after the last token, with the cut
    from without it; None where the model has no language head.
    """

    moved: float
    next_token: float | None


def effect(trace: Trace, cut: Trace, place: Place) -> Effect:
    """Compare a trace with one of the same text in which something was cut."""
    tokens = tokens_of(trace, place)
    before, after = (each.contextual[tokens].double().mean(0) for each in (trace, cut))
    cosine = torch.dot(before, after) / (before.norm() * after.norm())
    divergence = None
    if trace.logits is not None and cut.logits is not None:
        kept, changed = (each.logits[-1].double().log_softmax(-1) for each in (trace, cut) if each.logits is not None)
        divergence = float((kept.exp() * (kept - changed)).sum())
    return Effect(max(0.0, 1 - float(cosine)), divergence)
