"""Hold what every head's attention follows: the scores of all heads, in texts and in tests, each a table of its own."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from regard.display.answer import Answer
from regard.explain.frames import Row
from regard.explain.weights.head_means import HeadMeans
from regard.questions.heads import panels, sentences


@dataclass(frozen=True, eq=False, repr=False)
class Heads(Answer):
    """The means of every head's scores. tables: by what they are of."""

    format: ClassVar[str] = "regard heads"
    findings = sentences.of_heads
    panels = panels.of_heads
    exactness = sentences.exactness_of_heads

    tables: Mapping[str, HeadMeans]

    def title(self) -> str:
        """Say how many heads over how many tokens, or what the tables are of."""
        if len(self.tables) > 1:
            return f"What attention heads do: {'; '.join(self.tables)}"
        (found,) = self.tables.values()
        layers, heads = next(iter(found.scores.values())).shape
        return f"What {layers * heads} attention heads do over {found.counts['queries']:,} tokens"

    def rows(self) -> list[Row]:
        """List one row a head and table: of, layer, head, and every score."""
        return [{"of": name, **row} for name, means in self.tables.items() for row in means.rows()]

    def data(self) -> dict[str, object]:
        """Give of each table what is said of every score, the counts, and the heads."""
        return {"tables": {name: _heads_table_as_json(found) for name, found in self.tables.items()}}


def _heads_table_as_json(found: HeadMeans) -> dict[str, object]:
    return {"findings": sentences.of_scores(found), "counts": found.counts, "heads": found.rows()}
