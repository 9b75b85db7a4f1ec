"""A claim's outcome, its bound, and what becomes of one that cannot be measured."""

import math
from collections.abc import Iterator

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import InexactError, RegardError
from regard.questions.check.claims import (
    FAILS,
    HOLDS,
    MOST,
    THRICE,
    TIMES,
    ULPS,
    UNMEASURED,
    Apart,
    Claim,
    bound,
    claim,
    half_units,
    measured,
)  # fmt: skip

SIZES = st.floats(0, 1e3)


@given(st.floats(1e-9, 1e-3), SIZES)
def test_a_bound_is_the_least_or_ten_times_the_own_rounding_up_to_the_most(least: float, own: float) -> None:
    assert least <= bound(least, own) <= max(least, MOST)
    assert bound(least, own) == max(least, min(MOST, TIMES * own))
    assert bound(least, None) == least


@given(SIZES, SIZES, st.floats(1e-9, 1e-3))
def test_a_claim_holds_within_its_bound_and_nowhere_else(difference: float, own: float, least: float) -> None:
    made = claim("area", "said", "of", Apart.of(difference, "there"), least, own)
    assert made.outcome == (HOLDS if difference <= bound(least, own) else FAILS)
    assert (made.where, made.own) == ("there", own)


@given(st.floats(1e-9, 1e-3), SIZES, st.sampled_from([torch.bfloat16, torch.float16]))
def test_half_precision_is_allowed_its_own_units(least: float, own: float, dtype: torch.dtype) -> None:
    assert bound(least, own, half_units(dtype)) == max(least, ULPS * torch.finfo(dtype).eps, THRICE * own)
    assert half_units(torch.float32) == half_units(torch.float64) == 0


def test_what_is_no_number_holds_nowhere() -> None:
    made = claim("area", "said", "", Apart.of(math.nan), 1e-5, math.inf)
    assert (made.difference, made.bound, made.outcome) == (math.inf, MOST, FAILS)


@pytest.mark.parametrize(
    ("error", "outcome", "reason"),
    [
        (RegardError("no such thing"), UNMEASURED, "no such thing"),
        (InexactError("the sum is off"), FAILS, "the sum is off"),
        (TypeError("two\nlines"), FAILS, "TypeError: two"),
    ],
)
def test_what_is_refused_is_not_measured_and_what_breaks_fails(error: Exception, outcome: str, reason: str) -> None:
    def breaks() -> Iterator[Claim]:
        yield Claim("first", "measured", "before")
        raise error

    first, made = measured("area", "said", "of", breaks)
    assert first.area == "first"
    assert (made.outcome, made.reason, made.area, made.said, made.of) == (outcome, reason, "area", "said", "of")
