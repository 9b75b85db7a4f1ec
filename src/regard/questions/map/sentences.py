"""State what one layer's attention over a long text does: its strongest far link, how far it goes, what sinks take."""

from typing import TYPE_CHECKING, Any

from regard.display.sentences import Template, sentences
from regard.explain.wording import quoted

if TYPE_CHECKING:
    from regard.questions.map.answer import Matrix

PART = 0.005  # fractions of all attention below it round to 0%

LINK = "{query} attends to {key} {distance} tokens {way}, with weight {weight} in layer {layer}, head {head}."
NO_LINK = "no token attends to another token more than {far} tokens away."
TABLE: list[list[Template]] = [
    [
        (LINK, None),
        ("Within its window and without special tokens and sinks, " + NO_LINK, lambda n: n["window"] > n["far"]),
        ("Without special tokens and sinks, " + NO_LINK, lambda n: n["tokens"] > n["far"] and not n["window"]),
    ],
    [
        (
            "Tokens in layer {layer} attend {mean:n} tokens away on average, from {least:n} in head {near} to {most:n} "
            "in head {furthest}.",
            lambda n: f"{n['least']:.2f}" != f"{n['most']:.2f}",
        ),
        ("Tokens attend {mean:n} tokens away on average in layer {layer}, {heads}.", None),
    ],
    [
        (
            "Special tokens receive {special:%} of all attention and attention sinks {sinks:%}.",
            lambda n: min(n["special"], n["sinks"]) >= PART,
        ),
        (
            "Special tokens receive {special:%} of all attention, from {special_least:%} in head {special_near} to "
            "{special_most:%} in head {special_furthest}.",
            lambda n: n["special"] >= PART and f"{n['special_least']:.0%}" != f"{n['special_most']:.0%}",
        ),
        ("Special tokens receive {special:%} of all attention.", lambda n: n["special"] >= PART),
        ("Attention sinks receive {sinks:%} of all attention.", lambda n: n["sinks"] >= PART),
        ("A learned sink, which is no token, takes {learned:%} of all attention.", lambda n: n["learned"] >= PART),
    ],
    [("Without special tokens and sinks, {token} receives most attention: {times:n} times the average.", None)],
]


def of_matrix(matrix: "Matrix") -> list[str]:
    """Collect the numbers and write the sentences."""
    heads = matrix.heads
    near, furthest = (end(heads, key=lambda head: head.distance) for end in (min, max))
    little, much = (end(heads, key=lambda head: head.special) for end in (min, max))
    numbers: dict[str, Any] = {
        "layer": matrix.layer, "far": matrix.far, "tokens": matrix.tokens,
        "window": 0 if matrix.band is None else matrix.band.window,
        "heads": f"mean of {len(heads)} heads" if matrix.head is None else f"head {matrix.head}",
        "mean": sum(head.distance for head in heads) / len(heads),
        "least": near.distance, "near": near.head, "most": furthest.distance, "furthest": furthest.head,
        "special": sum(head.special for head in heads) / len(heads),
        "special_least": little.special, "special_near": little.head,
        "special_most": much.special, "special_furthest": much.head,
        "sinks": sum(head.sink_tokens for head in heads) / len(heads),
        "learned": sum(head.sink for head in heads) / len(heads),
    }  # fmt: skip
    if matrix.pairs:
        pair = matrix.pairs[0]
        query, key = quoted(pair.query.text), quoted(pair.key.text)
        numbers |= {
            "query": query, "key": f"another {key}" if query == key and key.startswith("“") else key,
            "distance": pair.distance, "way": "ahead" if pair.key.token > pair.query.token else "back",
            "weight": pair.weight, "head": pair.head,
        }  # fmt: skip
    first = next((each for each in matrix.receivers if not each.special and not each.sink), None)
    if first is not None:
        numbers |= {"token": f"{quoted(first.place.text)} (token {first.place.token})", "times": first.received}
    return sentences(TABLE, numbers)
