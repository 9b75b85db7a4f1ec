"""Values of a description, by type and range."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import RegardError
from regard.tensor_files.values import expect_fields, expect_finite, expect_integer, expect_type, short

SAMPLES: dict[type | None, list[Any]] = {
    str: ["", "ä"], int: [0, -7, 1 << 53], float: [0.5, math.inf], bool: [True, False], list: [[], [1]],
    dict: [{}, {"a": 1}], None: [None],
}  # fmt: skip


@pytest.mark.parametrize("wanted", SAMPLES)
@pytest.mark.parametrize("given_type", SAMPLES)
def test_a_type_and_no_other(wanted: Any, given_type: Any) -> None:
    for value in SAMPLES[given_type]:
        if wanted is given_type or (wanted is float and given_type is int):  # JSON does not tell 1 from 1.0
            assert expect_type("it", value, wanted) is value
            assert expect_type("it", value, *SAMPLES) is value
        else:
            with pytest.raises(RegardError, match="^it is .*, needs "):
                expect_type("it", value, wanted)


@pytest.mark.parametrize(
    ("value", "wanted"), [((1 << 53) + 1, int), (-(1 << 53) - 1, float), ("\ud800", str), (object(), dict)]
)
def test_what_json_could_not_carry(value: Any, wanted: type) -> None:
    with pytest.raises(RegardError, match="it is"):
        expect_type("it", value, wanted)


@given(st.integers(-50, 50), st.integers(-20, 20), st.integers(-20, 20))
def test_whole_numbers_within_bounds(value: int, least: int, most: int) -> None:
    if least <= value <= most:
        assert expect_integer("it", value, least, most) == value
    else:
        with pytest.raises(RegardError, match=f"it is {value}, needs a whole number from {least} to {most}"):
            expect_integer("it", value, least, most)


def test_null_only_where_it_may_be() -> None:
    assert expect_integer("it", None, 0, 1, None) is None
    assert expect_finite("it", None, None) is None
    for check in (lambda: expect_integer("it", None, 0, 1), lambda: expect_finite("it", None)):
        with pytest.raises(RegardError, match="it is None, needs"):
            check()


def test_finite_numbers() -> None:
    assert expect_finite("it", 3) == 3.0
    assert isinstance(expect_finite("it", 3), float)
    for value in (math.inf, -math.inf, math.nan):
        with pytest.raises(RegardError, match="needs a finite number"):
            expect_finite("it", value)


@given(st.sets(st.sampled_from("abcdef")), st.sets(st.sampled_from("abcdef")), st.sets(st.sampled_from("abcdef")))
def test_all_needed_fields_and_no_unknown_ones(there: set[str], needed: set[str], maybe: set[str]) -> None:
    value = dict.fromkeys(sorted(there), 1)
    if needed <= there <= needed | maybe:
        assert expect_fields("it", value, sorted(needed), maybe=sorted(maybe)) is value
        return
    wrong = needed - there or there - needed - maybe
    says = "is missing" if needed - there else "is unknown"
    with pytest.raises(RegardError, match=f"it: '[{''.join(sorted(wrong))}]' {says}"):
        expect_fields("it", value, sorted(needed), maybe=sorted(maybe))


@given(st.text())
def test_values_in_messages_are_short(text: str) -> None:
    assert len(short(text)) <= 40
    assert short(text) == repr(text) or repr(text).startswith(short(text)[:-1])
