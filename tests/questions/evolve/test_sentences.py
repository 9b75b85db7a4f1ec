"""Sentences about how attention formed are the steps' numbers, and say nothing where nothing changed."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest

from regard.display.panels import Heat
from regard.questions.evolve.answer import Evolution, evolution
from regard.questions.evolve.sentences import repeats


def planted(*weights: list[list[float]], names: tuple[str, ...] = ("a", "b", "c")) -> Evolution:
    """An evolution of causal weights at steps 0, 10, 20 …"""
    entropy = [sum(-w * math.log(w) for row in table for w in row if w > 0) / len(table) for table in weights]
    change = [0.0] + [
        sum(abs(x - y) for r, q in zip(a, b, strict=True) for x, y in zip(r, q, strict=True)) / 9
        for a, b in pairwise(weights)
    ]
    steps = [10 * n for n in range(len(weights))]
    path = [(0.0, 0.0), (1.0, 0.0)]
    return Evolution(
        "attention", 0, None, steps, list(names), list(names),
        list(weights), entropy, change, ["a", "b"], [path, [(0.0, 0.0), (0.0, 3.0)]], (0.5, 0.25),
    )  # fmt: skip


EVEN = [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [1 / 3, 1 / 3, 1 / 3]]
HALF = [[1.0, 0.0, 0.0], [0.6, 0.4, 0.0], [0.2, 0.6, 0.2]]
SHARP = [[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.0, 1.0, 0.0]]


def test_the_numbers_are_the_steps() -> None:
    found = planted(EVEN, HALF, SHARP)
    assert found.findings() == [
        f"In layer 0, mean of heads, attention became sharper: at step 20 a token spreads it as equal weights over "
        f"{math.exp(found.entropy[2]):.1f} tokens would (e to the entropy, mean over the "
        f"tokens); at step 0 over {math.exp(found.entropy[0]):.1f}.",
        "What grew most there: “c” looks at “b” with 1.00, at step 0 with 0.33.",
        "What fell most there: “b” looks at itself with 0.10, at step 0 with 0.50.",
        f"The weights there changed most between steps 10 and 20 ({found.change[2] / sum(found.change):.0%} of all "
        "change); half of all was done by step 20 of 20.",
        "Of the learned embeddings that of “b” ended furthest from its start, on the plane that keeps 75% of their "
        "variance.",
    ]


def test_when_induction_formed() -> None:
    found = planted(EVEN, HALF, SHARP)
    heads = [[[0.1, 0.05], [0.2, low]] for low in (0.02, 0.6, 0.9)]
    said = replace(found, induction=heads).findings()
    assert said[0] == (
        "Induction formed by step 10: head L1H1 gives 0.60 to what came behind a token's earlier occurrences, at step "
        "0 it gave 0.020; at step 20 0.90."
    )
    assert said[1:] == found.findings()
    from_start = replace(found, induction=heads[2:] * 3).findings()
    assert from_start[0].startswith("Head L1H1 attends by induction from step 0 on: it gives 0.90 to what came behind")
    none = replace(found, induction=heads[:1] * 3)
    assert none.findings() == found.findings()  # the text is none that is there to show it
    letters = planted(EVEN, HALF, SHARP, names=("a", "a", "a"))
    assert (
        replace(letters, induction=heads[:1] * 3)
        .findings()[0]
        .startswith("No head attends by induction at step 20: most gives head L1H0, 0.20 to what came")
    )


def test_all_heads_that_attend_by_induction_are_told() -> None:
    heads = [[[low, 0.05, 0.31], [0.29, 2 * low]] for low in (0.02, 0.4)]
    said = replace(planted(EVEN, SHARP), induction=heads).findings()[0]
    assert said.endswith("at step 10 0.80. So do, at step 10, L0H0 (0.40), L0H2 (0.31).")
    heads = [[[low, 0.05, 0.28], [0.29, 2 * low]] for low in (0.3, 0.4)]
    assert replace(planted(EVEN, SHARP), induction=heads).findings()[0].endswith(" So does, at step 10, L0H0 (0.40).")


def test_links_that_changed_as_much_are_told_and_no_number_stands_where_there_is_no_weight() -> None:
    after = [[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.2, 0.733, 0.067]]
    found = planted(EVEN, after)
    assert (
        "What grew most there: “b” looks at “a” with 0.90, at step 0 with 0.50; as much, 0.40: “c” looks at “b”."
        in found.findings()
    )
    difference = next(panel for panel in found.panels() if panel.name == "Difference")
    assert "; one of the most changed: “b” looks at “a”" in difference.note
    assert "cells without a number: no weight at any step" in difference.note
    assert isinstance(difference, Heat)
    assert [[value is None for value in row] for row in difference.values] == found.never
    assert found.never == [[False, True, True], [False, False, True], [False, False, False]]


def test_which_texts_repeat() -> None:
    assert repeats(list("kpwakpwakp"))
    assert repeats(["a", "a"])
    assert not repeats(list("kpwakpwb"))
    assert not repeats(list("kpwakp"))  # not twice
    assert not repeats(["a"])


def test_broader_and_still() -> None:
    assert planted(SHARP, EVEN).findings()[0].startswith("In layer 0, mean of heads, attention became broader")
    still = planted(EVEN, EVEN, EVEN).findings()
    assert still[0].endswith("about as at step 0.")
    assert still[1:3] == ["No link between two tokens grew there by 0.05 or more.", "No weight there changed at all."]


def test_one_step_alone(minilm) -> None:
    said = evolution([(7, minilm.trace("a river bank"))], 0).findings()
    assert said[0].startswith(
        "In layer 0, mean of heads, at step 7 a token spreads its attention as equal weights over "
    )
    assert said[1].startswith("The largest weight there: ")
    assert len(said) == 2


def test_tokens_that_stand_twice_have_their_numbers() -> None:
    said = planted(EVEN, SHARP, names=("a", "b", "b")).findings()
    assert "“b” (2) looks at “b” (1) with 1.00" in said[1]


@pytest.mark.parametrize("count", [0, 1])
def test_embeddings_that_did_not_move_or_are_not_there(count: int) -> None:
    found = planted(EVEN, SHARP)
    found = replace(found, embedded=found.embedded[:count], paths=found.paths[:count])
    assert not any("learned" in sentence for sentence in found.findings())
