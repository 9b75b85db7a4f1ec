"""Remove a word from a run, and measure what an ablation changed: a word's state, a model's next-token distribution."""

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
    """moved: 1 - cosine of the place's contextual embedding with and without the ablation; 0 if nothing changed.

    The other two are Kullback-Leibler divergences, in nats, of the next-token distribution under the ablation from the
    one without it: next_token after the text's last token, after_place after the place's last token, where the model
    has read no further than the word. Both are None if the model has no language head, or one that fills gaps
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
        moved = max(1 - float(torch.dot(before, after) / (before.norm() * after.norm())), 0.0)  # rounding; NaN stays
        if logits is None or ablated.logits is None:
            return Effect(moved, None, None)
        return Effect(moved, *(divergence(logits[n], ablated.logits[n]) for n in (-1, tokens[-1])))

    return compare


def divergence(kept: Float[Tensor, " V"], changed: Float[Tensor, " V"]) -> float:
    """Compute the Kullback-Leibler divergence, in nats, of what some logits say from what others said before."""
    p, q = (logits.double().log_softmax(-1) for logits in (kept, changed))
    return max(float(torch.where(p > -torch.inf, p.exp() * (p - q), 0.0).sum()), 0.0)  # rounding; NaN stays


def removal(trace: Trace | PairTrace, place: Place, *, part: Part | None = None) -> list[Ablate]:
    """Return what to ablate so that nothing of a word or token reaches any other.

        model.trace(text, interventions=removal(trace, "river"))

    Its edges are left out of every softmax, and the other weights of the row grow: the text keeps its length and
    positions. A source word is hidden from the encoder's and the decoder's tokens, a target word from the decoder's.
    place: a word that occurs once, an occurrence, or a token's number. part: for an encoder-decoder, whose text it is
    of, the "encoder"'s or the "decoder"'s.
    """
    if not isinstance(trace, (Trace, PairTrace)):
        kind = type(trace).__name__
        raise RegardError(f"removal: got {kind}, expected the trace of a text, or of a text and its target")
    if part not in (STACKS if isinstance(trace, PairTrace) else (None,)):
        ways = " or ".join(map(repr, STACKS))
        needs = ways if isinstance(trace, PairTrace) else "none: it is not an encoder-decoder"
        raise RegardError(f"removal: part: got {part!r}, but {trace.sides[0].status.model} needs {needs}")
    own = trace.sides[0 if part == "encoder" else -1]
    across = [_removal_from_keys(trace.sides[-1], own, place, "cross")] if part == "encoder" else []
    return [_removal_from_keys(own, own, place, part), *across]


def _removal_from_keys(queries: Trace, keys: Trace, place: Place, part: Part | None) -> Ablate:
    """Hide some tokens of one text from all of one (also from themselves: nothing else sees what they then are)."""
    tokens = tuple(tokens_of(keys, place))
    name = place.text if isinstance(place, Word) else place if isinstance(place, str) else keys.tokens[tokens[0]].text
    everyone = Word("every token", 0, 0, tuple(range(len(queries.tokens))))
    return ablate(edge(everyone, Word(name, 0, 0, tokens), part=part))


def spearman(a: Sequence[float], b: Sequence[float]) -> float:
    """Compute Spearman's rank correlation, ties at their mean rank; NaN where one side is constant."""
    x, y = (_mean_ranks(values) for values in (a, b))
    x, y = x - x.mean(), y - y.mean()
    return float((x * y).sum() / (x.norm() * y.norm()))


def _mean_ranks(values: Sequence[float]) -> Float[Tensor, " n"]:
    given = torch.tensor(values, dtype=torch.float64)
    _, inverse, counts = given.unique(return_inverse=True, return_counts=True)
    last = counts.cumsum(0).double()
    return (last - (counts - 1) / 2)[inverse]
