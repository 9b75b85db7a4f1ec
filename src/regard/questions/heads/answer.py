"""Hold the scores of all heads, with a table for the texts and for each test."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from regard.display.answer import Answer
from regard.explain.frames import Row
from regard.explain.weights.head_means import HeadMeans
from regard.questions.heads import panels, sentences


@dataclass(frozen=True, eq=False, repr=False)
class Heads(Answer):
    """The mean scores of every head. tables: by the name of their texts or test."""

    format: ClassVar[str] = "regard heads"
    findings = sentences.of_heads
    panels = panels.of_heads

    tables: Mapping[str, HeadMeans]

    def title(self) -> str:
        """Say how many heads over how many tokens, or what the tables are of."""
        if len(self.tables) > 1:
            return f"Scores of attention heads: {', '.join(self.tables)}"
        (found,) = self.tables.values()
        layers, heads = next(iter(found.scores.values())).shape
        return f"Scores of {layers * heads} attention heads over {found.counts['queries']:,} tokens"

    def exactness(self) -> list[str]:
        """State which tokens the means are over and what read them, and pass on a store's notes."""
        models = {means.model for means in self.tables.values() if means.model}
        notes = dict.fromkeys(note for means in self.tables.values() for note in means.notes)
        read = "".join(f", read with {model}" for model in models)
        return [f"Means are over all tokens except special tokens and the first token of each text{read}.", *notes]

    def rows(self) -> list[Row]:
        """List one row a head and table: of, layer, head, and every score."""
        return [{"of": name, **row} for name, means in self.tables.items() for row in means.rows()]

    def data(self) -> dict[str, object]:
        """Return each table's sentences, token counts and scores."""
        tables = {}
        for each, found in self.tables.items():
            written = [f"{name}: {sentences.score_sentence(found, name)}" for name in found.scores]
            tables[each] = {"findings": written, "counts": found.counts, "heads": found.rows()}
        return {"tables": tables}
