"""Define the result of `regard why`: tokens and heads ranked by their effect on a word or label."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from regard.capture.interventions.names import TEXTS, Part
from regard.display.answer import Answer, TracesAnswer
from regard.display.panels import Cell, Column, Panel, Strip, Table, decimals
from regard.display.sentences import Template, sentences
from regard.explain.wording import fixed, number, short_head
from regard.questions.why import TokensBy
from regard.shown import Row
from regard.text.quoting import quoted

WHY = "Why"  # the page's tab for a single occurrence
MAX_RANKED = 2  # occurrences; for more, the first screen and the plot show no rankings
TITLES = {  # titles of token rankings, by `Why.tokens_by`
    "removal": "Tokens by effect on {}",
    "edges": "Tokens by effect of attention from {}",
    "contribution": "Tokens by contribution to {}",
    "weight": "Tokens by attention weight from {}",
}
HEADINGS = {"effect": "1 − cosine", "divergence": "KL (nats)", "logit": "logit"}  # column headings, by `Why.by`
NOTES = {"sink": "sink", "special": "special", "the word itself": "own"}  # fields of `Cause`, by note
SIDES = {"cross": "source ", "decoder": "target "}  # name of a token's text, by `Cause.part`
EFFECTS = {  # definitions of an effect, by `Why.by`
    "effect": "Effect: 1 − cosine between the word's vectors with and without the {}.",
    "divergence": "Effect: KL divergence in nats between the next-token predictions with and without the {}.",
    "logit": "Effect: by how much the label's logit falls without the {}.",
}


def why_panels(answer: "_RankedCauses") -> list[Panel]:
    """Return every text, every ranking and, for several occurrences, a table of the largest effects."""
    results = answer.each()
    panels: list[Panel] = [_largest_effects_table(results)] if len(results) > 1 else []
    for label, result in results:
        parts = sorted({token.part for token in result.tokens}, key=str)
        panels += [_effects_strip(result, label, part, alone=len(results) == 1) for part in parts]
        panels += [_ranking_table(result, label, kind, len(results)) for kind in ("token", "head")]
    return panels


def _effects_strip(result: "Why", label: str, part: str | None, *, alone: bool) -> Strip:
    """Return a strip of a text's tokens with their effects. The largest effect of another word has a full bar."""
    tokens = sorted((token for token in result.tokens if token.part == part), key=lambda token: token.token or 0)
    side = SIDES.get(part or "", "")
    full = max((result.size(token) for token in result.tokens if token.is_other_word), default=0.0) or 1.0
    ablated = "attention to " if result.tokens_by == "edges" else ""
    title = f"Effect of ablating {ablated}each {side}token on {result.subject}"
    title += "" if alone else f" in {text_name(label, result)}"
    note = EFFECTS[result.by].format("attention" if ablated else "token")
    return Strip(
        name=f"The {side}text{'' if alone else f', {label}'}", tokens=[token.name for token in tokens],
        title=f"{title} (full bar: {fixed(full, decimals([full]), unbounded=True)})",
        values=[result.measured(token) for token in tokens], unit="effect",
        special=[n for n, token in enumerate(tokens) if (token.special or token.sink) and not token.own],
        marked=[n for n, token in enumerate(tokens) if token.own], tab=WHY if alone else text_name(label, result),
        caption=note, full=full, note=note, screen=alone, picture=alone, signed=result.by == "logit",
    )  # fmt: skip


