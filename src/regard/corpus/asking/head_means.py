"""Score every head over a whole corpus: what its attention follows, as means over all queries of a store.

The scores are those of `regard.explain.weights.head_scores`, but for sinks, which are of one text; queries are tokens
that are not special and not the first of their window, each counted once however many windows read it. Under --where
only windows that have such a word were read, and count.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from regard.corpus.writing.attention_sums import SUMS
from regard.errors import RegardError
from regard.explain.frames import Row, Table

if TYPE_CHECKING:
    from regard.corpus.store_tables import StoreTables

# Each score, and over how many queries it is a mean.
OVER = {
    "previous": "queries",
    "next": "nexts",
    "same": "queries",
    "special": "queries",
    "first": "queries",
    "duplicate": "duplicates",
    "induction": "inductions",
    "entropy": "queries",
    "distance": "queries",
}


@dataclass(frozen=True, eq=False, repr=False)
class HeadMeans(Table):
    """The scores of every head by their names, (layers, H) each; NaN where no query has such a key.

    entropy is in nats, distance in tokens, the others are shares from 0 to 1. counts: queries in all, those with an
    earlier token of their id (duplicates) and with one that has a token behind it (inductions).
    """

    scores: dict[str, Float[np.ndarray, "layers H"]]
    counts: dict[str, int]

    def rows(self) -> list[Row]:
        """One row a head: layer, head, and every score."""
        layers, heads = next(iter(self.scores.values())).shape
        return [
            {"layer": layer, "head": head} | {name: float(each[layer, head]) for name, each in self.scores.items()}
            for layer in range(layers)
            for head in range(heads)
        ]

    def best(self, name: str, count: int = 3) -> list[tuple[int, int, float]]:
        """List the heads with the largest score of a name: (layer, head, score); none where it is NaN."""
        table = self.scores[name]
        order = np.argsort(np.where(np.isnan(table), np.inf, -table), axis=None, kind="stable")[:count]
        places = [np.unravel_index(n, table.shape) for n in order]
        return [(int(a), int(b), float(table[a, b])) for a, b in places if not np.isnan(table[a, b])]


def head_means(store: "StoreTables") -> HeadMeans:
    """Add up the heads' sums of all shards of a store, and divide them by their queries.

    Raises:
        RegardError: the store was made without statistics, or has no query.
    """
    if not store.manifest.settings.get("statistics"):
        raise RegardError(f"store {str(store.path)!r} was made with --no-statistics: it does not say what heads did")
    summed = ", ".join(f"sum({name}) AS {name}" for name in SUMS)
    found = store.sql(f"SELECT layer, head, {summed} FROM heads GROUP BY layer, head ORDER BY layer, head")
    columns = {name: found.column(name).to_numpy() for name in ("layer", "head", *SUMS)}
    if not len(columns["layer"]) or not columns["queries"].max():
        raise RegardError(f"store {str(store.path)!r} holds no token that looks at anything: there is no score")
    shape = int(columns["layer"].max()) + 1, int(columns["head"].max()) + 1
    sums = {name: np.full(shape, np.nan) for name in SUMS}
    for name in SUMS:
        sums[name][columns["layer"], columns["head"]] = columns[name]
    with np.errstate(invalid="ignore", divide="ignore"):
        scores = {name: sums[name] / np.where(sums[over] > 0, sums[over], np.nan) for name, over in OVER.items()}
    counts = {name: int(columns[name].max()) for name in ("queries", "duplicates", "inductions")}
    return HeadMeans(scores, counts)
