"""What may be asked about what every head's attention follows."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from regard.checks import refuse_both
from regard.display.query import MAX_SEED, Progress, Query, option
from regard.errors import RegardError
from regard.lazy import import_part

if TYPE_CHECKING:
    from regard.display.answer import Answer
    from regard.models.model import Model
    from regard.models.source import Source
    from regard.questions.heads.answer import Heads
    from regard.trace.trace import PairTrace, Trace


@dataclass(frozen=True, kw_only=True)
class HeadsQuery(Query):
    """Score each head's attention to positions, special tokens, repeated tokens, content and translations.

    Examine texts, or the corpus of an embedding index (--store). --csv has a row for each head.
    """

    summary: ClassVar[str] = "Score each head's attention patterns, in texts and tests."

    files: ClassVar[tuple[str, ...]] = ("figure", "html", "csv", "parquet", "json")

    store: Path | None = option(shown="examine the heads on TEXT")
    tests: bool = option("Also test the heads on repeated random tokens and on shuffled tokens.", False)
    seed: int = option(default=0, least=0, most=MAX_SEED)

    def check_source(self, source: "Source", verb: str, outputs: Any) -> None:
        """Refuse texts, a model and tests of an embedding index, which has its own."""
        if self.store is None:
            super().check_source(source, verb, outputs)
            return
        others = {"TEXT": source.texts, "--target-text": source.targets, "--model": source.model, "--tests": self.tests}
        refuse_both("--store", others, "a store has its own texts and model, give one of them")

    def run(self, source: "Source", progress: Progress) -> "Answer":
        """Answer it for texts, or for an index."""
        if self.store is None:
            return super().run(source, progress)
        import_part("regard.corpus.verb").check_store(self.store)
        with import_part("regard.corpus.store").Store(self.store) as store:
            return store.stats()

    def answer(
        self, model: "Model", traces: "Sequence[Trace | PairTrace]", progress: Progress | None = None
    ) -> "Heads":
        """Answer it. Raises RegardError for tests of an encoder-decoder, or of texts of fewer than 8 tokens."""
        from regard.display.answer import Read
        from regard.explain.weights.head_means import (
            content_or_position,
            cross_head_scores,
            mean_scores,
            repeated_tokens,
        )
        from regard.explain.weights.head_scores import head_scores
        from regard.questions.heads.answer import Heads
        from regard.trace.trace import PairTrace

        if model.pairs and self.tests:
            raise RegardError(f"--tests: {model.name} is an encoder-decoder, they are for models with a single stack")
        pairs = [trace for trace in traces if isinstance(trace, PairTrace)]
        if pairs:
            tables = {
                "encoder": mean_scores([head_scores(trace.encoder) for trace in pairs]),
                "decoder": mean_scores([head_scores(trace.decoder) for trace in pairs]),
                "cross-attention": cross_head_scores(pairs),
            }
        else:
            texts = [trace for trace in traces if not isinstance(trace, PairTrace)]
            tables = {"texts": mean_scores([head_scores(trace) for trace in texts])}
        if self.tests:
            read = [trace.sides[0].text for trace in traces]
            tables |= {
                "random tokens, repeated": repeated_tokens(model, seed=self.seed),
                "tokens exchanged": content_or_position(model, read, seed=self.seed),
            }
        return Heads(tables, about=Read.of(*traces))
