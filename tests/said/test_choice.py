"""Titles of pictures, held against every weight that the picture has: what is chosen, framed, called the strongest."""

import math
import random
from collections import Counter, defaultdict
from dataclasses import dataclass

from regard.explain.weights.specific_weights import most_specific_weight, specific_weights, text_choice
from regard.questions.see.choice import word_choice
from tests.said.random_traces import trace_of
from tests.said.templates import Groups, Template, hold, shows

HEADS, LENGTH, LAYERS = 3, 9, 2


@dataclass(frozen=True)
class Shown:
    """What a picture is of: all weights (layer, head, query, key), the followed token, and what was asked for."""

    weights: list[list[list[list[float]]]]
    names: list[str]
    query: int | None
    sink: int | None
    layer: int | None
    head: int | None


def mean(values: list[float]) -> float:
    seen = [value for value in values if value > 0]
    return sum(seen) / max(1, len(seen))


def expected(rows: list[list[float]], i: int, j: int) -> tuple[float, float, float]:
    """What one head's other queries give as far from them, what they give this key, and an equal share."""
    far = {q: rows[q][q + j - i] for q in range(LENGTH) if q != i and 0 <= q + j - i < LENGTH}
    near = [value for q, value in far.items() if abs(q - i) <= 4]
    by_key = mean([rows[q][j] for q in range(LENGTH) if q != i])
    return max(mean(list(far.values())), mean(near)), by_key, 1 / sum(w > 0 for w in rows[i])


def beyond(numbers: Shown, layer: int, i: int) -> dict[tuple[int, int], float]:
    """What each head and key has beyond the expected, in nats; special tokens, sinks and the word itself aside."""
    found = {}
    for h in range(HEADS) if numbers.head is None else [numbers.head]:
        rows = numbers.weights[layer][h]
        for j in set(range(1, LENGTH)) - {i, numbers.sink}:
            found[h, j] = rows[i][j] * math.log(rows[i][j] / max(expected(rows, i, j))) if rows[i][j] > 0 else 0.0
    return found


def word(groups: Groups, numbers: Shown) -> None:
    assert numbers.query is not None
    i = numbers.query
    assert groups["word"] == numbers.names[i]
    layers = range(LAYERS) if numbers.layer is None else [numbers.layer]
    every = {(layer, *cell): nats for layer in layers for cell, nats in beyond(numbers, layer, i).items()}
    (layer, h, j), _ = max(every.items(), key=lambda each: each[1])
    rows = numbers.weights[layer]
    assert numbers.names[j] == groups["key"]
    shows(groups["weight"], rows[h][i][j])
    distance, token, _ = expected(rows[h], i, j)
    shows(groups["distance"], distance)
    shows(groups["token"], token)


def sums(numbers: Shown) -> tuple[dict[int, float], dict[tuple[int, int], float]]:
    """What the words of the text have beyond the expected, by layer, and by layer and head."""
    layers: dict[int, float] = defaultdict(float)
    heads: dict[tuple[int, int], float] = defaultdict(float)
    for layer in range(LAYERS):
        for i in set(range(1, LENGTH)) - {numbers.sink}:
            (h, _), most = max(beyond(numbers, layer, i).items(), key=lambda each: each[1])
            if most > 0:
                layers[layer] += most
                heads[layer, h] += most
    return layers, heads


def text(groups: Groups, numbers: Shown) -> None:
    layers, heads = sums(numbers)
    layer, head = int(groups["layer"] or 0), int(groups["head"] or 0)
    mine = {h: value for (own, h), value in heads.items() if own == layer}
    assert mine[head] >= max(mine.values()) - 1e-9
    if numbers.layer is None:
        assert layers[layer] >= max(layers.values()) - 1e-9
        shows(groups["nats"], layers[layer])
        shows(groups["part"] or groups["nats"], mine[head])
    else:
        assert layer == numbers.layer
        shows(groups["nats"], mine[head])


TEMPLATES = [
    Template(
        "word", r"(?:chosen: )?“(?P<word>[^”]+)” gives “(?P<key>[^”]+)” (?P<weight>[\d.]+) \(others at that distance "
        r"(?P<distance>[\d.]+), to that token (?P<token>[\d.]+)\)", word,
    ),
    Template(
        "text", r"chosen: layer (?P<layer>\d) says most, (?P<nats>[\d.]+) nats beyond the expected, and in it head "
        r"(?P<head>\d), (?P<part>[\d.]+)", text,
    ),
    Template(
        "layer of a head", r"chosen: of the layers of head (?P<head>\d) layer (?P<layer>\d) says most, "
        r"(?P<nats>[\d.]+) nats beyond the expected(?P<part>)", text,
    ),
]  # fmt: skip


def test_every_title_of_random_pictures_is_true() -> None:
    spoke: Counter[str] = Counter()
    draw = random.Random(3)
    for _ in range(24):
        trace, query = trace_of(draw, LENGTH, HEADS, LAYERS), draw.randrange(2, LENGTH)
        sink = draw.choice([None, 1])
        apart = [] if sink is None else [sink]
        dense = [weights.dense().double() for weights in trace.attention]
        names, whole = [token.text for token in trace.tokens], [each.tolist() for each in dense]
        layer, head = draw.choice([None, draw.randrange(LAYERS)]), draw.choice([None, None, draw.randrange(HEADS)])

        numbers = Shown(whole, names, query, sink, layer, head)
        found = specific_weights(
            trace, [[query]], apart, layers=None if layer is None else [layer], head=head, words_alone=True
        )
        best = max((each for weights in found for each in weights), key=lambda each: each.divergence, default=None)
        if best is not None:
            spoke += hold([word_choice(best, trace.tokens)], numbers, TEMPLATES)

        found = specific_weights(trace, None, apart, layers=None if layer is None else [layer], head=head)
        most = most_specific_weight(found)
        assert most is not None
        said = (
            ""
            if layer is not None
            else text_choice(found, trace.tokens, most.layer, apart=apart, head_asked=head is not None)
        )
        numbers = Shown(whole, names, None, sink, layer, head)
        spoke += hold([said] if said else [], numbers, TEMPLATES)

    assert set(spoke) == {each.name for each in TEMPLATES}
