"""A corpus that was embedded: what `regard embed` wrote, and every question that it answers."""

from collections.abc import Sequence

from regard.corpus.asking.change import ROUNDS
from regard.corpus.asking.find import CONTEXT, Concordance, find
from regard.corpus.asking.head_means import HeadMeans, head_means
from regard.corpus.asking.labelled import Labelled
from regard.corpus.asking.senses import CHECKED, EXAMPLES, WORDS, Senses, find_senses
from regard.corpus.asking.shift import Shift, find_shift
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
        """Find the occurrences of a word as a concordance: see `regard.corpus.asking.find.find`."""
        return find(
            self, word, like=like, everywhere=everywhere, by=by, sort=sort, top=top, layer=layer, context=context
        )

    def senses(
        self,
        word: str,
        k: int | None = None,
        *,
        by: str = "word",
        layer: int | None = None,
        labelled: Sequence[Labelled] | None = None,
        examples: int = EXAMPLES,
        words: int = WORDS,
        checked: int = CHECKED,
        context: int = CONTEXT,
        seed: int = 0,
    ) -> Senses:
        """Find the senses of a word, with examples and the words that tell them: see `regard.corpus.asking.senses`."""
        return find_senses(
            self, word, k, by=by, layer=layer, labelled=labelled, examples=examples, words=words, checked=checked,
            context=context, seed=seed,
        )  # fmt: skip

    def shift(
        self,
        word: str,
        other: StoreTables | None = None,
        column: str | None = None,
        *,
        values: Sequence[str] | None = None,
        k: int | None = None,
        by: str = "word",
        layer: int | None = None,
        rounds: int = ROUNDS,
        examples: int = 3,
        context: int = CONTEXT,
        seed: int = 0,
    ) -> Shift:
        """Compare a word's meaning with another store, or by a column of the metadata: see `corpus.asking.shift`."""
        return find_shift(
            self, word, other, column, values=values, k=k, by=by, layer=layer, rounds=rounds, examples=examples,
            context=context, seed=seed,
        )  # fmt: skip

    def stats(self) -> HeadMeans:
        """Score every head over the whole corpus: see `regard.corpus.asking.head_means`."""
        return head_means(self)
