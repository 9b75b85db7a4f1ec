"""What sentences have in common says its numbers: two digits that count, counts of tokens, how well rankings agree."""

from hypothesis import given
from hypothesis import strategies as st

from regard.explain.wording import agreement, listed, number, signed
from tests.said.templates import shows


@given(st.floats(1e-6, 0.0999))
def test_a_small_number_keeps_two_digits_that_count(value: float) -> None:
    assert abs(float(number(value)) - value) <= 0.0501 * value
    assert number(value) != "0.00"


@given(st.floats(-1e-6, 1e-6) | st.floats(-100, 100), st.sampled_from([None, ".0f", ".2f", ".4f"]))
def test_a_signed_number_has_a_sign_only_where_what_is_shown_is_not_0(value: float, form: str | None) -> None:
    said = signed(value, form)
    zero = not any(digit in said for digit in "123456789")
    least = form is None and 0 < abs(value) < 1e-9
    assert said[0] == ("<" if least and said != "0.00" else "0" if zero else "+" if value > 0 else "−")
    assert least or said.lstrip("+−") == (number(abs(value)) if form is None else f"{abs(value):{form}}")
    shows(said, value)
    below = value < 0 and any(digit in number(value) for digit in "123456789")
    assert 0 < abs(value) < 1e-9 or number(value) == "−" * below + number(abs(value))


@given(st.floats(0.1, 0.99) | st.floats(1, 99))
def test_a_number_of_a_tenth_and_more_has_two_decimals(value: float) -> None:
    assert number(value) == f"{value:.2f}"


@given(st.floats(0.99, 1 - 2e-6), st.sampled_from([1, -1]))
def test_what_is_less_than_1_does_not_read_as_1(value: float, sign: int) -> None:
    assert float(number(value)) < 1
    shows(number(sign * value), sign * value)


@given(st.lists(st.text("abc", min_size=1), min_size=1, max_size=5))
def test_a_list_names_every_part_in_order(parts: list[str]) -> None:
    assert listed(parts).replace(" and ", ", ").split(", ") == parts


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_a_larger_correlation_is_never_said_to_agree_less(one: float, other: float) -> None:
    steps = ["quite otherwise than", "only loosely as", "roughly as", "nearly as"]
    low, high = sorted((one, other))
    assert steps.index(agreement(low)) <= steps.index(agreement(high))
    assert (agreement(one) == steps[-1]) == (one >= 0.9)
