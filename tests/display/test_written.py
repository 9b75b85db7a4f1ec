"""Numbers as text: a fraction that is not 0 or 1 does not read so, any other number is rounded."""

import json
import math
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from regard.display.written import number_text
from regard.explain.wording import ROUNDING
from tests.said.reading import reads

CASES = json.loads(Path(__file__).with_name("numbers.json").read_text())  # the page's tests read them too


def test_the_page_writes_the_same() -> None:
    assert [number_text(value, digits, *plain) for value, digits, _, *plain in CASES] == [each[2] for each in CASES]


@given(st.one_of(st.none(), st.floats(), st.floats(-1, 1)), st.integers(0, 5))
def test_a_number_reads_as_0_or_1_only_where_it_is(value: float | None, digits: int) -> None:
    text = number_text(value, digits)
    if value is None or not math.isfinite(value):
        assert text == "–"
        return
    plain = float(text.replace("−", "-")) if text[0] not in "<>" else None
    assert ("−" in text) == (plain is not None and plain < 0)
    assert plain == round(value, digits) if value <= 0 else reads(text, value)
    assert plain != 0 or value <= 0
    assert plain != 1 or value >= 1 - ROUNDING or digits < 2
