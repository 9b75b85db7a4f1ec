"""A corpus that was embedded: what `regard embed` wrote, and every question that it answers."""

from regard.corpus.asking.head_means import head_means
from regard.corpus.store_tables import StoreTables
from regard.questions.find.answer import find as find_occurrences
from regard.questions.heads.answer import Heads
from regard.questions.senses.answer import find_senses
from regard.questions.shift.answer import find_shift


class Store(StoreTables):
    """A store, opened from its folder: `with Store("texts.store") as store: store.find("bank")`.

    Nothing is read before it is asked for; `sql` answers any query over the tables.
    """

    find = find_occurrences
    senses = find_senses
    shift = find_shift

    def stats(self) -> Heads:
        """Tell what every head does over the corpus: one table, "corpus", of the sums that the store keeps.

        Raises:
            RegardError: the store was made without statistics, or has no query.
        """
        return Heads({"corpus": head_means(self)})
