"""Measure one text after another: what removing each source does, what methods say of it, and how well they say it."""

import time
from typing import Any

import torch

from benchmarks.faithfulness.cases import Case
from benchmarks.faithfulness.exchanged import replaced
from benchmarks.faithfulness.methods import METHODS
from benchmarks.faithfulness.removal import measured, own_edges, without
from benchmarks.faithfulness.scores import agreement, deletion, deletions, insertion, insertions

REMOVAL = "removing each word"  # the truth itself: the ceiling of both curves
OWN_EDGES = "cutting the word's own edges"
Data = dict[str, Any]


def look(case: Case) -> Data:
    """Everything that was measured of one text.

    effects: by which measure, of each source the outcome of the text less that without it; "moved" is 1 - cosine of the
    place's vector. numbers: of each source by each method. methods: its scores. The lists of sources have sinks and
    special tokens too; curves and all correlations but "with sinks" leave them out.
    """
    count = len(case.sources)
    singles = [frozenset({n}) for n in range(count)]
    words = [n for n in range(count) if not case.sources[n].apart]
    whole = case.outcome.of(case.trace)
    with torch.no_grad():
        again = float(case.read(case.own.last_hidden_state[list(case.place)][None])[0])
    assert abs(again - whole) < 1e-4  # read from the place's vector, as in runs without words
    alone = without(case, singles)
    direct = measured(case, [own_edges(case, n) for n in range(count)])
    effects = {
        "removed": [whole - alone[each][0] for each in singles],
        "moved": [alone[each][1] for each in singles],
        "edges": [whole - each[0] for each in direct],
        "edges moved": [each[1] for each in direct],
        "replaced": [whole - each for each in replaced(case)],
    }
    numbers, seconds = {}, {}
    for method in METHODS:
        started = time.perf_counter()
        numbers[method.name] = method.explain(case)
        seconds[method.name] = time.perf_counter() - started
    numbers[OWN_EDGES], numbers[REMOVAL] = effects["edges"], effects["removed"]

    kept = {name: [each[n] for n in words] for name, each in numbers.items()}
    sets = {frozenset(words[n] for n in each) for own in kept.values() for each in (*deletions(own), *insertions(own))}
    under = alone | without(case, sets - set(singles))

    def outcome(removed: frozenset[int]) -> float:
        return whole if not removed else under[frozenset(words[n] for n in removed)][0]

    truths = {name: [each[n] for n in words] for name, each in effects.items()}
    methods = {
        name: {
            "absolute": agreement(own, truths["removed"], signed=False),
            "signed": agreement(own, truths["removed"], signed=True),
            "with sinks": agreement(numbers[name], effects["removed"], signed=False),
            "replaced": agreement(own, truths["replaced"], signed=False),
            "moved": agreement(own, truths["moved"], signed=False),
            "deletion": deletion(own, outcome),
            "insertion": insertion(own, outcome),
        }
        for name, own in kept.items()
    }
    return {
        "text": case.text,
        "target": case.target,
        "outcome": case.outcome.name,
        "whole": whole,
        "nothing": outcome(frozenset(range(len(words)))),
        "place": list(case.place),
        "sources": [[each.name, each.side, list(each.tokens), each.apart] for each in case.sources],
        "effects": effects,
        "numbers": numbers,
        "methods": methods,
        "edges moved": agreement(truths["edges moved"], truths["moved"], signed=False),
        "seconds": seconds,
        "runs": len(sets) + 3 * count,
    }


def column(texts: list[Data], method: str, score: str) -> list[float]:
    """One score of one method in every text; NaN where it could not be told (all numbers equal).

    How far the word's own edges move it is held against how far removal does: like with like.
    """
    if (method, score) == (OWN_EDGES, "moved"):
        return [each["edges moved"] for each in texts]
    return [each["methods"][method][score] for each in texts]