def _ranking_table(result: "Why", label: str, kind: str, count: int) -> Table:
    """Return a table of all tokens or heads by effect on an occurrence. count: the number of occurrences."""
    is_token, unbounded = kind == "token", result.by == "divergence"
    causes, agreement = (result.tokens, result.tokens_agreement) if is_token else (result.heads, result.heads_agreement)
    weight, of_label = "mean weight" if is_token else "weight on words", result.by == "logit"
    chances = result.probability is not None
    columns = [
        Column(kind), Column(HEADINGS[result.by], 2, bar=True, unbounded=unbounded, signed=of_label),
        *[Column("probability", 2, signed=True)] * chances, *[Column(HEADINGS["effect"], 2, detail=True)] * unbounded,
        Column("contribution", 2, detail=not of_label, signed=of_label), Column(weight, 2, detail=not is_token),
        *[Column("note", detail=True)] * is_token,
    ]  # fmt: skip
    rows: list[list[Cell]] = []
    for cause in causes:
        marks = ", ".join(mark for mark, field in NOTES.items() if getattr(cause, field))
        measures = [result.measured(cause), *[cause.probability] * chances, *[cause.effect] * unbounded]
        rows.append([cause_name(cause), *measures, cause.contribution, cause.weight, *[marks] * is_token])
    ranks = [number(value) if value == value else "–" for value in agreement]
    agrees = f"Rank correlation with the effect: {weight} {ranks[0]}, contribution {ranks[1]}."
    text = "mean fraction of the word's vectors from the token" if is_token else "fraction from the head in its layer"
    text = "the same, estimated by one gradient" if of_label else text
    note = f"{agrees} Contribution: {text}." if count == 1 else f"{EFFECTS[result.by].format(kind)} {agrees}"
    of, suffix = (f" in {text_name(label, result)}", f", {label}") if count > 1 else ("", "")
    of_heads = "Heads by effect" if of else "Heads by effect on {}"
    title = (TITLES[result.tokens_by] if is_token else of_heads).format(result.subject)
    return Table(
        name=f"{'Tokens' if is_token else 'Heads'} by effect{suffix}", title=title + of, columns=columns, rows=rows,
        note=note, screen=count <= MAX_RANKED, picture=count <= MAX_RANKED, group=text_name(label, result),
        tab=WHY if count == 1 else text_name(label, result),
    )  # fmt: skip


def _largest_effects_table(results: "Sequence[tuple[str, Why]]") -> Table:
    """Return a table with one row per occurrence: the other word and the head with the largest effects."""
    rows: list[list[Cell]] = []
    for label, result in results:
        words = [token for token in result.tokens if token.is_other_word]
        word = max(words, key=result.size, default=None)
        head = max(result.heads, key=result.size)
        token: list[Cell] = ["–", None] if word is None else [cause_name(word), result.measured(word)]
        rows.append([text_name(label, result), *token, cause_name(head), result.measured(head)])
    measures = list(dict.fromkeys(HEADINGS[result.by] for _, result in results))
    effect = measures[0] if len(measures) == 1 else "effect"
    columns = [
        Column("occurrence"), Column("word"), Column(effect, 2, bar=True, signed=measures == ["logit"]), Column("head"),
        Column(effect, 2, signed=measures == ["logit"]),
    ]  # fmt: skip
    many = len(results) > MAX_RANKED
    return Table(
        name="Each occurrence", title=f"Largest effects on {results[0][1].subject}", columns=columns, rows=rows,
        screen=many, picture=many, note="Special tokens, attention sinks and the word itself are left out.",
    )  # fmt: skip


def cause_name(cause: "Cause") -> str:
    """Return the name of a cause in tables: "encoder L5H7" for a head, "Anna (0, sink)" for a token."""
    if cause.token is None:
        return f"{cause.part or ''} {short_head(cause.layer, cause.head)}".strip()
    side = SIDES.get(cause.part or "", "")
    return f"{cause.name.strip() or quoted(cause.name)} ({side}{cause.token}{', sink' * cause.sink})"


MEASURES = {"effect": "1 − cosine", "divergence": "KL divergence", "logit": ""}  # in sentences, by `Why.by`
LEAST_EFFECT = 1e-4  # sentences name no token with a smaller effect
LEAST_DIFFERENCE = 0.01  # between two weights for a sentence to call them different

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


