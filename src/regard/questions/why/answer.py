"""Rank the tokens and heads that affect a word, for a single occurrence or several."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

from regard.capture.interventions.names import TEXTS, Part
from regard.display.answer import Answer, TracesAnswer
from regard.explain.causes.token_rankings import DEFAULT, TokensBy
from regard.explain.frames import Row
from regard.questions.why import panels, sentences
from regard.text.quoting import quoted


@dataclass(frozen=True)
class Cause:
    """A token (head None) or a head (token None), and its effect on the word.

    weight: of a token the mean over layers and heads; of a head the fraction that goes neither to special tokens nor to
    attention sinks. sink, special, own: whether the token is a sink, a special token, part of the word itself.
    contribution: mean over layers of its fraction of the word's vector, absolute values. effect: 1 − cosine between the
    word's last hidden states with and without the token (if `Why.tokens_by` is "edges", without the word's attention to
    it) or head. divergence: KL divergence in nats of the next-token prediction after the word (None except for causal
    models and decoders; see `Effect.after_place`). part: the attention of an encoder-decoder that it belongs to. A
    "cross" token is in the source.
    """

    name: str
    token: int | None
    layer: int | None
    head: int | None
    weight: float
    contribution: float
    effect: float
    divergence: float | None = None
    part: str | None = None
    sink: bool = False
    special: bool = False
    own: bool = False

    @property
    def is_other_word(self) -> bool:
        """Tell whether a token is neither special, nor a sink, nor of the word itself."""
        return not (self.special or self.sink or self.own)


@dataclass(frozen=True, eq=False, repr=False)
class _Ranked(Answer):
    """Share sentences and panels between a single occurrence and several."""

    format: ClassVar[str] = "regard why"
    findings = sentences.of_causes
    panels = panels.of_causes

    def each(self) -> "Sequence[tuple[str, Why]]":
        """Every occurrence, by its label."""
        raise NotImplementedError

    def title(self) -> str:
        """Of which word."""
        words = dict.fromkeys(quoted(why.word) for _, why in self.each())
        return f"Effects of ablating tokens and heads on {' and '.join(words)}"

    def rows(self) -> list[Row]:
        """One row a cause, with the label of its occurrence."""
        return [{"label": label, **row} for label, why in self.each() for row in why.rows()]

    def data(self) -> dict[str, object]:
        """Which targets the model wrote, and every occurrence with its rankings."""
        return {"generated": [False] * len(self.about.texts), "words": [_data(*each) for each in self.each()]}


@dataclass(frozen=True, eq=False, repr=False)
class Why(_Ranked):
    """Causes, those first that changed most by the measure that by names: "divergence" where there is one, or "effect".

    *_agreement: rank correlation with that measure of (weight, contribution). part: of an encoder-decoder, whether the
    word is of the text that the "encoder" read or of the "decoder"'s. tokens_by: how tokens were measured, "removal" or
    "edges", or the estimate that orders them instead ("contribution", "weight"), with the effects of their removal.
    """

    word: str
    tokens: Sequence[Cause]
    heads: Sequence[Cause]
    tokens_agreement: tuple[float, float]
    heads_agreement: tuple[float, float]
    by: Literal["effect", "divergence"] = "effect"
    part: Part | None = None
    tokens_by: TokensBy = DEFAULT

    def each(self) -> "Sequence[tuple[str, Why]]":
        """This one."""
        return [("1", self)]

    def measured(self, cause: Cause) -> float:
        """Return the effect that the rankings are by: the divergence, or 1 − cosine."""
        return cause.effect if self.by == "effect" or cause.divergence is None else cause.divergence

    def rows(self) -> list[Row]:
        """List one row a cause, tokens first, in their order: kind ("token" or "head"), and the fields of `Cause`."""
        return [
            {"word": self.word, "kind": kind} | asdict(cause)
            for kind, causes in (("token", self.tokens), ("head", self.heads))
            for cause in causes
        ]


@dataclass(frozen=True, eq=False, repr=False)
class WhyOfTexts(_Ranked, TracesAnswer):
    """What is behind every occurrence of a word in texts: found has each by its label, such as "2a".

    generated: of pairs, which targets the model wrote.
    """

    found: Sequence[tuple[str, Why]]
    generated: Sequence[bool] = ()

    def each(self) -> Sequence[tuple[str, Why]]:
        """Return every occurrence, by its label."""
        return self.found

    def data(self) -> dict[str, object]:
        """Say which targets the model wrote, and every occurrence with its rankings."""
        return super().data() | {"generated": list(self.generated)}

    def opening(self) -> dict[str, str | int | None]:
        """Open the page at what is behind the word."""
        return {"view": "panel 0", "word": self.found[0][1].word}


def _data(label: str, why: Why) -> dict[str, Any]:
    """An occurrence as JSON has it: with "side" for part, named by its text, "source" or "target"."""
    own: dict[str, Any] = {"label": label}
    for name, value in asdict(why).items():
        if name == "part":
            own["side"] = None if why.part is None else TEXTS[why.part]
        elif name != "about":
            own[name] = dict(zip(("weight", "contribution"), value, strict=True)) if "agreement" in name else value
    return own
