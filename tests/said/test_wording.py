"""Numbers are written with two decimals, and read as 0 or 1 only where they are."""

from hypothesis import given
from hypothesis import strategies as st

from regard.explain.wording import fixed, number, signed
from tests.said.reading import shows


@given(st.floats(-100, 100), st.sampled_from([".0f", ".2f", ".4f"]))
def test_a_signed_number_has_a_sign_only_where_what_is_shown_is_not_0(value: float, form: str) -> None:
    text = signed(value, form)
    zero = not any(digit in text for digit in "123456789")
    assert text[0] == ("0" if zero else "+" if value > 0 else "−")
    shows(text, value)


@given(st.floats(1e-9, 1 - 2e-6))
def test_a_fraction_reads_as_0_or_1_only_where_it_is(value: float) -> None:
    shows(number(value), value)
    shows(number(-value), -value)
    assert number(value) not in ("0.00", "1.00")
    assert fixed(value, 2, unbounded=True) == f"{value:.2f}"
