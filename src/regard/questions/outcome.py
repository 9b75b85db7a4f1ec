"""Declare the options that choose an outcome: a next token, alone or against another, or a word's cosine."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from regard.display.query import Called, Query, option
from regard.errors import RegardError
from regard.text.quoting import quoted

if TYPE_CHECKING:
    from regard.explain.causes.outcomes import Outcome
    from regard.models.model import Model
    from regard.trace.trace import PairTrace, Trace


@dataclass(frozen=True, kw_only=True)
class OutcomeQuery(Query):
    """The options that choose an outcome."""

    to: str | None = option(
        "Measure this next token, or a classifier's label.", metavar="TOKEN", shown="required without --word"
    )
    against: str | None = option("With --to: measure the logit difference to this token.", metavar="TOKEN")
    word: str | None = option("Examine this word.", metavar="WORD")

    def check_outcome(self, called: Called) -> None:
        """Raise RegardError unless exactly one outcome is chosen."""
        to, word = map(called, ("to", "word"))
        if self.to is None and self.word is None:
            raise RegardError(f"{to} is needed, a next token, or {word}: the outcome to measure")
        if self.to is not None and self.word is not None:
            raise RegardError(f"{to} and {word}: given both, an outcome needs one of them")
        self.need("against", "to", called, "a token's logit is meant")

    def outcome(
        self,
        model: "Model",
        trace: "Trace | PairTrace",
        alone: "Callable[..., Outcome]",
        *,
        like: str | None = None,
        at: int | None = None,
    ) -> "Outcome":
        """Make the outcome."""
        from regard.explain.causes.outcomes import cosine, logit_difference

        if self.to is not None:
            place: dict[str, Any] = {} if at is None else {"at": at}
            if self.against is None:
                return alone(model, self.to, **place)
            return logit_difference(model, self.to, self.against, **place)
        side = trace.sides[-1]
        assert self.word is not None
        if like is None:
            return cosine(self.word, side[self.word], "its vector in the clean text")
        return cosine(self.word, side[like], quoted(like))
