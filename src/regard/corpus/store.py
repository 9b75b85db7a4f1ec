"""A corpus that was embedded: what `regard embed` wrote, and every question that it answers."""

from regard.corpus.find import CONTEXT, Concordance, find
from regard.corpus.store_tables import StoreTables


class Store(StoreTables):
    """A store, opened from its folder: `with Store("texts.store") as store: store.find("bank")`.

    Nothing is read before it is asked for; `sql` answers any query over the tables.
    """

    def find(
        self,
        word: str,
        *,
        like: str | None = None,
        everywhere: bool = False,
        by: str = "word",
        sort: str | None = None,
        top: int | None = None,
        layer: int | None = None,
        context: int = CONTEXT,
    ) -> Concordance:
        """Find the occurrences of a word as a concordance: see `regard.corpus.find.find`."""
        return find(
            self, word, like=like, everywhere=everywhere, by=by, sort=sort, top=top, layer=layer, context=context
        )