def why_sentences(answer: "_RankedCauses") -> list[str]:
    """Return sentences on the word and head with the largest effects, for one, two or many occurrences."""
    facts = [_word_facts(item, text_name(name, item) if len(answer.each()) > 1 else "") for name, item in answer.each()]
    of_label = answer.each()[0][1].to is not None
    if len(facts) == 1:
        return sentences(TABLE_OF_LABEL if of_label else TABLE, facts[0])
    if len(facts) == 2:
        second = {f"{name}_2": value for name, value in facts[1].items()}
        return [
            *(sentences([LABEL if of_label else WORD], numbers)[0] for numbers in facts),
            *sentences([HEADS_OF_TWO], facts[0] | second),
        ]
    numbers: dict[str, Any] = {"count": len(facts)}
    for name, key in (("word", "first"), ("head", "head")):
        counts = Counter(one[key] for one in facts if one.get(key))
        numbers[name], numbers[f"{name}s"] = counts.most_common(1)[0] if counts else (None, None)
    return sentences(MANY, numbers)


def text_name(label: str, result: "Why") -> str:
    """Return the name of an occurrence's text: "text 2a" or "target 1"."""
    return f"{'target' if result.part == 'decoder' else 'text'} {label}"


def _word_facts(result: "Why", at: str) -> dict[str, Any]:
    """Return the numbers of the sentences on one occurrence. at: its text's name, "" for a single occurrence."""
    others = sorted([token for token in result.tokens if token.is_other_word], key=result.size, reverse=True)
    names = [quoted(token.name) for token in others]

    def token_name(token: "Cause") -> str:
        number = f" ({token.token})" if names.count(quoted(token.name)) > 1 else ""
        return ("the source token " if token.part == "cross" else "") + quoted(token.name) + number

    word, weight = quoted(result.word), result.tokens_agreement[0 if result.to is None else 1]
    head = max(result.heads, key=result.size)
    vector = "next-token prediction after" if result.by == "divergence" else "vector of"
    numbers = {
        "word": word, "vector": f"the {vector} {word}" if result.to is None else result.subject,
        "measure": MEASURES[result.by], "place": at, "at": f"In {at}, " if at else "",
        "head": head.name.replace("cross ", "cross-attention "), "head_effect": result.size(head),
        "head_moves": "lowers" if result.measured(head) > 0 else "raises",
        "tokens": len(result.tokens), "agreement": None if weight != weight else weight,
        "well": "well" if weight >= 0.8 else "moderately" if weight >= 0.5 else "poorly",
    }  # fmt: skip
    if not others:
        return numbers
    first = others[0]
    heaviest = max((token for token in others if token.part == first.part), key=lambda token: token.weight)
    others_only = any(result.size(token) >= result.size(first) for token in result.tokens if not token.is_other_word)
    numbers |= {
        "scope": "among other words, " if others_only else "", "effect": result.size(first), "token": token_name(first),
        "moves": "lowers" if result.measured(first) > 0 else "raises",
        "ablated": f"the attention to {token_name(first)}" if result.tokens_by == "edges" else token_name(first),
        "token_weight": first.weight, "first": quoted(first.name) if result.size(first) >= LEAST_EFFECT else None,
    }  # fmt: skip
    if LEAST_EFFECT <= result.size(first) > result.size(heaviest):
        numbers |= {"seen": token_name(heaviest), "seen_weight": heaviest.weight}
    return numbers


By = Literal["effect", "divergence", "logit"]


