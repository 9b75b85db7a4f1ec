"""State what one layer's attention over a long text does: its strongest far link, how far it goes, what sinks take."""

from typing import TYPE_CHECKING, Any

from regard.display.sentences import Template, sentences
from regard.explain.wording import quoted
from regard.text.function_words import is_content_word

if TYPE_CHECKING:
    from regard.questions.map.answer import Matrix

PART = 0.005  # fractions of all attention below it round to 0%

FAR = "In layer {layer}, tokens attend {mean:n} tokens away on average"
SPECIAL = "Special tokens receive {special:%} of all attention"
TABLE: list[list[Template]] = [
    [
        ("{query} attends to {key} {distance} tokens {way} (weight {weight}, layer {layer}, head {head}).", None),
        ("Apart from special tokens and sinks, no token attends more than {far} tokens away.", lambda n: n["long"]),
    ],
    [
        (FAR + ", from {least:n} in head {near} to {most:n} in head {far_head}.", None),
        (FAR + " ({whose}).", None),
    ],
    [
        (SPECIAL + " and attention sinks {sinks:%}.", lambda n: min(n["special"], n["sinks"]) >= PART),
        (
            SPECIAL + ", from {low:%} in head {low_head} to {high:%} in head {high_head}.",
            lambda n: n["special"] >= PART,
        ),
        (SPECIAL + ".", lambda n: n["special"] >= PART),
        ("Attention sinks receive {sinks:%} of all attention.", lambda n: n["sinks"] >= PART),
        ("A learned sink, which isn't a token, takes {learned:%} of all attention.", lambda n: n["learned"] >= PART),
    ],
    [("Apart from special tokens and sinks, {token} receives most attention ({times:n} times the average).", None)],
]


def of_matrix(matrix: "Matrix") -> list[str]:
    """Collect the numbers and write the sentences."""
    heads, reach = matrix.heads, matrix.tokens if matrix.band is None else matrix.band.window
    names = ("distance", "special", "sink_tokens", "sink")
    mean, special, sinks, learned = (sum(getattr(head, name) for head in heads) / len(heads) for name in names)
    numbers: dict[str, Any] = {"layer": matrix.layer, "far": matrix.far, "long": reach > matrix.far, "mean": mean}
    numbers |= {"special": special, "sinks": sinks, "learned": learned}
    numbers["whose"] = f"mean of {len(heads)} heads" if matrix.head is None else f"head {matrix.head}"
    near, furthest = (end(heads, key=lambda head: head.distance) for end in (min, max))
    if f"{near.distance:.2f}" != f"{furthest.distance:.2f}":
        numbers |= {"least": near.distance, "near": near.head, "most": furthest.distance, "far_head": furthest.head}
    low, high = (end(heads, key=lambda head: head.special) for end in (min, max))
    if f"{low.special:.0%}" != f"{high.special:.0%}":
        numbers |= {"low": low.special, "low_head": low.head, "high": high.special, "high_head": high.head}
    if matrix.pairs:
        # a link between two content words says more than one between pieces or repetitions of a word
        telling = (
            pair for pair in matrix.pairs
            if is_content_word(pair.query.text) and is_content_word(pair.key.text)
            and pair.query.text.strip().isalpha() and pair.key.text.strip().isalpha()
            and pair.query.text.casefold() != pair.key.text.casefold()
        )  # fmt: skip
        pair = next(telling, matrix.pairs[0])
        query, key = quoted(pair.query.text), quoted(pair.key.text)
        numbers |= {"query": query, "key": f"another {key}" if query == key and "“" in key else key}
        numbers |= {"distance": pair.distance, "way": "ahead" if pair.key.token > pair.query.token else "back"}
        numbers |= {"weight": pair.weight, "head": pair.head}
    first = next((each for each in matrix.receivers if not each.special and not each.sink), None)
    if first is not None:
        numbers |= {"token": f"{quoted(first.place.text)} (token {first.place.token})", "times": first.received}
    return sentences(TABLE, numbers)
