"""Scores of every head by name, as means over the queries of many texts: of traces, of tests, of a whole corpus."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from regard.errors import RegardError
from regard.explain.frames import Row, Tabular
from regard.explain.weights.alignment import align
from regard.explain.weights.head_scores import NAMES, HeadScores
from regard.explain.weights.sinks import cross_sinks
from regard.trace.layer_subset import kept_numbers
from regard.trace.trace import PairTrace

COUNTS = ("queries", "nexts", "duplicates", "inductions")
OVER = {  # the others are means over all queries
    "next": "nexts", "duplicate": "duplicates", "induction": "inductions", "successor": "successors",
}  # fmt: skip
SHARE = "share"  # of a token's attention, from 0 to 1
ALIKE = "likeness"  # of the attention of two texts, from 0 to 1
CROSS_SCORES = ("written", "read", "successor", "special")


@dataclass(frozen=True, eq=False, repr=False)
class HeadMeans(Tabular):
    """The scores of every head by their names, (layers, H) each; NaN where no query has such a key.

    entropy is in nats, distance in tokens, the others are shares from 0 to 1. counts: queries in all, those with a
    token after them (nexts), with an earlier token of their id (duplicates) and with one that has a token behind it
    (inductions); of cross-attention those whose source has a token behind it (successors). layers: the layer of each
    row, empty for 0, 1, 2, …. model, notes: of a store's, what read the texts, and what to know of them.
    """

    scores: dict[str, Float[np.ndarray, "layers H"]]
    counts: dict[str, int]
    layers: tuple[int, ...] = ()
    model: str = ""
    notes: tuple[str, ...] = ()

    def layer(self, row: int) -> int:
        """Return the layer of a row."""
        return self.layers[row] if self.layers else row

    def count(self, name: str) -> int:
        """Over how many tokens a score is a mean."""
        return self.counts.get(OVER.get(name, "queries"), self.counts["queries"])

    def rows(self) -> list[Row]:
        """List one row a head: layer, head, and every score."""
        layers, heads = next(iter(self.scores.values())).shape
        return [
            {"layer": self.layer(row), "head": head}
            | {name: float(each[row, head]) for name, each in self.scores.items()}
            for row in range(layers)
            for head in range(heads)
        ]

    def best(
        self, name: str, count: int = 3, by: Float[np.ndarray, "layers H"] | None = None
    ) -> list[tuple[int, int, float]]:
        """List the heads with the largest score of a name, or of `by` instead: (layer, head, score).

        Heads whose score, or whose `by`, is NaN are left out.
        """
        table, ranked = self.scores[name], self.scores[name] if by is None else by
        ranked = np.where(np.isnan(table), np.nan, ranked)
        order = np.argsort(np.where(np.isnan(ranked), np.inf, -ranked), axis=None, kind="stable")[:count]
        places = [np.unravel_index(n, table.shape) for n in order]
        return [(self.layer(int(a)), int(b), float(table[a, b])) for a, b in places if not np.isnan(ranked[a, b])]


def mean_scores(found: Sequence[HeadScores]) -> HeadMeans:
    """Average the head scores of several texts, each text counting by how many of its queries a score is of."""
    if not found:
        raise RegardError("mean_scores: given no scores, needs those of one text or more")
    calls = found[0].calls
    if any(each.calls != calls for each in found):
        raise RegardError("mean_scores: the traces hold different layers, the same are needed")
    counts = {name: sum(getattr(each, name) for each in found) for name in COUNTS}
    scores = {}
    for name in NAMES:
        tables = np.stack([each.by_name()[name].numpy() for each in found])
        weights = np.array([getattr(each, OVER.get(name, "queries")) for each in found], dtype=np.float64)
        known = ~np.isnan(tables) & (weights > 0)[:, None, None]
        total = (np.where(known, tables, 0) * weights[:, None, None]).sum(0)
        over = (known * weights[:, None, None]).sum(0)
        scores[name] = np.divide(total, over, out=np.full_like(total, np.nan), where=over > 0)
    return HeadMeans(scores, counts, tuple(layer for layer, _ in calls))


@dataclass(frozen=True)
class Meaning:
    """What a score measures, and the target of a head's attention if it has a high score.

    looks_at: the target in a few words, empty if no overview lists the score. says: the meaning as a sentence. unit:
    "share", "likeness", "nats" or "tokens". mean_of: the tokens that the score averages over, if not all.
    """

    looks_at: str
    says: str
    unit: str = SHARE
    mean_of: str = ""


MEANINGS = {
    "previous": Meaning("the previous token", "How much a token attends to the previous token."),
    "next": Meaning(
        "the next token", "How much a token attends to the next token.", mean_of="followed by another token"
    ),
    "same": Meaning("the token itself", "How much a token attends to itself."),
    "special": Meaning("special tokens", "How much a token attends to special tokens such as [CLS]."),
    "first": Meaning("the first token", "How much a token attends to the first token of the text."),
    "sinks": Meaning(
        "attention sinks", "How much a token attends to attention sinks, which attract attention whatever they mean."
    ),
    "duplicate": Meaning(
        "earlier duplicates",
        "How much a token attends to its earlier occurrences in the text.",
        mean_of="that occurred before",
    ),
    "induction": Meaning(
        "tokens after duplicates",
        "How much a token attends to the token that followed its earlier occurrence.",
        mean_of="that occurred before and were followed by another token",
    ),
    "entropy": Meaning(
        "many tokens, in nats",
        "How evenly a token spreads its attention: its entropy in nats, 0 if a single token gets all.",
        unit="nats",
    ),
    "distance": Meaning(
        "distant tokens", "How far away a token attends: the mean distance in tokens, by weight.", unit="tokens"
    ),
    "position": Meaning(
        "fixed positions",
        "How much a head attends to the same positions after their tokens were shuffled, from 0 to 1.",
        unit=ALIKE,
    ),
    "content": Meaning(
        "tokens, wherever they are",
        "How much a head attends to the same tokens after they moved to other positions, from 0 to 1.",
        unit=ALIKE,
    ),
    "looked": Meaning("", "How much a token attends to the shuffled tokens."),
    "written": Meaning(
        "the source of the next token", "How much attention the source of the token that is written next receives."
    ),
    "read": Meaning(
        "the source of the current token", "How much attention the source of the token that was just read receives."
    ),
    "successor": Meaning(
        "the source token after that",
        "How much attention the source token after that receives.",
        mean_of="whose source is followed by another token",
    ),
}


def is_share(name: str) -> bool:
    """Return whether a score is from 0 to 1, so that all such scores share a scale."""
    return MEANINGS[name].unit in (SHARE, ALIKE)


def cross_head_scores(pairs: Sequence[PairTrace]) -> HeadMeans:
    """Score every cross-attention head over one pair of texts or several; each target token counts once.

    Row i reads target token i and writes token i + 1. With a(i) the source token that target token i comes from, as
    `align` finds it, and w the weights of one head, each score is a mean over the target tokens that aren't special:

        written     w[i - 1, a(i)]      the source of the token that is written now     Bahdanau et al. 2015
        read        w[i, a(i)]          the source of the token that was read           Chen et al. 2020
        successor   w[i, a(i) + 1]      the source token after it
        special     Σ w[i, j] over the source's special tokens and sinks j

    If a translation goes word by word, the successor is written next, so written and successor are both large. They
    differ if the order changes.
    """
    for pair in pairs:
        if not isinstance(pair, PairTrace):
            raise RegardError(f"cross_head_scores: given {type(pair).__name__}, needs the traces of text and target")
    if not pairs:
        raise RegardError("cross_head_scores: given no trace, needs one or more")
    layers = kept_numbers(pairs[0].decoder.cross)
    sums: dict[str, list[torch.Tensor]] = {name: [] for name in CROSS_SCORES}
    for pair in pairs:
        source = pair.encoder.tokens
        apart = [n for n, token in enumerate(source) if token.special] + [sink.token for sink in cross_sinks(pair)]
        weights = torch.stack([pair.decoder.cross[n].dense() for n in layers]).cpu().double()  # (N, H, T, S)
        for aligned in align(pair).tokens:
            if aligned.written is None or not aligned.written.top or pair.decoder.tokens[aligned.token].special:
                continue
            row, origin = aligned.token, aligned.written.top[0].token
            sums["written"].append(weights[:, :, row - 1, origin])
            sums["read"].append(weights[:, :, row, origin])
            if origin + 1 < len(source) and not source[origin + 1].special:
                sums["successor"].append(weights[:, :, row, origin + 1])
            sums["special"].append(weights[:, :, row, sorted(set(apart))].sum(-1))
    if not sums["written"]:
        raise RegardError("cross_head_scores: no target token has a source that is not special: there is no score")
    empty = np.full(tuple(sums["written"][0].shape), np.nan)
    scores = {name: torch.stack(each).mean(0).numpy() if each else empty for name, each in sums.items()}
    counts = {"queries": len(sums["written"]), "successors": len(sums["successor"])}
    return HeadMeans(scores, counts, layers)
