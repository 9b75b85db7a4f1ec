"""Declare the options of `regard tokens`, `steps`, `heads`, `attribute` and `patch`, without importing torch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from regard.checks import refuse_both
from regard.display.query import MAX_SEED, Called, Progress, Query, option, option_name
from regard.errors import RegardError
from regard.lazy import import_part
from regard.text.quoting import quoted

if TYPE_CHECKING:
    from regard.display.answer import Answer
    from regard.explain.causes.outcomes import Outcome
    from regard.models.model import Model
    from regard.models.source import Source
    from regard.trace.trace import PairTrace, Trace


@dataclass(frozen=True, kw_only=True)
class TokensQuery(Query):
    """Show the tokens of your texts in colour, with ids and counts."""

    summary: ClassVar[str] = "Show the tokens of texts, with ids and counts."
    served: ClassVar[bool] = False
    takes_dtype: ClassVar[bool] = False
    inputs: ClassVar[tuple[str, ...]] = ()
    files: ClassVar[tuple[str, ...]] = ("csv", "json")
    full: ClassVar[bool] = True

    tokenizer: str | None = option(shown="all-MiniLM-L6-v2")
    ranks: Path | None = option()

    def check_source(self, source: "Source", verb: str, outputs: Any) -> None:
        """Refuse what goes with another tokenizer. Blank texts have tokens too."""
        source.need_texts(verb, self.texts[0])
        self.check(len(source.texts), called=option_name)
        if self.ranks is not None and self.tokenizer != "cl100k_base":
            raise RegardError("--ranks needs --tokenizer cl100k_base: the file holds its ranks")

    def run(self, source: "Source", progress: Progress) -> "Answer":
        """Split the texts; no model is loaded."""
        from regard.questions.tokens import tokens

        return tokens(source.texts, self.tokenizer, self.ranks)


@dataclass(frozen=True, kw_only=True)
class StepsQuery(Query):
    """Show how a head computes a word's context vector: scores, scaled scores, weights, weighted values, sum."""

    summary: ClassVar[str] = "Show all numbers of a word in a head, step by step."
    served: ClassVar[bool] = False
    texts: ClassVar[tuple[str, str]] = ("TEXT", "Your text.")
    single: ClassVar[bool] = True
    inputs: ClassVar[tuple[str, ...]] = ("model", "open_file")
    files: ClassVar[tuple[str, ...]] = ("figure", "html of traces", "json", "save")
    saved_alone: ClassVar[bool] = True
    full: ClassVar[bool] = True

    word: str | None = option(needed="a word of the text")
    layer: int = option(default=0)
    head: int = option(default=0)

    def run(self, source: "Source", progress: Progress) -> "Answer":
        """Read the text, and list the steps."""
        from regard.questions.steps import steps

        assert self.word is not None  # the check of the query asks for it
        return steps(source.read_one("steps"), self.word, self.layer, self.head)


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

    def answer(self, model: "Model", traces: Sequence[Any], progress: Progress | None = None) -> "Answer":
        """Answer it. Raises RegardError for tests of an encoder-decoder, or of texts of fewer than 8 tokens."""
        from regard.display.answer import Read
        from regard.explain.weights.head_means import (
            content_or_position,
            cross_head_scores,
            mean_scores,
            repeated_tokens,
        )
        from regard.explain.weights.head_scores import head_scores
        from regard.questions.heads import Heads
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


METHODS = ("direct", "gradient-x-input", "integrated-gradients", "attribution-patching")


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
    by: str | None = option(
        "Report a number for each token, word or head.", among=("token", "word", "head"), shown="token"
    )
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

    def answer(self, model: "Model", traces: Sequence[Any], progress: Progress | None = None) -> "Answer":
        """Answer it: an `Attribution`, `TokenAttribution`, `HeadAttribution` or `PatchSweep`."""
        from regard.explain.causes.outcomes import logit
        from regard.questions.attribution.direct import attribution
        from regard.questions.attribution.gradients import attribute_to_heads, attribute_to_tokens
        from regard.questions.patch_sweep import attribution_patching

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


WHATS = ("hidden_states", "head_outputs", "values", "weights", "feed_forward")
PARTS = ("encoder", "decoder", "cross")


@dataclass(frozen=True, kw_only=True)
class PatchQuery(OutcomeQuery):
    """Patch activations of a clean text into the run of a corrupted text, and measure the effect.

    regard patches each layer and position, or each head, in turn. The outcome is a next token's probability (--to),
    or the cosine of a word to its vector in the clean text (--word).
    """

    summary: ClassVar[str] = "Patch activations between two texts and measure the effect."
    texts: ClassVar[tuple[str, str]] = ("CLEAN CORRUPTED", "Two texts that differ in a word.")

    what: str = option("Patch these activations.", "hidden_states", among=WHATS)
    by: str | None = option(
        "Patch each position or each head.",
        among=("positions", "heads"),
        shown="heads if --what has them, else positions",
    )
    at: tuple[str, ...] = option(
        "Use this position: a word of the text or a token number.", (), metavar="WORD", shown="all"
    )
    layers: tuple[int, ...] | None = option("Use these layers only, counted from 0.", metavar="N,N-N", shown="all")
    noising: bool = option("Patch the corrupted text's activations into the clean run.", False)
    part: str | None = option("Select the attention of an encoder-decoder.", among=PARTS)

    def check(self, texts: int, targets: int = 0, *, called: Called = str) -> None:
        """Refuse what can be refused without a model."""
        if texts != 2:
            raise RegardError(f"given {texts} texts, needs two: regard patch CLEAN CORRUPTED --word W")
        super().check(texts, targets, called=called)
        self.check_outcome(called)

    def answer(self, model: "Model", traces: Sequence[Any], progress: Progress | None = None) -> "Answer":
        """Answer it of the texts of two traces: the clean one's and the corrupted one's."""
        from regard.explain.causes.outcomes import probability
        from regard.explain.wording import place_in
        from regard.questions.patch_sweep import patch_sweep

        clean, corrupted = (each.sides[0].text for each in traces)
        targets = (traces[0].sides[-1].text, traces[1].sides[-1].text) if model.pairs else None
        named: dict[str, Any] = {"what": self.what, "by": self.by, "part": self.part}
        side = traces[0].sides[0 if self.part == "encoder" else -1]
        at = [int(each) if each.isdecimal() and isinstance(place_in(side, each), int) else each for each in self.at]
        outcome = self.outcome(model, traces[0], probability)
        return patch_sweep(
            model, clean, corrupted, outcome, layers=self.layers, at=at or None,
            direction="noising" if self.noising else "denoising", targets=targets, progress=progress, **named,
        )  # fmt: skip
