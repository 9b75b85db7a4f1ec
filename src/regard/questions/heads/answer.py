"""Hold what every head's attention follows: the scores of all heads, in texts and in tests, each a table of its own."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from regard.display.answer import Answer
from regard.explain.frames import Row
from regard.explain.weights.head_means import HeadMeans
from regard.questions.heads import panels, sentences

if TYPE_CHECKING:
    from regard.web.page import Page

CORPUS = "corpus"  # what the one table of a store's heads is called


@dataclass(frozen=True, eq=False, repr=False)
class Heads(Answer):
    """The means of every head's scores. tables: by what they are of."""

    format: ClassVar[str] = "regard heads"
    findings = sentences.of_heads
    panels = panels.of_heads
    exactness = sentences.exactness

    tables: Mapping[str, HeadMeans]

    def title(self) -> str:
        """How many heads over how many tokens, or what the tables are of."""
        if len(self.tables) > 1:
            return f"What attention heads do: {'; '.join(self.tables)}"
        (found,) = self.tables.values()
        layers, heads = next(iter(found.scores.values())).shape
        return f"What {layers * heads} attention heads do over {found.counts['queries']:,} tokens"

    def rows(self) -> list[Row]:
        """One row a head and table: of, layer, head, and every score."""
        return [{"of": name, **row} for name, means in self.tables.items() for row in means.rows()]

    def data(self) -> dict[str, object]:
        """Of each table what is said of every score, the counts, and the heads."""
        return {"tables": {name: _table(found) for name, found in self.tables.items()}}


@dataclass(frozen=True, eq=False, repr=False)
class CorpusHeads(Heads):
    """The means over a corpus, from the sums that its store keeps: one table."""

    format: ClassVar[str] = "regard stats"

    def rows(self) -> list[Row]:
        """One row a head: layer, head, and every score."""
        return self.tables[CORPUS].rows()

    def data(self) -> dict[str, object]:
        """What is said of every score, the counts, and the heads."""
        return _table(self.tables[CORPUS])


def of_corpus(found: HeadMeans) -> CorpusHeads:
    """Make the answer of a store's means."""
    return CorpusHeads({CORPUS: found})


def page_of_means(found: HeadMeans) -> "Page":
    """Put together the page of one table of means, as `store.stats()` gives it."""
    return of_corpus(found).page()


def _table(found: HeadMeans) -> dict[str, object]:
    return {"findings": sentences.of_scores(found), "counts": found.counts, "heads": found.rows()}
