"""Find the rows of a store whose vectors are nearest to one: exact, by reading all of them once."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from regard.corpus.asking.occurrences import COLUMNS, Occurrences, in_store_order
from regard.corpus.asking.vectors import cosines, largest
from regard.corpus.store_tables import StoreTables
from regard.errors import RegardError


@dataclass(frozen=True, eq=False)
class NearestRows:
    """The nearest rows, in the order of the store, with their cosines. total, mean: rows of the store, and the mean of
    the cosines of all of them."""

    found: Occurrences
    similarity: Float[np.ndarray, " n"]
    total: int
    mean: float


def find_nearest_rows(
    tables: StoreTables, query: Float[np.ndarray, " M"], top: int, layer: int | None = None
) -> NearestRows:
    """Compare every row's vector with one, and keep the nearest."""
    best: list[tuple[float, str, int]] = []
    total, added = 0, 0.0
    for shard, first, vectors in tables.all_vectors(layer):
        scores = cosines(vectors, query)
        total += len(scores)
        added += float(scores.sum(dtype=np.float64))
        best += [(float(scores[n]), shard, first + int(n)) for n in largest(scores, top)]
        best = sorted(best, key=lambda each: -each[0])[:top]
    if not best:
        raise RegardError(f"embedding index {str(tables.path)!r} has no rows")
    wanted: dict[str, list[int]] = {}
    for _, shard, row in best:
        wanted.setdefault(shard, []).append(row)
    found = in_store_order(tables, tables.rows_at(wanted, COLUMNS))
    score = {(shard, row): value for value, shard, row in best}
    similarity = [score[shard, row] for shard, row in zip(found.shard, found.row.tolist(), strict=True)]
    return NearestRows(found, np.array(similarity, dtype=np.float32), total, added / total)
