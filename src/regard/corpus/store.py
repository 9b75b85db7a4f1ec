"""A corpus that was embedded: what `regard embed` wrote, and every question that it answers."""

from regard.corpus.asking.find import find as find_occurrences
from regard.corpus.asking.head_means import head_means
from regard.corpus.asking.senses import find_senses
from regard.corpus.asking.shift import find_shift
from regard.corpus.store_tables import StoreTables


class Store(StoreTables):
    """A store, opened from its folder: `with Store("texts.store") as store: store.find("bank")`.

    Nothing is read before it is asked for; `sql` answers any query over the tables.
    """

    find = find_occurrences
    senses = find_senses
    shift = find_shift
    stats = head_means
