"""Numbers as text: what is not 0 or 1 does not read so, and what is negative has a minus."""

import json
import math
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from regard.display.written import number_text
from regard.explain.wording import ROUNDING
from tests.said.templates import reads

CASES = json.loads(Path(__file__).with_name("numbers.json").read_text())  # the page's tests read them too


def test_the_page_writes_the_same() -> None:
    assert [number_text(value, digits) for value, digits, _ in CASES] == [text for *_, text in CASES]


@given(st.one_of(st.none(), st.floats(), st.floats(-1, 1)), st.integers(0, 5))
def test_a_number_reads_as_0_or_1_only_where_it_is(value: float | None, digits: int) -> None:
    text = number_text(value, digits)
    if value is None or not math.isfinite(value):
        assert text == "–"
        return
    assert reads(text, value)
    assert ("−" in text) == (value < 0)
    plain = float(text.replace("−", "-")) if text[0] not in "<>" else None
    assert plain != 0 or value == 0
    assert plain is None or abs(plain) != 1 or abs(value) >= 1 - ROUNDING or digits == 0
