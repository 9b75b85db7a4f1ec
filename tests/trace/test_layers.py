"""Layers by number, where there are all and where there are some."""

import re

import pytest

from regard.errors import RegardError
from regard.trace.layers import NOT_SAVED, Layers, kept_numbers


def test_an_item_that_is_missing_is_refused_with_the_reason() -> None:
    few = Layers("attention", 6, {4: "e", 1: "b"})
    assert (len(few), few.kept, few[1], few[-2], few[4:5]) == (6, (1, 4), "b", "e", ("e",))
    with pytest.raises(RegardError, match=re.escape("attention[3] was not kept: of 6 this trace holds 1, 4; trace")):
        few[-3]
    with pytest.raises(RegardError, match=re.escape("attention[2] was not kept")):
        few[1:]
    saved = Layers("values", 3, {}, reason=NOT_SAVED)
    with pytest.raises(RegardError, match=re.escape("values[2] was not saved: the file has none of 3")):
        saved[2]
    assert repr(few) == "Layers('attention', 2 of 6 kept: 1, 4)"


@pytest.mark.parametrize("number", [6, -7])
def test_a_number_out_of_range_names_the_range(number: int) -> None:
    for items in (Layers("cross", 6, {2: "c"}), Layers.of("cross", tuple("abcdef"))):
        named = re.escape(f"cross[{number}]: there is no such layer; there are 6 (-6 to 5)")
        with pytest.raises(IndexError, match=named):
            items[number]


def test_layers_without_attention_say_so() -> None:
    hybrid = Layers("attention", 4, {1: "b", 3: "d"}, made=[(1, 0), (3, 0)])
    assert (len(hybrid), hybrid.kept, hybrid[3], hybrid[-3], hybrid[3, 0]) == (4, (1, 3), "d", "b", "d")
    no = re.escape("attention[2] is not there: layer 2 has no such attention; of 4 layers these have: 1, 3")
    with pytest.raises(RegardError, match=no):
        hybrid[2]
    few = Layers("attention", 4, {3: "d"}, reason=NOT_SAVED, made=[(1, 0), (3, 0)])
    with pytest.raises(RegardError, match=re.escape("attention[1] was not saved: the file has 3 of 4")):
        few[1]
    with pytest.raises(RegardError, match=no):
        few[2]


def test_several_calls_of_a_layer() -> None:
    made = [(0, 0), (0, 1), (1, 0)]
    several = Layers("attention", 2, dict(zip(made, "abc", strict=True)), made=made)
    assert (several.kept, several.calls, several[0], several[0, 1], several[-2, 1]) == (
        (0, 1),
        tuple(made),
        "a",
        "b",
        "b",
    )
    assert (several.calls, several.made, Layers.of("attention", ("a", "b")).made) == (
        tuple(made),
        tuple(made),
        ((0, 0), (1, 0)),
    )
    for items, says in (
        (several, "attention[0, 2]: there is no such call; layer 0 makes 2 attention calls (0 to 1)"),
        (
            Layers.of("attention", ("a", "b")),
            "attention[0, 2]: there is no such call; layer 0 makes one attention call",
        ),
    ):
        with pytest.raises(IndexError, match=re.escape(says)):
            items[0, 2]
    assert Layers.of("attention", ("a", "b"))[1, 0] == "b"


def test_a_walk_that_would_lose_the_layers_numbers_is_refused() -> None:
    few = Layers("attention", 6, {4: "e", 1: "b"})
    several = Layers("cross", 2, {(0, 0): "a", (0, 1): "b", (1, 0): "c"}, made=[(0, 0), (0, 1), (1, 0)])
    for items, says in (
        (few, "attention cannot be walked along, for of 6 it holds 1, 4, and their numbers would be lost: "
              "[attention[n] for n in attention.kept]"),
        (several, "cross cannot be walked along, for its layers make several calls, and their numbers would be lost: "
                  "[cross[n, k] for n, k in cross.calls]"),
        (Layers("values", 3, {}), "values cannot be walked along, for of 3 it holds none, "),
    ):  # fmt: skip
        for walk in (list, enumerate, lambda each: "b" in each):
            with pytest.raises(RegardError, match=re.escape(says)):
                walk(items)
    assert [few[n] for n in few.kept] == ["b", "e"]
    assert [several[n, k] for n, k in several.calls] == ["a", "b", "c"]
    assert list(Layers("values", 2, {1: "b", 0: "a"})) == ["a", "b"]


def test_the_numbers_that_there_are() -> None:
    assert kept_numbers(Layers("values", 5, {3: "d", 0: "a"})) == (0, 3)
    assert kept_numbers(("a", "b")) == (0, 1)


def test_items_come_with_their_layers_numbers() -> None:
    assert list(Layers("values", 5, {3: "d", 0: "a"}).items()) == [(0, "a"), (3, "d")]
    several = Layers("values", 3, {(1, 1): "b", (1, 0): "a", (2, 0): "c"})
    assert list(several.items()) == [(1, "a"), (1, "b"), (2, "c")]
    whole = Layers.of("values", ("a", "b"))
    assert (whole.kept, whole.calls) == ((0, 1), ((0, 0), (1, 0)))
    assert list(whole.items()) == [(0, "a"), (1, "b")]
