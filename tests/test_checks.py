"""Layers and heads by number."""

import pytest

from regard.checks import from_zero
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
