"""Layers by number, where there are all and where there are some."""

import re

import pytest

from regard.errors import RegardError
from regard.trace.layer_subset import NOT_SAVED, Layers, LayerSubset, kept_numbers


def test_an_item_that_is_missing_is_refused_with_the_reason() -> None:
    few = LayerSubset("attention", 6, {4: "e", 1: "b"})
    assert (len(few), few.kept, few[1], few[-2], few[4:5]) == (6, (1, 4), "b", "e", ("e",))
    with pytest.raises(RegardError, match=re.escape("attention[3] was not kept: of 6 this trace holds 1, 4; trace")):
        few[-3]
    with pytest.raises(RegardError, match=re.escape("attention[2] was not kept")):
        few[1:]
    with pytest.raises(RegardError, match=re.escape("attention[0] was not kept")):
        list(few)
    saved = LayerSubset("values", 3, {}, reason=NOT_SAVED)
    with pytest.raises(RegardError, match=re.escape("values[2] was not saved: of 3 the file holds none")):
        saved[2]
    assert repr(few) == "LayerSubset('attention', 2 of 6 kept: 1, 4)"


@pytest.mark.parametrize("number", [6, -7])
def test_a_number_out_of_range_names_the_range(number: int) -> None:
    for items in (LayerSubset("cross", 6, {2: "c"}), Layers.of("cross", tuple("abcdef"))):
        named = re.escape(f"cross[{number}]: there is no such layer; there are 6 (-6 to 5)")
        with pytest.raises(IndexError, match=named):
            items[number]


def test_the_numbers_that_there_are() -> None:
    assert kept_numbers(LayerSubset("values", 5, {3: "d", 0: "a"})) == (0, 3)
    assert kept_numbers(("a", "b")) == (0, 1)
