"""Declare the options of `regard tokens`, `steps`, `heads`, `translate`, `attribute` and `patch`, without torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.checks import refuse_both
from regard.display.query import MAX_SEED, Called, Progress, Query, option, option_name
from regard.errors import RegardError
from regard.lazy import import_part

if TYPE_CHECKING:
    from regard.display.answer import Answer
    from regard.models.model import Model
    from regard.models.source import Source


@dataclass(frozen=True, kw_only=True)
class TokensQuery(Query):
    """Show the tokens of your texts in colour, with ids and counts."""

    summary = "Show the tokens of texts, with ids and counts."
    heading = "Look at attention"
    examples = ('tokens "fishing on a riverbank"', 'tokens "Life is short, eat dessert first" --tokenizer words')
    served = False
    takes_dtype = False
    inputs = ()
    files = ("csv", "json")
    full = True

    tokenizer: str | None = option(shown="all-MiniLM-L6-v2")

    def check_source(self, source: "Source", verb: str, outputs: Any) -> None:
        """Raise RegardError if there is no text. Blank texts are allowed, because they have tokens, too."""
        source.need_texts(verb, self.texts[0])
        self.check(len(source.texts), called=option_name)

    def run(self, source: "Source", progress: Progress) -> "Answer":
        """Return the texts' tokens. Only a tokenizer is loaded."""
        from regard.questions.tokens import tokens

        return tokens(source.texts, self.tokenizer)


@dataclass(frozen=True, kw_only=True)
class StepsQuery(Query):
    """Show how a head computes a word's context vector: scores, scaled scores, weights, weighted values, sum."""

    summary = "Show all numbers of a word in a head, step by step."
    heading = "Look at attention"
    examples = (
        'steps "A man on a river bank." --word bank --layer 0 --head 4',
        'steps "A man on a river bank." --word bank --figure steps.png',
    )
    served = False
    texts = ("TEXT", "Your text, or - to read it from standard input.")
    single = True
    inputs = ("model", "open_file")
    files = ("figure", "html of traces", "json", "save")
    saved_alone = True
    full = True

    word: str | None = option(needed="a word of the text")
    layer: int = option(default=0)
    head: int = option(default=0)

    def run(self, source: "Source", progress: Progress) -> "Answer":
        """Trace the text, and return the steps of the word in the head."""
        from regard.questions.steps import steps

        assert self.word is not None  # `check` requires it
        return steps(source.read_one("steps"), self.word, self.layer, self.head)


@dataclass(frozen=True, kw_only=True)
class HeadsQuery(Query):
    """Score each head's attention to positions, special tokens, repeated tokens, content and translations.

    Examine texts, or the corpus of an embedding index (--store). --csv has a row for each head.
    """

    summary = "Score each head's attention patterns, in texts and tests."
    heading = "Look at attention"
    examples = ('heads "The old man walked along the river bank." --html heads.html', "heads --store texts.store")

    files = ("figure", "html", "csv", "parquet", "json")

    store: Path | None = option(shown="examine the heads on TEXT")
    tests: bool = option(default=False)
    seed: int = option(default=0, least=0, most=MAX_SEED)

    def check_source(self, source: "Source", verb: str, outputs: Any) -> None:
        """Check the texts. With --store, raise RegardError for texts, a model or tests."""
        if self.store is None:
            super().check_source(source, verb, outputs)
            return
        inputs = {"TEXT": source.texts, "--target-text": source.targets, "--model": source.model, "--tests": self.tests}
        refuse_both("--store", inputs, "a store has its own texts and model, pass one of them")

    def run(self, source: "Source", progress: Progress) -> "Answer":
        """Score the heads on texts, or return the head statistics of an embedding index."""
        if self.store is None:
            return super().run(source, progress)
        import_part("regard.corpus.verb").check_store(self.store)
        with import_part("regard.corpus.store").Store(self.store) as store:
            return store.stats()

    def answer(self, model: "Model", traces: Sequence[Any], progress: Progress | None = None) -> "Answer":
        """Score the heads on traces of texts and, with --tests, on repeated and shuffled tokens."""
        from regard.questions.heads import heads

        return heads(model, traces, tests=self.tests, seed=self.seed)


@dataclass(frozen=True, kw_only=True)
class TranslateQuery(Query):
    """Translate texts with an encoder-decoder and show the alignment in its cross-attention."""

    summary = "Translate texts and show how the words align."
    heading = "Generate"
    examples = (
        'translate "the river bank" --model runs/translator',
        'translate "A river bank." --model opus-mt-en-fr --figure aligned.png',
    )
    served = False
    inputs = ("model",)
    needs_model = (
        "pass an encoder-decoder, from the Hub (--model Helsinki-NLP/opus-mt-en-fr) "
        "or your own (regard train --pairs FILE --out runs/translator)"
    )
    files = ("figure", "html of traces", "csv", "json", "save")
    saved_alone = True
    full = True
    names_targets = True

    layer: int | None = option(shown="the two layers whose alignments agree most")
    head: int | None = option(shown="the mean of all heads")
    top: int = option(default=5, least=1)

    def run(self, source: "Source", progress: Progress) -> "Answer":
        """Translate the texts and return the alignment in the model's cross-attention."""
        from regard.questions.translate import translated

        return translated(source.read(), layer=self.layer, head=self.head, top=self.top)


