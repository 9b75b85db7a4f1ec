"""Rank the tokens and heads that affect a word, for a single occurrence or several."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

from regard.capture.interventions.names import TEXTS, Part
from regard.display.answer import Answer, TracesAnswer
from regard.display.panels import Cell, Column, Panel, Strip, Table, decimals
from regard.display.sentences import Template, sentences
from regard.explain.frames import Row
from regard.explain.wording import fixed, number, short_head
from regard.questions.why import TokensBy
from regard.text.quoting import quoted

WHY = "Why"  # the tab of a single occurrence
MAX_RANKED = 2  # occurrences whose rankings are on a terminal's first screen, and in the plot
TITLES = {  # of the ranking of tokens, by `Why.tokens_by`
    "removal": "Tokens by effect on {}",
    "edges": "Tokens by effect of attention from {}",
    "contribution": "Tokens by contribution to {}",
    "weight": "Tokens by attention weight from {}",
}
HEADINGS = {"effect": "1 − cosine", "divergence": "KL (nats)", "logit": "logit"}  # of effects, by `Why.by`
NOTES = {"sink": "sink", "special": "special", "the word itself": "own"}  # of tokens, by the field of a cause
SIDES = {"cross": "source ", "decoder": "target "}  # whose tokens they are, by `Cause.part`
EFFECTS = {  # what an effect is, by `Why.by`
    "effect": "Effect: 1 − cosine between the word's vectors with and without the {}.",
    "divergence": "Effect: KL divergence in nats between the next-token predictions with and without the {}.",
    "logit": "Effect: by how much the label's logit falls without the {}.",
}


def why_panels(answer: "_Ranked") -> list[Panel]:
    """Show the largest effects on each of several occurrences, then every text and every ranking."""
    every = answer.each()
    panels: list[Panel] = [_largest_effects(every)] if len(every) > 1 else []
    for label, why in every:
        parts = sorted({token.part for token in why.tokens}, key=str)
        panels += [_text(why, label, part, alone=len(every) == 1) for part in parts]
        panels += [_ranking(why, label, kind, len(every)) for kind in ("token", "head")]
    return panels


def _text(why: "Why", label: str, part: str | None, *, alone: bool) -> Strip:
    """Show a text, each token with its effect. The other word with the largest effect has a full bar."""
    tokens = sorted((token for token in why.tokens if token.part == part), key=lambda token: token.token or 0)
    side = SIDES.get(part or "", "")
    full = max((why.size(token) for token in why.tokens if token.is_other_word), default=0.0) or 1.0
    ablated = "attention to " if why.tokens_by == "edges" else ""
    title = f"Effect of ablating {ablated}each {side}token on {why.subject}"
    title += "" if alone else f" in {place(label, why)}"
    note = EFFECTS[why.by].format("attention" if ablated else "token")
    return Strip(
        name=f"The {side}text{'' if alone else f', {label}'}", tokens=[token.name for token in tokens],
        title=f"{title} (full bar: {fixed(full, decimals([full]), unbounded=True)})",
        values=[why.measured(token) for token in tokens], unit="effect",
        special=[n for n, token in enumerate(tokens) if (token.special or token.sink) and not token.own],
        marked=[n for n, token in enumerate(tokens) if token.own], tab=WHY if alone else place(label, why),
        caption=note, full=full, note=note, screen=alone, picture=alone, signed=why.by == "logit",
    )  # fmt: skip


def _ranking(why: "Why", label: str, kind: str, count: int) -> Table:
    """Rank every token, or every head, of an occurrence. count: of occurrences."""
    of_tokens, unbounded = kind == "token", why.by == "divergence"
    causes, agreement = (why.tokens, why.tokens_agreement) if of_tokens else (why.heads, why.heads_agreement)
    weight, of_label = "mean weight" if of_tokens else "weight on words", why.by == "logit"
    chances = why.probability is not None
    columns = [
        Column(kind), Column(HEADINGS[why.by], 2, bar=True, unbounded=unbounded, signed=of_label),
        *[Column("probability", 2, signed=True)] * chances, *[Column(HEADINGS["effect"], 2, detail=True)] * unbounded,
        Column("contribution", 2, detail=not of_label, signed=of_label), Column(weight, 2, detail=not of_tokens),
        *[Column("note", detail=True)] * of_tokens,
    ]  # fmt: skip
    rows: list[list[Cell]] = []
    for cause in causes:
        marks = ", ".join(mark for mark, field in NOTES.items() if getattr(cause, field))
        measures = [why.measured(cause), *[cause.probability] * chances, *[cause.effect] * unbounded]
        rows.append([token_or_head(cause), *measures, cause.contribution, cause.weight, *[marks] * of_tokens])
    ranks = [number(value) if value == value else "–" for value in agreement]
    agrees = f"Rank correlation with the effect: {weight} {ranks[0]}, contribution {ranks[1]}."
    given = "mean fraction of the word's vectors from the token" if of_tokens else "fraction from the head in its layer"
    given = "the same, estimated by one gradient" if of_label else given
    note = f"{agrees} Contribution: {given}." if count == 1 else f"{EFFECTS[why.by].format(kind)} {agrees}"
    of, apart = (f" in {place(label, why)}", f", {label}") if count > 1 else ("", "")
    of_heads = "Heads by effect" if of else "Heads by effect on {}"
    title = (TITLES[why.tokens_by] if of_tokens else of_heads).format(why.subject)
    return Table(
        name=f"{'Tokens' if of_tokens else 'Heads'} by effect{apart}", title=title + of, columns=columns, rows=rows,
        note=note, screen=count <= MAX_RANKED, picture=count <= MAX_RANKED, group=place(label, why),
        tab=WHY if count == 1 else place(label, why),
    )  # fmt: skip


def _largest_effects(every: "Sequence[tuple[str, Why]]") -> Table:
    """Name the other word and the head with the largest effect on each occurrence, a row per occurrence."""
    rows: list[list[Cell]] = []
    for label, why in every:
        words = [token for token in why.tokens if token.is_other_word]
        word = max(words, key=why.size, default=None)
        head = max(why.heads, key=why.size)
        token: list[Cell] = ["–", None] if word is None else [token_or_head(word), why.measured(word)]
        rows.append([place(label, why), *token, token_or_head(head), why.measured(head)])
    measures = list(dict.fromkeys(HEADINGS[why.by] for _, why in every))
    effect = measures[0] if len(measures) == 1 else "effect"
    columns = [
        Column("occurrence"), Column("word"), Column(effect, 2, bar=True, signed=measures == ["logit"]), Column("head"),
        Column(effect, 2, signed=measures == ["logit"]),
    ]  # fmt: skip
    drawn = len(every) > MAX_RANKED
    return Table(
        name="Each occurrence", title=f"Largest effects on {every[0][1].subject}", columns=columns, rows=rows,
        screen=drawn, picture=drawn, note="Special tokens, attention sinks and the word itself are left out.",
    )  # fmt: skip


def token_or_head(cause: "Cause") -> str:
    """Name a head, or a token with its number and whether it is a sink: "encoder L5H7", "Anna (0, sink)"."""
    if cause.token is None:
        return f"{cause.part or ''} {short_head(cause.layer, cause.head)}".strip()
    side = SIDES.get(cause.part or "", "")
    return f"{cause.name.strip() or quoted(cause.name)} ({side}{cause.token}{', sink' * cause.sink})"


MEASURES = {"effect": "1 − cosine", "divergence": "KL divergence", "logit": ""}  # of an effect, by `Why.by`
LEAST_EFFECT = 1e-4  # no token with a smaller effect is named
LEAST_DIFFERENCE = 0.01  # of two weights that are called different

WORD: list[Template] = [
    ("{at}{scope}ablating {ablated} changes {vector} most ({measure} {effect}).",
     lambda n: n["effect"] >= LEAST_EFFECT),
    ("{at}ablating any single other word leaves {vector} almost unchanged ({measure} {effect}).", None),
    ("{at}{word} attends only to itself, special tokens and attention sinks.", None),
]  # fmt: skip
TABLE: list[list[Template]] = [
    WORD,
    [("The most important head is {head} (effect {head_effect}).", lambda n: n["head_effect"] > 0)],
    [("{word} attends more to {seen} (mean weight {seen_weight}) than to {token} ({token_weight}), "
      "but {token} has the larger effect.", lambda n: n["seen_weight"] - n["token_weight"] >= LEAST_DIFFERENCE),
     ("The attention weights of the tokens agree {well} with their effects (rank correlation {agreement}).",
      lambda n: n["tokens"] > 3)],
]  # fmt: skip
LABEL: list[Template] = [("{at}{scope}ablating {ablated} {moves} {vector} most (by {effect}).", None)]
TABLE_OF_LABEL: list[list[Template]] = [
    LABEL,
    [("Ablating {head} {head_moves} it by {head_effect}, the most of all heads.", None)],
    [("The estimated contributions of the tokens agree {well} with these effects (rank correlation {agreement}).",
      lambda n: n["tokens"] > 3)],
]  # fmt: skip
HEADS_OF_TWO: list[Template] = [
    ("The most important head is {head} for both (effects {head_effect} and {head_effect_2}).",
     lambda n: n["head"] == n["head_2"]),
    ("The most important head is {head} in {place} (effect {head_effect}) and {head_2} in {place_2} ({head_effect_2}).",
     None),
]  # fmt: skip
MANY: list[list[Template]] = [
    [("In {words} of {count} occurrences, {word} is the most important other word.", lambda n: n["words"] > 1)],
    [("In {heads} of {count} occurrences, {head} is the most important head.", lambda n: n["heads"] > 1),
     ("The most important head differs in all {count} occurrences.", None)],
]  # fmt: skip


def why_sentences(answer: "_Ranked") -> list[str]:
    """Write about the word and head of a single occurrence, of each of two, or of most of several."""
    every = [_numbers_of_word(why, place(label, why) if len(answer.each()) > 1 else "") for label, why in answer.each()]
    of_label = answer.each()[0][1].to is not None
    if len(every) == 1:
        return sentences(TABLE_OF_LABEL if of_label else TABLE, every[0])
    if len(every) == 2:
        second = {f"{name}_2": value for name, value in every[1].items()}
        return [
            *(sentences([LABEL if of_label else WORD], numbers)[0] for numbers in every),
            *sentences([HEADS_OF_TWO], every[0] | second),
        ]
    numbers: dict[str, Any] = {"count": len(every)}
    for name, key in (("word", "first"), ("head", "head")):
        counts = Counter(one[key] for one in every if one.get(key))
        numbers[name], numbers[f"{name}s"] = counts.most_common(1)[0] if counts else (None, None)
    return sentences(MANY, numbers)


def place(label: str, why: "Why") -> str:
    """Name the text of an occurrence: "text 2a", or "target 1"."""
    return f"{'target' if why.part == 'decoder' else 'text'} {label}"


def _numbers_of_word(why: "Why", at: str) -> dict[str, Any]:
    """Collect what sentences about an occurrence name. at: the text it is in, if there are several."""
    others = sorted([token for token in why.tokens if token.is_other_word], key=why.size, reverse=True)
    names = [quoted(token.name) for token in others]

    def name(token: "Cause") -> str:
        number = f" ({token.token})" if names.count(quoted(token.name)) > 1 else ""
        return ("the source token " if token.part == "cross" else "") + quoted(token.name) + number

    word, weight = quoted(why.word), why.tokens_agreement[0 if why.to is None else 1]
    head = max(why.heads, key=why.size)
    vector = "next-token prediction after" if why.by == "divergence" else "vector of"
    numbers = {
        "word": word, "vector": f"the {vector} {word}" if why.to is None else why.subject, "measure": MEASURES[why.by],
        "place": at, "at": f"In {at}, " if at else "",
        "head": head.name.replace("cross ", "cross-attention "), "head_effect": why.size(head),
        "head_moves": "lowers" if why.measured(head) > 0 else "raises",
        "tokens": len(why.tokens), "agreement": None if weight != weight else weight,
        "well": "well" if weight >= 0.8 else "moderately" if weight >= 0.5 else "poorly",
    }  # fmt: skip
    if not others:
        return numbers
    first = others[0]
    seen = max((token for token in others if token.part == first.part), key=lambda token: token.weight)
    others_only = any(why.size(token) >= why.size(first) for token in why.tokens if not token.is_other_word)
    numbers |= {
        "scope": "among other words, " if others_only else "", "effect": why.size(first), "token": name(first),
        "moves": "lowers" if why.measured(first) > 0 else "raises",
        "ablated": f"the attention to {name(first)}" if why.tokens_by == "edges" else name(first),
        "token_weight": first.weight, "first": quoted(first.name) if why.size(first) >= LEAST_EFFECT else None,
    }  # fmt: skip
    if LEAST_EFFECT <= why.size(first) > why.size(seen):
        numbers |= {"seen": name(seen), "seen_weight": seen.weight}
    return numbers


By = Literal["effect", "divergence", "logit"]


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
    Of a classifier's label (else None): logit, probability: by how much the label's fall without the token or head.
    contribution is then the estimate of that by one gradient, in logits.
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
    logit: float | None = None
    probability: float | None = None

    @property
    def is_other_word(self) -> bool:
        """Return whether a token is neither special, nor a sink, nor of the word itself."""
        return not (self.special or self.sink or self.own)


@dataclass(frozen=True, eq=False, repr=False)
class _Ranked(Answer):
    """Share sentences and panels between a single occurrence and several."""

    format: ClassVar[str] = "regard why"
    findings, panels = why_sentences, why_panels

    def each(self) -> "Sequence[tuple[str, Why]]":
        """Every occurrence, by its label."""
        raise NotImplementedError

    def title(self) -> str:
        """Of which word."""
        words = dict.fromkeys(why.subject for _, why in self.each())
        return f"Effects of ablating tokens and heads on {' and '.join(words)}"

    def rows(self) -> list[Row]:
        """One row per cause, with the label of its occurrence."""
        return [{"label": label, **row} for label, why in self.each() for row in why.rows()]

    def data(self) -> dict[str, object]:
        """Which targets the model wrote, and every occurrence with its rankings."""
        words: list[dict[str, Any]] = []
        for label, why in self.each():
            words.append({"label": label})
            for name, value in asdict(why).items():
                if name == "part":  # by the name of its text: "source" or "target"
                    words[-1]["side"] = None if why.part is None else TEXTS[why.part]
                elif "agreement" in name:
                    words[-1][name] = dict(zip(("weight", "contribution"), value, strict=True))
                elif name != "about":
                    words[-1][name] = value
        return {"generated": [False] * len(self.about.texts), "words": words}


@dataclass(frozen=True, eq=False, repr=False)
class Why(_Ranked):
    """Causes, those first that changed most by the measure that by names: "divergence" if there is one, or "effect".

    *_agreement: rank correlation with that measure of (weight, contribution). part: for an encoder-decoder, whether the
    word is of the text that the "encoder" read or of the "decoder"'s. tokens_by: how tokens were measured, "removal" or
    "edges", or the estimate that orders them instead ("contribution", "weight"), with the effects of their removal.
    to: a classifier's label to explain, by "logit". word is "" for a label of the whole text.
    logit, probability: of the label. The second is None if the logits aren't a choice among labels.
    """

    word: str
    tokens: Sequence[Cause]
    heads: Sequence[Cause]
    tokens_agreement: tuple[float, float]
    heads_agreement: tuple[float, float]
    by: By = "effect"
    part: Part | None = None
    tokens_by: TokensBy = "removal"
    to: str | None = None
    logit: float | None = None
    probability: float | None = None

    def each(self) -> "Sequence[tuple[str, Why]]":
        """This one."""
        return [("1", self)]

    def measured(self, cause: Cause) -> float:
        """Return the effect that the rankings are by: the divergence, the logit's fall, or 1 − cosine."""
        measured: float | None = getattr(cause, self.by)
        return cause.effect if measured is None else measured

    def size(self, cause: Cause) -> float:
        """Return how large that effect is."""
        return abs(self.measured(cause))

    @property
    def subject(self) -> str:
        """Name what the effects are on: “bank”, or the logit of “LOC” at “Paris”."""
        if self.to is None:
            return quoted(self.word)
        return f"the logit of {quoted(self.to)}" + f" at {quoted(self.word)}" * bool(self.word)

    def rows(self) -> list[Row]:
        """List one row per cause, tokens first, in their order: kind ("token" or "head"), and the fields of `Cause`."""
        return [
            {"word": self.word, "kind": kind} | asdict(cause)
            for kind, causes in (("token", self.tokens), ("head", self.heads))
            for cause in causes
        ]


@dataclass(frozen=True, eq=False, repr=False)
class WhyOfTexts(_Ranked, TracesAnswer):
    """The causes of every occurrence of a word in texts. found: by label, such as "2a".

    generated: of pairs, which targets the model wrote.
    """

    found: Sequence[tuple[str, Why]]
    generated: Sequence[bool] = ()

    def each(self) -> Sequence[tuple[str, Why]]:
        """Return every occurrence, by its label."""
        return self.found

    def data(self) -> dict[str, object]:
        """Report which targets the model wrote, and every occurrence with its rankings."""
        return super().data() | {"generated": list(self.generated)}

    def opening(self) -> dict[str, str | int | None]:
        """Open the page at what is behind the word."""
        return {"view": "panel 0", "word": self.found[0][1].word or None}
