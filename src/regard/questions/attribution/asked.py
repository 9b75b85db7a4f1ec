"""What may be asked about what made an outcome: by the command, a server and the library."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from regard.display.asked import Called, Progress, option
from regard.errors import RegardError
from regard.questions.outcome import OutcomeAsked
from regard.text.quoting import quoted

if TYPE_CHECKING:
    from regard.display.answer import Answer
    from regard.models.model import Model
    from regard.trace.trace import PairTrace, Trace

METHODS = ("direct", "gradient-x-input", "integrated-gradients", "attribution-patching")
BYS = ("token", "word", "head")


@dataclass(frozen=True, kw_only=True)
class AttributionAsked(OutcomeAsked):
    """Attribute a next token's logit (--to), or the cosine of two words (--word, --like), to parts of the model.

    --method direct computes the direct contribution of each component. The other methods follow gradients to tokens or
    heads, and attribution-patching compares two texts.
    """

    pairs: ClassVar[bool] = True
    texts: ClassVar[tuple[str, str]] = ("TEXT", "One text. For attribution-patching: a clean and a corrupted text.")

    at: str | None = option(
        "Use this position: a word of the text or a token number.", metavar="WORD", shown="the last token"
    )
    like: str | None = option("Split the cosine of --word and this word.", metavar="WORD")
    method: str = option("Measure with this method.", "direct", among=METHODS)
    by: str | None = option("Report a number for each token, word or head.", among=BYS, shown="token")
    steps: int | None = option("Take N steps.", metavar="N", shown="32 to 128 (integrated-gradients only)")

    @property
    def grid(self) -> bool:
        """Whether the answer is a grid: of attribution patching, which compares two texts."""
        return self.method == "attribution-patching"

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

        trace = traces[0]
        if self.to is not None and trace.sides[-1].logits is None:
            raise RegardError(f"to: {model.name} has no language head: give word and like, two words of the text")
        unit: Any = "word" if self.by == "word" else "token"
        if self.method == "direct":
            if self.word is None:
                found = model.attribution(trace, self._at(trace), self.to, against=self.against)
                return replace(found, unit=unit)
            assert self.like is not None
            found = model.attribution(trace, self.word, toward=trace.sides[-1][self.like])
            return replace(found, outcome=f"cosine of {quoted(self.word)} and {quoted(self.like)}", unit=unit)
        outcome = self.outcome(model, trace, logit, like=self.like, at=None if self.at is None else self._at(trace))
        if self.grid:
            clean, corrupted = (each.sides[0].text for each in traces)
            return model.attribution_patching(clean, corrupted, outcome)
        if self.by == "head":
            return model.attribute_to_heads(trace, outcome)
        method: Any = self.method.replace("-", " ")
        return replace(model.attribute_to_tokens(trace, outcome, method=method, steps=self.steps), unit=unit)

    def _at(self, trace: "Trace | PairTrace") -> int | None:
        """The token at which a logit is meant: the last one of at, or of the text; of a label the first, or none."""
        from regard.explain.wording import place_in, tokens_of

        side = trace.sides[-1]
        if self.at is None:
            return None if side.labels else len(side.tokens) - 1
        return tokens_of(side, place_in(side, self.at))[0 if side.labels else -1]
