"""Numbers as text: what rounds to nothing has no sign."""

import math

from hypothesis import given
from hypothesis import strategies as st

from regard.display.written import number_text


@given(st.one_of(st.none(), st.floats()), st.integers(0, 5))
def test_a_number_has_a_minus_where_what_is_written_is_negative(value: float | None, digits: int) -> None:
    text = number_text(value, digits)
    if value is None or not math.isfinite(value):
        assert text == "–"
    else:
        assert float(text.replace("−", "-")) == float(f"{value:.{digits}f}")
        assert text.startswith("−") == (value < 0 and any(digit in text for digit in "123456789"))
