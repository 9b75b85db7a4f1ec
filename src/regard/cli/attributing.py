"""What `regard attribute` was asked, and the library call that answers it."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from regard.cli.early_checks import no_language_head
from regard.errors import RegardError
from regard.text.quoting import quoted

if TYPE_CHECKING:
    from regard.cli.source import Traced
    from regard.explain.causes.outcomes import Outcome
    from regard.explain.causes.patch_sweep import PatchSweep
    from regard.explain.findings.attribution import Attributed
    from regard.models.model import Model
    from regard.trace.trace import PairTrace, Trace

METHODS = ("direct", "gradient-x-input", "integrated-gradients", "attribution-patching")
BYS = ("token", "word", "head")


@dataclass(frozen=True)
class OutcomeAsked:
    """The options that say which outcome, by which method, and what has a number."""

    to: str | None = None
    against: str | None = None
    at: str | None = None
    word: str | None = None
    like: str | None = None
    method: str = "direct"
    by: str | None = None
    steps: int | None = None

    @property
    def unit(self) -> Literal["token", "word"]:
        """What of a text has a number."""
        return "word" if self.by == "word" else "token"

    def check(self, texts: int, *, targets: bool) -> None:
        """Refuse what can be refused without a model. texts: how many were given.

        Raises:
            RegardError: no outcome, or two; an option that goes with others; or another number of texts.
        """
        for option, given, names in (("--method", self.method, METHODS), ("--by", self.by, BYS)):
            if given is not None and given not in names:
                raise RegardError(f"{option}: given {given!r}, needs one of {', '.join(names)}")
        patching = self.method == "attribution-patching"
        if self.to is None and self.word is None:
            raise RegardError("--to is needed, a next token, or --word with --like: what is to be explained")
        if self.to is not None and self.word is not None:
            raise RegardError("--to and --word: an outcome is of one of them, given both")
        for option, given, needs in (("--against", self.against, "--to"), ("--at", self.at, "--to")):
            if given is not None and self.to is None:
                raise RegardError(f"{option} needs {needs}: a token's logit is meant")
        if self.like is not None and self.word is None:
            raise RegardError("--like needs --word: the word that is compared with it")
        if self.word is not None and self.like is None and not patching:
            raise RegardError("--word needs --like: another word of the text, their cosine is split")
        for option, given in (("--to", self.to), ("--against", self.against), ("--like", self.like), ("--at", self.at)):
            if given is not None and not given.strip():
                raise RegardError(f"{option} is empty: give a {'token' if option in ('--to', '--against') else 'word'}")
        if self.steps is not None and self.method != "integrated-gradients":
            raise RegardError("--steps goes with --method integrated-gradients")
        if self.by == "head" and self.method != "gradient-x-input":
            raise RegardError("--by head goes with --method gradient-x-input; direct shows heads beside all else")
        if patching and self.by is not None:
            raise RegardError("--by: attribution patching has a number for each layer and token, leave it out")
        if patching and targets:
            raise RegardError("--target: attribution patching is for models of one stack")
        wanted = 2 if patching else 1
        if texts != wanted:
            needs = (
                "two, a clean and a corrupted one" if patching else "one: --method attribution-patching compares two"
            )
            raise RegardError(f"--method {self.method}: given {texts} texts, needs {needs}")


def attributed(asked: OutcomeAsked, done: "Traced") -> "Attributed | PatchSweep":
    """Answer it.

    Raises:
        RegardError: a word or token that is not there, or a model that cannot be asked this.
    """
    from regard.explain.causes.attribution_patching import attribution_patching
    from regard.explain.causes.gradients import attribute_to_tokens
    from regard.explain.causes.head_gradients import attribute_to_heads

    model: Model = done.model
    trace: Trace | PairTrace = done.traces[0]
    if asked.to is not None and trace.sides[-1].logits is None:
        raise no_language_head(model.name)
    if asked.method == "direct":
        return _direct(asked, model, trace)
    outcome = _outcome(asked, model, trace)
    if asked.method == "attribution-patching":
        (clean, _), (corrupted, _) = done.texts
        return attribution_patching(model, clean, corrupted, outcome)
    if asked.by == "head":
        return attribute_to_heads(model, trace, outcome)
    if asked.method == "gradient-x-input":
        return attribute_to_tokens(model, trace, outcome, method="gradient x input")
    steps: dict[str, Any] = {} if asked.steps is None else {"steps": asked.steps}
    return attribute_to_tokens(model, trace, outcome, **steps)


def _place(asked: OutcomeAsked, trace: "Trace | PairTrace") -> int:
    """The token at which a logit is meant: the last one of --at, or of the text."""
    from regard.explain.places import place_in, tokens_of

    side = trace.sides[-1]
    return len(side.tokens) - 1 if asked.at is None else tokens_of(side, place_in(side, asked.at))[-1]


def _direct(asked: OutcomeAsked, model: "Model", trace: "Trace | PairTrace") -> "Attributed":
    if asked.word is None:
        return model.attribution(trace, _place(asked, trace), asked.to, against=asked.against)
    side = trace.sides[-1]
    assert asked.like is not None
    found = model.attribution(trace, asked.word, toward=side[asked.like])
    return replace(found, outcome=f"cosine of {quoted(asked.word)} and {quoted(asked.like)}")


def _outcome(asked: OutcomeAsked, model: "Model", trace: "Trace | PairTrace") -> "Outcome":
    from regard.explain.causes.outcomes import cosine, logit, logit_difference

    if asked.to is not None:
        at = None if asked.at is None else _place(asked, trace)
        if asked.against is None:
            return logit(model, asked.to, at=at)
        return logit_difference(model, asked.to, asked.against, at=at)
    side = trace.sides[-1]
    assert asked.word is not None
    if asked.like is None:  # of two texts
        return cosine(asked.word, side[asked.word], "what it is in the clean text")
    return cosine(asked.word, side[asked.like], repr(asked.like))
