"""Declare the options of `regard why`, for effects on a word or label and for an attention score (`ScoreQuery`)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from regard.display.query import Called, Progress, Query, option, option_name
from regard.errors import RegardError
from regard.questions.queries import PARTS
from regard.questions.why import TOKENS_BY

if TYPE_CHECKING:
    from regard.display.answer import Answer
    from regard.models.model import Model
    from regard.models.source import Source
    from regard.questions.why.score import ScoreSources
    from regard.trace.trace import PairTrace, Trace

PLACE = "a word or a token's number"
STRONGEST = "that of the largest weight (with --edge only)"


@dataclass(frozen=True, kw_only=True)
class ScoreQuery(Query):
    """Split the score of one head for a query and a key: which parts of both make it look there."""

    query: str | int = option("The word that looks, or a token's number.", metavar="WORD", needed=PLACE)
    key: str | int = option("The word that is looked at, or a token's number.", metavar="WORD", needed=PLACE)
    layer: int | None = option("The layer; without it where the weight is largest.", metavar="N")
    head: int | None = option("The head; without it the one whose weight is largest.", metavar="N")
    part: str | None = option("Of an encoder-decoder: of which attention.", among=PARTS)

    def check(self, texts: int, targets: int = 0, *, called: Called = str) -> None:
        """Raise RegardError for options that don't fit together, before a model is loaded."""
        super().check(texts, targets, called=called)
        if texts != 1:
            raise RegardError(f"{called('query')}: got {texts} texts, expected one: a score belongs to one text")

    def answer(
        self, model: "Model", traces: "Sequence[Trace | PairTrace]", progress: Progress | None = None
    ) -> "ScoreSources":
        """Split the score of a query and key, by default in the head with the largest weight between them."""
        from regard.questions.why.score import named_score

        return named_score(model, *traces, **vars(self))


@dataclass(frozen=True, kw_only=True)
class WhyQuery(Query):
    """Rank the tokens and heads that affect a word (--word) or a label (--to), or split an attention score (--edge).

    --method ranks tokens by the effect of ablating them (removal), by the effect of ablating the word's attention to
    them (edges), by contribution, or by weight. With --open, the model (--model) reads the texts of the file again.
    """

    summary = "Rank the tokens and heads that affect a word, by ablation."
    heading = "Find causes"
    examples = (
        'why "He sat on a river bank, fishing." --word bank',
        'why "He sat on a river bank, fishing." --edge bank:river',
    )
    served = False
    inputs = ("targets", "seconds", "model", "open_file")
    files = ("figure", "json", "html of traces", "csv", "save")
    full = True

    word: str | None = option(shown="required without --edge and --to")
    to: str | None = option(shown="none")
    edge: str | None = option()
    layer: int | None = option(shown=STRONGEST)
    head: int | None = option(shown=STRONGEST)
    part: str | None = option()
    method: str = option(default="removal", among=TOKENS_BY)
    top: int | None = option(shown="10 (5 for two words)", least=1)

    @property
    def score(self) -> ScoreQuery | None:
        """Return the query for the score of --edge, None without --edge."""
        if self.edge is None:
            return None
        query, colon, key = self.edge.rpartition(":") if self.edge.count(":") == 1 else ("", "", "")
        if not colon or not query.strip() or not key.strip():
            raise RegardError(f"--edge: got {self.edge!r}, expected two words and a colon: --edge bank:river")
        return ScoreQuery(query=query.strip(), key=key.strip(), layer=self.layer, head=self.head, part=self.part)

    def check(self, texts: int, targets: int = 0, *, called: Called = str) -> None:
        """Raise RegardError for options that don't fit together, before a model is loaded."""
        if self.edge is None and (self.word is None or not self.word.strip()) and (self.to is None or self.word):
            raise RegardError("--word is needed: a word of the text, or --to with a label of a classifier")
        super().check(texts, targets, called=called)
        if self.edge is None:
            for name in ("layer", "head", "part"):
                if getattr(self, name) is not None:
                    raise RegardError(f"{called(name)} goes with --edge WORD:WORD: it chooses the score")
            return
        if self.to is not None:
            raise RegardError("--edge and --to: pass one of them, a score to split or a label to explain")
        if self.method != TOKENS_BY[0]:
            raise RegardError("--method goes with --word: it sets how the word's tokens are ranked")
        if self.word is not None:
            raise RegardError("--edge and --word: pass one of them, a score to split or a word to explain")
        assert self.score is not None
        self.score.check(texts or 1, called=_option_name)  # the number of traces in a file isn't known yet

    def listed(self, answer: "Answer", *, full: bool) -> int | None:
        """Return the number of rows to list of each ranking."""
        return self.top or (5 if len(getattr(answer, "found", ())) == 2 else 10)

    def run(self, source: "Source", progress: Progress) -> "Answer":
        """Trace the texts, or the texts of a saved file again, and return the answer."""
        reading = source.read() if source.open_file is None else source.read_again()
        answer = self.answer(reading.model, reading.traces, progress)
        return answer if self.edge is not None else replace(answer, generated=reading.generated)  # type: ignore[call-arg]

    def answer(self, model: "Model", traces: Sequence[Any], progress: Progress | None = None) -> "Answer":
        """Return a `WhyOfTexts` for a word or label, or `ScoreSources` for an edge."""
        if self.score is not None:
            self.score.check(len(traces), called=_option_name)
            return replace(self.score.answer(model, traces), traces=traces)
        from regard.questions.why.causes import why_of_texts

        return why_of_texts(model, traces, self.word, to=self.to, tokens_by=self.method, progress=progress)


def _option_name(field: str) -> str:
    """Return the command-line option for a field of a `ScoreQuery`: --edge for query and key."""
    return "--edge" if field in ("query", "key") else option_name(field)
