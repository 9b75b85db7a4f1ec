"""Why a word ended where it did: what tokens and heads gave it, checked by cutting each of them.

Three rankings stand side by side: raw attention weight, contribution (Kobayashi et al. 2020, 2021), and the measured
effect of the cut. Spearman's rank correlation (1904) says how well each of the first two foretells the third.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from regard.explain.contributions import contributions
from regard.explain.effect import effect
from regard.tokens import Word
from regard.trace import Trace, gives


@dataclass(frozen=True)
class Cause:
    """A token (head None) or a head (token None) and what it did to the word.

    weight: of a token the mean over layers and heads; of a head the part that does not go to special tokens.
    contribution: mean over layers of the share of the word's vector that it gave, absolute values. effect: 1 - cosine
    of the contextual embedding when the word's edges to the token, or the head for all tokens, are cut.
    """

    name: str
    token: int | None
    layer: int | None
    head: int | None
    weight: float
    contribution: float
    effect: float


@dataclass(frozen=True)
class Why:
    """Causes by falling effect. *_agreement: rank correlation with the effect of (weight, contribution)."""

    word: str
    tokens: list[Cause]
    heads: list[Cause]
    tokens_agreement: tuple[float, float]
    heads_agreement: tuple[float, float]


def why(trace: Trace, word: Word, retrace: Callable[[Sequence[Any]], Trace], cuts: Any) -> Why:
    """Rank the tokens and heads behind one occurrence of a word, each measured by cutting it.

    retrace: gives the trace of the same text with some cuts. cuts: has `head` and `edge`, as `regard` has.

    Raises:
        RegardError: a block whose shape was not verified, so that no exact contributions are known.
    """
    layers, count = len(trace.attention), trace.attention[0].shape[0]
    rows = torch.stack([gives(weights, word) for weights in trace.attention])  # (N, H, S)
    shares = torch.stack([contributions(trace, word, n).shares.abs() for n in range(layers)])  # (N, H, S)
    special = torch.tensor([token.special for token in trace.tokens], device=rows.device)
    tokens = [
        Cause(
            name=token.text,
            token=place,
            layer=None,
            head=None,
            weight=float(rows[:, :, place].mean()),
            contribution=float(shares[:, :, place].sum(1).mean()),
            effect=effect(trace, retrace([cuts.edge(word, place)]), word).moved,
        )
        for place, token in enumerate(trace.tokens)
        if bool((rows[:, :, place] > 0).any())  # what the word may not look at cannot be cut
    ]
    heads = [
        Cause(
            name=f"layer {n}, head {h}",
            token=None,
            layer=n,
            head=h,
            weight=float(rows[n, h, ~special].sum()),
            contribution=float(shares[n, h].sum()),
            effect=effect(trace, retrace([cuts.head(n, h)]), word).moved,
        )
        for n in range(layers)
        for h in range(count)
    ]
    return Why(word.text, _sorted(tokens), _sorted(heads), _agreement(tokens), _agreement(heads))


def spearman(a: Sequence[float], b: Sequence[float]) -> float:
    """Spearman's rank correlation, ties at their mean rank; NaN where one side is constant."""
    x, y = (_ranks(values) for values in (a, b))
    x, y = x - x.mean(), y - y.mean()
    return float((x * y).sum() / (x.norm() * y.norm()))


def _ranks(values: Sequence[float]) -> torch.Tensor:
    given = torch.tensor(values, dtype=torch.float64)
    _, inverse, counts = given.unique(return_inverse=True, return_counts=True)
    last = counts.cumsum(0).double()
    return (last - (counts - 1) / 2)[inverse]


def _sorted(causes: list[Cause]) -> list[Cause]:
    return sorted(causes, key=lambda cause: -cause.effect)


def _agreement(causes: list[Cause]) -> tuple[float, float]:
    measured = [cause.effect for cause in causes]
    return spearman([c.weight for c in causes], measured), spearman([c.contribution for c in causes], measured)
