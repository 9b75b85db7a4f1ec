"""What may be asked about one attention score: by `regard why --edge`, a server and the library."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from regard.display.query import Called, Progress, Query, option
from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.explain.wording import Place
    from regard.models.model import Model
    from regard.questions.score.sources import ScoreSources
    from regard.trace.trace import PairTrace, Trace

PARTS = ("encoder", "decoder", "cross")


@dataclass(frozen=True, kw_only=True)
class ScoreQuery(Query):
    """Split the score of one head for a query and a key: which parts of both make it look there."""

    query: str | int = option("The word that looks, or a token's number.", metavar="WORD")
    key: str | int = option("The word that is looked at, or a token's number.", metavar="WORD")
    layer: int | None = option("The layer; without it where the weight is largest.", metavar="N")
    head: int | None = option("The head; without it the one whose weight is largest.", metavar="N")
    part: str | None = option("Of an encoder-decoder: of which attention.", among=PARTS)

    def check(self, texts: int, targets: int = 0, *, called: Called = str) -> None:
        """Refuse what can be refused without a model."""
        super().check(texts, targets, called=called)
        for name in ("query", "key"):
            if getattr(self, name) is None:
                raise RegardError(f"{called(name)} is needed: a word or a token's number")
        if texts != 1:
            raise RegardError(f"{called('query')}: given {texts} texts, needs one: a score is of one text")

    def answer(
        self, model: "Model", traces: "Sequence[Trace | PairTrace]", progress: Progress | None = None
    ) -> "ScoreSources":
        """Answer it."""
        from regard.explain.wording import place_in
        from regard.questions.score.sources import score_sources, texts_behind_score

        part: Any = self.part  # one of PARTS
        (trace,) = traces
        queries, keys, _ = texts_behind_score(trace, part)
        query, key = (
            place_in(side, given) if isinstance(given, str) else given
            for side, given in ((queries, self.query), (keys, self.key))
        )
        layer, head = self._strongest(trace, query, key)
        return score_sources(model, trace, query, key, layer=layer, head=head, part=part)

    def _strongest(self, trace: "Trace | PairTrace", query: "Place", key: "Place") -> tuple[int, int]:
        """The layer and head that were asked for; what was left open is where the query gives the key most."""
        from regard.explain.wording import tokens_of
        from regard.questions.score.sources import texts_behind_score
        from regard.trace.layer_subset import kept_numbers

        if self.layer is not None and self.head is not None:
            return self.layer, self.head
        part: Any = self.part
        queries, keys, maps = texts_behind_score(trace, part)
        rows, columns = tokens_of(queries, query), tokens_of(keys, key)
        best = (-1.0, 0, 0)
        for layer in kept_numbers(maps) if self.layer is None else [self.layer]:
            given = maps[layer][:, rows][..., columns].sum(-1).mean(-1)  # (H,)
            heads = range(len(given)) if self.head is None else [self.head]
            best = max(best, *((float(given[head]), -layer, -head) for head in heads))
        return -best[1], -best[2]
