"""State how attention formed in training: induction, the link that changed most, and how sharp attention became."""

import math
from typing import TYPE_CHECKING, Any

from regard.display.sentences import Template, sentences
from regard.explain.wording import quoted

if TYPE_CHECKING:
    from regard.questions.evolve.answer import Evolution

SAME = 0.05  # entropies in nats that differ by less are about equal
GREW = 0.05  # smaller changes of a weight are not named

HEAD = "Layer {layer}, head {head} is an induction head "
SPREAD = "spread over {start_spread:n} tokens at step {start} and {spread:n} at step {end}."
TABLE: list[list[Template]] = [
    [
        (HEAD + "from step {formed} on. Its score was {first} at step {previous} and is {last} at step {end}.", None),
        (HEAD + "at step {end} (score {last}).", lambda n: n["found"]),
        ("No head is an induction head at step {end}. The highest score is {last} (layer {layer}, head {head}).", None),
    ],
    [
        ("{query} attends to {key} with weight {weight} at step {end}.", None),
        ("No weight changed between steps {start} and {end}.", lambda n: n["change"] == 0),
        ("No weight changed by {least} or more between steps {start} and {end}.", lambda n: n["change"] < GREW),
        ("Attention from {query} to {key} changed most, from weight {before} to {after}.", None),
    ],
    [
        ("Attention is about as sharp as before: " + SPREAD, lambda n: n["same"]),
        ("Attention became {how}: " + SPREAD, None),
        ("Attention at step {end} is spread over {spread:n} tokens.", None),
    ],
]


def of_evolution(found: "Evolution") -> list[str]:
    """Collect the numbers and write the sentences."""
    numbers: dict[str, Any] = {"start": found.steps[0], "end": found.steps[-1], "least": GREW}
    best = found.induction_head()
    if best is not None and (found.formed(*best) is not None or repeats(found.queries)):
        formed, scores = found.formed(*best), found.induction_of(*best)
        numbers |= {"layer": best[0], "head": best[1], "last": scores[-1], "found": formed is not None}
        if formed:
            numbers |= {"formed": found.steps[formed], "previous": found.steps[formed - 1], "first": scores[formed - 1]}
    weight, cell = found.strongest(0)
    numbers["spread"] = math.exp(found.entropy[-1])
    if len(found.steps) > 1:
        cell = found.most_changed() or cell
        before, after = (found.weights[n][cell[0]][cell[1]] for n in (0, -1))
        numbers |= {"before": before, "after": after, "change": abs(after - before)}
        numbers |= {
            "same": abs(found.entropy[0] - found.entropy[-1]) < SAME,
            "start_spread": math.exp(found.entropy[0]),
        }
        numbers["how"] = "sharper" if found.entropy[-1] < found.entropy[0] else "broader"
    else:
        numbers["weight"] = weight
    names = [
        quoted(tokens[n]) + (f" ({n})" if tokens.count(tokens[n]) > 1 else "")
        for tokens, n in zip((found.queries, found.keys), cell, strict=True)
    ]
    itself = cell[0] == cell[1] and found.queries == found.keys
    return sentences(TABLE, numbers | {"query": names[0], "key": "itself" if itself else names[1]})


def repeats(names: list[str]) -> bool:
    """Return whether a text is its beginning over and over."""
    periods = range(1, len(names) // 2 + 1)
    return any(all(a == b for a, b in zip(names, names[period:], strict=False)) for period in periods)
