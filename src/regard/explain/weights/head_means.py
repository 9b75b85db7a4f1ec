"""Scores of every head by name, as means over the queries of many texts: of traces, of tests, of a whole corpus."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from regard.errors import RegardError
from regard.explain.frames import Row, Table
from regard.explain.weights.head_scores import NAMES, HeadScores

COUNTS = ("queries", "nexts", "duplicates", "inductions")
OVER = {  # the others are means over all queries
    "next": "nexts", "duplicate": "duplicates", "induction": "inductions", "successor": "successors",
}  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class HeadMeans(Table):
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
