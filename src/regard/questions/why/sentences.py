"""Write the sentences of `regard why`: the word and head with the largest effect, and how weights compare."""

from collections import Counter
from typing import TYPE_CHECKING, Any

from regard.display.sentences import Template, sentences
from regard.text.quoting import quoted

if TYPE_CHECKING:
    from regard.questions.why.answer import Cause, Why, _Ranked

MEASURES = {"effect": "1 − cosine", "divergence": "KL divergence", "logit": ""}  # of an effect, by `Why.by`
LEAST_EFFECT = 1e-4  # no token with a smaller effect is named
LEAST_DIFFERENCE = 0.01  # of two weights that are called different

WORD: list[Template] = [
    (
        "{at}{scope}ablating {ablated} changes {vector} most ({measure} {effect}).",
        lambda n: n["effect"] >= LEAST_EFFECT,
    ),
    ("{at}ablating any single other word leaves {vector} almost unchanged ({measure} {effect}).", None),
    ("{at}{word} attends only to itself, special tokens and attention sinks.", None),
]
TABLE: list[list[Template]] = [
    WORD,
    [("The most important head is {head} (effect {head_effect}).", lambda n: n["head_effect"] > 0)],
    [
        ("{word} attends more to {seen} (mean weight {seen_weight}) than to {token} ({token_weight}), "
         "but {token} has the larger effect.", lambda n: n["seen_weight"] - n["token_weight"] >= LEAST_DIFFERENCE),
        ("The attention weights of the tokens agree {well} with their effects (rank correlation {agreement}).",
         lambda n: n["tokens"] > 3),
    ],
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


def of_causes(answer: "_Ranked") -> list[str]:
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
