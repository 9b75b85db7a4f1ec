"""What may be asked about what made an outcome: by the command, a server and the library."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from regard.display.query import Called, Progress, option
from regard.errors import RegardError
from regard.questions.outcome import OutcomeQuery
from regard.text.quoting import quoted

if TYPE_CHECKING:
    from regard.display.answer import Answer
    from regard.models.model import Model
    from regard.trace.trace import PairTrace, Trace

METHODS = ("direct", "gradient-x-input", "integrated-gradients", "attribution-patching")
BYS = ("token", "word", "head")


@dataclass(frozen=True, kw_only=True)
class AttributionQuery(OutcomeQuery):
    """Attribute a next token's logit (--to), or the cosine of two words (--word, --like), to parts of the model.

    --method direct computes the direct contribution of each component. The other methods follow gradients to tokens or
    heads, and attribution-patching compares two texts.
    """

    summary: ClassVar[str] = "Attribute a next token or a similarity to components."
    inputs: ClassVar[tuple[str, ...]] = ("targets", "seconds", "model")
    texts: ClassVar[tuple[str, str]] = ("TEXT", "One text. For attribution-patching: a clean and a corrupted text.")

    at: str | None = option(
        "Use this position: a word of the text or a token number.", metavar="WORD", shown="the last token"
    )
    like: str | None = option("Split the cosine of --word and this word.", metavar="WORD")
    method: str = option("Measure with this method.", "direct", among=METHODS)
    by: str | None = option("Report a number for each token, word or head.", among=BYS, shown="token")
    steps: int | None = option("Take N steps.", metavar="N", shown="32 to 128 (integrated-gradients only)")
    top: int | None = option(shown="10", least=1)

    @property
    def grid(self) -> bool:
        """Whether the answer is a grid: of attribution patching, which compares two texts."""
        return self.method == "attribution-patching"

    def listed(self, answer: "Answer", *, full: bool) -> int | None:
        """Return how many components are listed."""
        return None if self.grid else self.top or 10

    def check(self, texts: int, targets: int = 0, *, called: Called = str) -> None:
        """Refuse what can be refused without a model."""
        self.check_outcome(called)
        super().check(texts, targets, called=called)
        self.need("at", "to", called, "a token's logit is meant")
        self.need("like", "word", called, "the word that is compared with it")
        if not self.grid:
            self.need("word", "like", called, "another word of the text, their cosine is split")
        by, method, steps = map(called, ("by", "method", "steps"))
        if self.steps is not None and self.method != "integrated-gradients":
            raise RegardError(f"{steps} goes with {method} integrated-gradients")
        if self.by == "head" and self.method != "gradient-x-input":
            raise RegardError(f"{by} head goes with {method} gradient-x-input; direct already shows heads")
        if self.grid and self.by is not None:
            raise RegardError(f"{by}: attribution patching gives each layer and token a number: leave it out")
        if self.grid and self.top is not None:
            raise RegardError(f"{called('top')}: the answer is a grid, which is shown whole: leave it out")
        if self.grid and targets:
            raise RegardError(f"{called('target')}: attribution patching is for models with a single stack")
        if texts != 1 + self.grid:
            needs = (
                "two, a clean and a corrupted one" if self.grid else f"one: {method} attribution-patching compares two"
            )
            raise RegardError(f"{method} {self.method}: given {texts} texts, needs {needs}")

    def answer(
        self, model: "Model", traces: "Sequence[Trace | PairTrace]", progress: Progress | None = None
    ) -> "Answer":
        """Answer it: an `Attribution`, `TokenAttribution`, `HeadAttribution` or `PatchSweep`."""
        from regard.explain.causes.outcomes import logit
        from regard.questions.attribution.direct import attribution
        from regard.questions.attribution.gradients import attribute_to_heads, attribute_to_tokens
        from regard.questions.patch.sweep import attribution_patching

        trace = traces[0]
        if self.to is not None and trace.sides[-1].logits is None:
            raise RegardError(f"to: {model.name} has no language head: give word and like, two words of the text")
        unit: Any = "word" if self.by == "word" else "token"
        if self.method == "direct":
            if self.word is None:
                found = attribution(model, trace, self._at(trace), self.to, against=self.against)
                return replace(found, unit=unit)
            assert self.like is not None
            found = attribution(model, trace, self.word, toward=trace.sides[-1][self.like])
            return replace(found, outcome=f"cosine of {quoted(self.word)} and {quoted(self.like)}", unit=unit)
        outcome = self.outcome(model, trace, logit, like=self.like, at=None if self.at is None else self._at(trace))
        if self.grid:
            clean, corrupted = (each.sides[0].text for each in traces)
            return attribution_patching(model, clean, corrupted, outcome)
        if self.by == "head":
            return attribute_to_heads(model, trace, outcome)
        method: Any = self.method.replace("-", " ")
        return replace(attribute_to_tokens(model, trace, outcome, method=method, steps=self.steps), unit=unit)

    def _at(self, trace: "Trace | PairTrace") -> int | None:
        """The token at which a logit is meant: the last one of at, or of the text; of a label the first, or none."""
        from regard.explain.wording import place_in, tokens_of

        side = trace.sides[-1]
        if self.at is None:
            return None if side.labels else len(side.tokens) - 1
        return tokens_of(side, place_in(side, self.at))[0 if side.labels else -1]