@dataclass(frozen=True, kw_only=True)
class OutcomeQuery(Query):
    """Options that choose the outcome to measure: a next token or a word's similarity."""

    to: str | None = option(metavar="TOKEN", shown="required without --word")
    against: str | None = option("With --to: measure the logit difference to this token.", metavar="TOKEN")
    word: str | None = option(metavar="WORD")

    def check_outcome(self, called: Called) -> None:
        """Raise RegardError unless exactly one outcome is chosen."""
        to, word = map(called, ("to", "word"))
        if self.to is None and self.word is None:
            raise RegardError(f"{to} is needed: pass {to} (a next token) or {word}")
        if self.to is not None and self.word is not None:
            raise RegardError(f"{to} and {word}: pass only one of them")
        self.need("against", "to", called, "a token's logit is meant")


AT = "Use this position: a word of the text or a token number."
METHODS = ("direct", "gradient-x-input", "integrated-gradients", "attribution-patching")


@dataclass(frozen=True, kw_only=True)
class AttributionQuery(OutcomeQuery):
    """Attribute a next token's logit (--to), or the cosine of two words (--word, --like), to parts of the model.

    --method direct computes the direct contribution of each component. The other methods follow gradients to tokens,
    and attribution-patching compares two texts.
    """

    summary = "Attribute a next token or a similarity to components."
    heading = "Find causes"
    examples = (
        'attribute "He sat on a river bank." --word bank --like river',
        'attribute "The capital of France is" --to Paris --model MODEL',
    )
    inputs = ("targets", "seconds", "model")
    texts = ("TEXT", "One text. For attribution-patching: a clean and a corrupted text.")

    at: str | None = option(AT, metavar="WORD", shown="the last token")
    like: str | None = option("Split the cosine of --word and this word.", metavar="WORD")
    method: str = option(default="direct", among=METHODS)
    by: str | None = option("Report a number for each token or word.", among=("token", "word"), shown="token")
    steps: int | None = option(metavar="N", shown="32 to 128 (integrated-gradients only)")
    top: int | None = option(shown="10", least=1)

    @property
    def grid(self) -> bool:
        """Return whether the answer is a grid of layers and tokens, as in attribution patching."""
        return self.method == "attribution-patching"

    def listed(self, answer: "Answer", *, full: bool) -> int | None:
        """Return the number of components to list, None for a grid."""
        return None if self.grid else self.top or 10

    def check(self, texts: int, targets: int = 0, *, called: Called = str) -> None:
        """Raise RegardError for invalid options and texts, before a model is loaded."""
        self.check_outcome(called)
        super().check(texts, targets, called=called)
        self.need("at", "to", called, "a token's logit is meant")
        self.need("like", "word", called, "the word that is compared with it")
        if not self.grid:
            self.need("word", "like", called, "another word of the text, their cosine is split")
        by, method, steps = map(called, ("by", "method", "steps"))
        if self.steps is not None and self.method != "integrated-gradients":
            raise RegardError(f"{steps} goes with {method} integrated-gradients")
        if self.grid and self.by is not None:
            raise RegardError(f"{by}: attribution patching gives each layer and token a number: leave it out")
        if self.grid and self.top is not None:
            raise RegardError(f"{called('top')}: the answer is a grid, which is shown whole: leave it out")
        if self.grid and targets:
            raise RegardError(f"{called('target')}: attribution patching is for models with a single stack")
        if texts != 1 + self.grid:
            needs = f"one: {method} attribution-patching compares two"
            needs = "two, a clean and a corrupted one" if self.grid else needs
            raise RegardError(f"{method} {self.method}: got {texts} texts, expected {needs}")

    def answer(self, model: "Model", traces: Sequence[Any], progress: Progress | None = None) -> "Answer":
        """Return the `Attribution`, `TokenAttribution` or `PatchSweep` of the method."""
        from regard.questions.attribution.gradients import attribute

        options = {name: value for name, value in vars(self).items() if name != "top"}
        return attribute(model, traces, **options)


WHATS = ("hidden_states", "head_outputs", "values", "weights", "feed_forward")
PARTS = ("encoder", "decoder", "cross")


@dataclass(frozen=True, kw_only=True)
class PatchQuery(OutcomeQuery):
    """Patch activations of a clean text into the run of a corrupted text, and measure the effect.

    regard patches each layer and position, or each head, in turn. The outcome is a next token's probability (--to),
    or the cosine of a word to its vector in the clean text (--word).
    """

    summary = "Patch activations between two texts and measure the effect."
    heading = "Find causes"
    examples = (
        'patch "A river bank." "A money bank." --word bank',
        'patch "A river bank." "A money bank." --word bank --what head_outputs',
    )
    texts = ("CLEAN CORRUPTED", "Two texts that differ in a word.")

    what: str = option("Patch these activations.", "hidden_states", among=WHATS)
    by: str | None = option("Patch each position or each head.", among=("positions", "heads"),
                            shown="heads if --what has them, else positions")  # fmt: skip
    at: tuple[str, ...] = option(AT, (), metavar="WORD", shown="all")
    layers: tuple[int, ...] | None = option(metavar="N,N-N", shown="all")
    noising: bool = option("Patch the corrupted text's activations into the clean run.", False)
    part: str | None = option(among=PARTS)

    def check(self, texts: int, targets: int = 0, *, called: Called = str) -> None:
        """Raise RegardError for invalid options and texts, before a model is loaded."""
        if texts != 2:
            raise RegardError(f"got {texts} texts, expected two: regard patch CLEAN CORRUPTED --word W")
        super().check(texts, targets, called=called)
        self.check_outcome(called)

    def answer(self, model: "Model", traces: Sequence[Any], progress: Progress | None = None) -> "Answer":
        """Run a patch sweep on two traces, of the clean and the corrupted text."""
        from regard.questions.patch.sweep import patch_traces

        return patch_traces(model, traces, progress=progress, **vars(self))
