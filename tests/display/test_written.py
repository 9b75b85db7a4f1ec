"""Numbers as text: what rounds to nothing has no sign."""

from hypothesis import given
from hypothesis import strategies as st

from regard.display.written import number_text


@given(st.one_of(st.none(), st.floats()), st.integers(0, 5))
def test_a_number_that_rounds_to_nothing_has_no_sign(value: float | None, digits: int) -> None:
    text = number_text(value, digits)
    if text != "–":
        assert float(text.replace("−", "-")) != 0 or not text.startswith("−")
