"""What may be asked about what made an outcome: by the command, a server and the library."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

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
    """Split a number into what made it: a next token's logit (--to), or the cosine of two words (--word, --like).

    --method direct sums what each part of the model wrote; the others follow gradients back to tokens or heads, and
    attribution-patching compares two texts.
    """

    texts: ClassVar[tuple[str, str]] = ("TEXT", "One text; for attribution patching two, a clean and a corrupted one.")

    at: str | None = option("At a word of the text, or a token's number.", metavar="WORD", shown="the last token")
    like: str | None = option("What the word is compared with, by cosine.", metavar="WORD")
    method: str = option("How the numbers are measured.", "direct", among=METHODS)
    by: str | None = option("Give a number to each of these.", among=BYS, shown="token")
    steps: int | None = option("How many steps to take.", metavar="N", shown="32 to 128, of integrated-gradients")

    @property
    def grid(self) -> bool:
        """Whether the answer is a grid: of attribution patching."""
        return self._patching

    @property
    def unit(self) -> Literal["token", "word"]:
        """Tell whether a number is of a token or of a word."""
        return "word" if self.by == "word" else "token"

    def check(self, texts: int, targets: int = 0, *, called: Called = str) -> None:
        """Refuse what can be refused without a model."""
        self.check_outcome(called)
        super().check(texts, targets, called=called)
        self._check_places(called)
        self._check_method(called)
        self._check_texts(texts, targets, called)

    @property
    def _patching(self) -> bool:
        """Whether two texts are compared."""
        return self.method == "attribution-patching"

    def _check_places(self, called: Called) -> None:
        """Refuse places that go with another kind of outcome."""
        self.need("at", "to", called, "a token's logit is meant")
        self.need("like", "word", called, "the word that is compared with it")
        if not self._patching:
            self.need("word", "like", called, "another word of the text, their cosine is split")

    def _check_method(self, called: Called) -> None:
        """Refuse what another method takes."""
        by, method, steps = map(called, ("by", "method", "steps"))
        if self.steps is not None and self.method != "integrated-gradients":
            raise RegardError(f"{steps} goes with {method} integrated-gradients")
        if self.by == "head" and self.method != "gradient-x-input":
            raise RegardError(f"{by} head goes with {method} gradient-x-input; direct shows heads beside all else")
        if self._patching and self.by is not None:
            raise RegardError(f"{by}: attribution patching gives each layer and token a number: leave it out")

    def _check_texts(self, texts: int, targets: int, called: Called) -> None:
        """Refuse another number of texts than the method is of, and targets where it takes none."""
        method = called("method")
        if self._patching and targets:
            raise RegardError(f"{called('target')}: attribution patching is for models of one stack")
        if self._patching and texts != 2:
            raise RegardError(f"{method} {self.method}: given {texts} texts, needs two, a clean and a corrupted one")
        if not self._patching and texts != 1:
            raise RegardError(
                f"{method} {self.method}: given {texts} texts, needs one: {method} attribution-patching compares two"
            )

    def answer(
        self, model: "Model", traces: "Sequence[Trace | PairTrace]", progress: Progress | None = None
    ) -> "Answer":
        """Answer it: an `Attribution`, `TokenAttribution`, `HeadAttribution` or `PatchSweep`.

        Raises:
            RegardError: a word or token that is not there, or a model that cannot be asked this.
        """

        trace = traces[0]
        if self.to is not None and trace.sides[-1].logits is None:
            raise self._no_language_head(model.name, str)
        if self.method == "direct":
            return self._direct(model, trace)
        from regard.explain.causes.outcomes import logit

        at = None if self.to is None or self.at is None else self._at(trace)
        outcome = self.outcome(model, trace, logit, like=self.like, at=at)
        if self._patching:
            clean, corrupted = (each.sides[0].text for each in traces)
            return model.attribution_patching(clean, corrupted, outcome)
        if self.by == "head":
            return model.attribute_to_heads(trace, outcome)
        if self.method == "gradient-x-input":
            found = model.attribute_to_tokens(trace, outcome, method="gradient x input")
        else:
            steps: dict[str, Any] = {} if self.steps is None else {"steps": self.steps}
            found = model.attribute_to_tokens(trace, outcome, **steps)
        return replace(found, unit=self.unit)

    def _no_language_head(self, name: str, called: Called) -> RegardError:
        to, word, like = map(called, ("to", "word", "like"))
        return RegardError(f"{to}: {name} has no language head: give {word} and {like}, two words of the text")

    def _at(self, trace: "Trace | PairTrace") -> int:
        """The token at which a logit is meant: the last one of at, or of the text."""
        from regard.explain.places import place_in, tokens_of

        side = trace.sides[-1]
        return len(side.tokens) - 1 if self.at is None else tokens_of(side, place_in(side, self.at))[-1]

    def _direct(self, model: "Model", trace: "Trace | PairTrace") -> "Answer":
        if self.word is None:
            found = model.attribution(trace, self._at(trace), self.to, against=self.against)
            return replace(found, unit=self.unit)
        assert self.like is not None
        found = model.attribution(trace, self.word, toward=trace.sides[-1][self.like])
        return replace(found, outcome=f"cosine of {quoted(self.word)} and {quoted(self.like)}", unit=self.unit)