@dataclass(frozen=True)
class Cause:
    """A token (head None) or a head (token None), and its effect on the word.

    weight: for a token, the mean over layers and heads; for a head, the fraction that goes neither to special tokens
    nor to attention sinks. sink, special, own: whether the token is a sink, a special token, or part of the word
    itself. contribution: the absolute fraction of the word's vector, as the mean over layers. effect: 1 − cosine
    between the word's last hidden states with and without the token or head (if `Why.tokens_by` is "edges", without the
    word's attention to the token). divergence: KL divergence, in nats, of the next-token prediction after the word,
    only for causal models and decoders (see `Effect.after_place`). part: an encoder-decoder's kind of attention. A
    "cross" token is in the source. logit, probability: for a classifier's label (else None), how much they fall without
    the token or head. contribution is then the estimate of the logit's fall from one gradient.
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
        """Return whether the token is neither special, nor an attention sink, nor part of the word itself."""
        return not (self.special or self.sink or self.own)


@dataclass(frozen=True, eq=False, repr=False)
class _RankedCauses(Answer):
    """The common sentences, panels and data of results for one occurrence and for several."""

    format = "regard why"
    findings, panels = why_sentences, why_panels

    def each(self) -> "Sequence[tuple[str, Why]]":
        """Return each occurrence's label and ranking."""
        raise NotImplementedError

    def title(self) -> str:
        """Return a title that names the word or label."""
        words = dict.fromkeys(result.subject for _, result in self.each())
        return f"Effects of ablating tokens and heads on {' and '.join(words)}"

    def rows(self) -> list[Row]:
        """Return one row per token and head, with the label of the occurrence."""
        return [{"label": label, **row} for label, result in self.each() for row in result.rows()]

    def data(self) -> dict[str, object]:
        """Return the rankings of every occurrence, and which targets the model generated, as JSON data."""
        words: list[dict[str, Any]] = []
        for label, result in self.each():
            words.append({"label": label})
            for name, value in asdict(result).items():
                if name == "part":  # in JSON, the name of its text: "source" or "target"
                    words[-1]["side"] = None if result.part is None else TEXTS[result.part]
                elif "agreement" in name:
                    words[-1][name] = dict(zip(("weight", "contribution"), value, strict=True))
                elif name != "about":
                    words[-1][name] = value
        return {"generated": [False] * len(self.about.texts), "words": words}


@dataclass(frozen=True, eq=False, repr=False)
class Why(_RankedCauses):
    """Tokens and heads by their effect on a word or label, the largest first.

    by: the measure of effects: "logit" for a label, otherwise "divergence" if it is known, else "effect". *_agreement:
    the rank correlations of weight and of contribution with the effect. part: for an encoder-decoder, the stack that
    reads the word's text. tokens_by: how tokens are ranked: by the effect of an ablation ("removal" or "edges"), or by
    "contribution" or "weight", with the effects of removal. to: the classifier's label that is explained. word is ""
    for a label of the whole text. logit, probability: of the label (no probability for independent logits).
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
        """Return the single occurrence."""
        return [("1", self)]

    def measured(self, cause: Cause) -> float:
        """Return a cause's effect in the ranking's measure: KL divergence, fall of the logit, or 1 − cosine."""
        measured: float | None = getattr(cause, self.by)
        return cause.effect if measured is None else measured

    def size(self, cause: Cause) -> float:
        """Return a cause's absolute effect in the ranking's measure."""
        return abs(self.measured(cause))

    @property
    def subject(self) -> str:
        """Return the name of the affected word or logit: “bank”, or the logit of “LOC” at “Paris”."""
        if self.to is None:
            return quoted(self.word)
        return f"the logit of {quoted(self.to)}" + f" at {quoted(self.word)}" * bool(self.word)

    def rows(self) -> list[Row]:
        """Return one row per token, then one per head, in ranked order: kind and the fields of `Cause`."""
        return [
            {"word": self.word, "kind": kind} | asdict(cause)
            for kind, causes in (("token", self.tokens), ("head", self.heads))
            for cause in causes
        ]


@dataclass(frozen=True, eq=False, repr=False)
class WhyOfTexts(_RankedCauses, TracesAnswer):
    """Tokens and heads by effect on every occurrence of a word. found: rankings by label, such as "2a".

    generated: for each source and target, whether the model generated the target.
    """

    found: Sequence[tuple[str, Why]]
    generated: Sequence[bool] = ()

    def each(self) -> Sequence[tuple[str, Why]]:
        """Return each occurrence's label and ranking."""
        return self.found

    def data(self) -> dict[str, object]:
        """Return the rankings of every occurrence, and which targets the model generated, as JSON data."""
        return super().data() | {"generated": list(self.generated)}

    def opening(self) -> dict[str, str | int | None]:
        """Return the view and word at which the page opens: the first panel."""
        return {"view": "panel 0", "word": self.found[0][1].word or None}
