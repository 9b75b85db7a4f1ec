"""Open an embedding index and query it: occurrences, senses, change of meaning, attention heads."""

import numpy as np

from regard.corpus.questions.find import find as find_occurrences
from regard.corpus.questions.senses.answer import find_senses
from regard.corpus.questions.shift import find_shift
from regard.corpus.schema import SUMS
from regard.corpus.store_tables import StoreTables
from regard.errors import RegardError
from regard.explain.weights.head_means import COUNTS, OVER, HeadMeans
from regard.questions.heads import Heads

SCORES = ("previous", "next", "same", "special", "first", "duplicate", "induction", "entropy", "distance")


class Store(StoreTables):
    """An embedding index, opened from its folder: `with Store("texts.store") as store: store.find("bank")`.

    Tables and vectors are read when needed. `sql` runs any SELECT query on the tables.
    """

    find = find_occurrences
    senses = find_senses
    shift = find_shift

    def stats(self) -> Heads:
        """Return a table of each head's mean attention statistics over the corpus."""
        return Heads({"corpus": head_means(self)})


def head_means(store: StoreTables) -> HeadMeans:
    """Compute each head's mean attention scores over the whole corpus from the sums in all shards.

    The scores are those of `regard.explain.weights.head_scores`, without attention sinks, which are specific to a
    text. Queries are all tokens except special tokens and the first token of a window. Each is counted once, even if it
    is in several windows. With --where, only windows with a matching word are included.
    """
    if not store.manifest.settings.get("statistics"):
        raise RegardError(f"store {str(store.path)!r} was made with --no-statistics: it has no attention statistics")
    shape = store.manifest.model.layers, store.manifest.model.heads
    sums: dict[str, np.ndarray] = {}
    for shard in store.shards.values():
        for _, table in shard.tables("heads", ["layer", "head", *SUMS]):
            sums = sums or {name: np.zeros(shape) for name in SUMS}
            layer, head = (table[name].to_numpy() for name in ("layer", "head"))
            for name in SUMS:
                np.add.at(sums[name], (layer, head), table[name].to_numpy())
    if not sums or not sums["queries"].max(initial=0):
        raise RegardError(f"store {str(store.path)!r} has no token that attends to another token, so there is no score")
    with np.errstate(invalid="ignore", divide="ignore"):
        queries = {name: sums[OVER.get(name, "queries")] for name in SCORES}
        scores = {name: sums[name] / np.where(count > 0, count, np.nan) for name, count in queries.items()}
    counts = {name: int(sums[name].max()) for name in COUNTS}
    return HeadMeans(scores, counts, model=store.manifest.model.name, notes=store.notes)
