"""A corpus that was embedded: what `regard embed` wrote, and every question that it answers."""

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
    """A store, opened from its folder: `with Store("texts.store") as store: store.find("bank")`.

    Nothing is read before it is requested; `sql` answers any query over the tables.
    """

    find = find_occurrences
    senses = find_senses
    shift = find_shift

    def stats(self) -> Heads:
        """Summarize every head over the corpus: one table, "corpus", of the sums in the store."""
        return Heads({"corpus": head_means(self)})


def head_means(store: StoreTables) -> HeadMeans:
    """Add up the heads' sums of all shards of a store, and divide them by their queries: means over the whole corpus.

    The scores are those of `regard.explain.weights.head_scores`, except for sinks, which are of one text; queries are
    tokens that aren't special and not the first of their window, each counted once however many windows read it. Under
    --where only windows that have such a word were read, and count.
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
        scores = {name: sums[name] / np.where(over > 0, over, np.nan) for name, over in queries.items()}
    counts = {name: int(sums[name].max()) for name in COUNTS}
    return HeadMeans(scores, counts, model=store.manifest.model.name, notes=store.notes)
