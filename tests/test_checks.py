"""Numbers of layers and heads, and kinds of fields."""

from typing import Literal

import numpy as np
import pytest

from regard.checks import check_integer, check_seed, chosen_numbers, from_zero, kind_needed, missing_number_error
from regard.errors import RegardError


@pytest.mark.parametrize(("given", "number"), [(0, 0), (5, 5), (-1, 5), (-6, 0)])
def test_numbers_from_either_end(given: int, number: int) -> None:
    assert from_zero("layer", given, 6, "it has") == number


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (6, "layer 6 is out of range: it has layers 0 to 5"),
        (-7, "layer -7 is out of range: it has layers 0 to 5, or -6 to -1 from the end"),
    ],
)
def test_the_range_is_named(given: int, says: str) -> None:
    with pytest.raises(RegardError) as caught:
        from_zero("layer", given, 6, "it has")
    assert str(caught.value) == says


def test_one_layer_is_named_alone() -> None:
    with pytest.raises(RegardError, match="^layer -2 is out of range: it has only layer 0$"):
        from_zero("layer", -2, 1, "it has")
    assert str(missing_number_error("head", 1, 1, "there are")) == "head 1 does not exist: there is only head 0"


@pytest.mark.parametrize("seed", [-1, 1 << 63, True, 1.0, "1"])
def test_seeds(seed: object) -> None:
    with pytest.raises(RegardError, match="expected a whole number from 0"):
        check_seed(seed)
    for fine in (0, (1 << 63) - 1):
        check_seed(fine)


def test_numbers_of_layers_to_keep() -> None:
    assert chosen_numbers("layer", None) is None
    assert chosen_numbers("layer", [5, 0, 5, 2]) == (0, 2, 5) == chosen_numbers("layer", np.array([2, 5, 0]))
    assert chosen_numbers("layer", 3) == (3,) == chosen_numbers("layer", np.int64(3))
    for given, says in (
        ([], "layers: got none, expected at least one number, or None for all"),
        ([3, -1], "layer -1 does not exist: layers are counted from 0"),
        ([True], "layers: got .True., expected whole numbers"),
        (b"\x01", "expected whole numbers"),
        (2.5, "layers: got 2.5, expected whole numbers"),
    ):
        with pytest.raises(RegardError, match=says):
            chosen_numbers("layer", given)


@pytest.mark.parametrize(
    ("given", "kind", "needed"),
    [
        ("a", Literal["a", "b"], None),
        ("c", Literal["a", "b"], "'a' or 'b'"),
        (None, int | None, None),
        (None, int, "a whole number"),
        (True, int, "a whole number"),
        (1, float, None),
        (True, float, "a number"),
        (1, bool, "true or false"),
        (False, bool, None),
    ],
)
def test_a_field_says_what_it_needs(given: object, kind: object, needed: str | None) -> None:
    assert kind_needed(given, kind) == needed


def test_a_width_is_an_integer_of_some_size() -> None:
    check_integer("heads", 1)
    check_integer("width", 2, 2)
    with pytest.raises(TypeError, match="heads: got bool, expected an integer"):
        check_integer("heads", True)
    with pytest.raises(ValueError, match="width: got 1, expected 2 or more"):
        check_integer("width", 1, 2)
