"""Templates are filled where every number is there and the condition holds; three sentences at most."""

import json
import math
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from regard.display.sentences import number_text, sentences
from regard.explain.wording import ROUNDING
from tests.said.reading import reads

TABLE = [
    [
        ("“{word}” attends most to “{key}” ({weight}).", lambda n: n["weight"] >= 0.3),
        ("no weight of “{word}” is larger than {weight}.", None),
    ],
    [("the score is {score:n}, {change:+} from {part:%} of {count} tokens.", None)],
    [("it names {names}.", None)],
    [("a fourth.", None)],
]
NUMBERS = {"word": "bank", "key": "river", "weight": 0.831, "score": 0.999, "change": -0.401, "part": 0.24,
           "count": 1200, "names": ["a", "b", "c"]}  # fmt: skip


def test_the_first_template_of_a_group_that_fits_is_filled() -> None:
    assert sentences(TABLE, NUMBERS) == [
        "“bank” attends most to “river” (0.83).",
        "The score is 1.00, −0.40 from 24% of 1,200 tokens.",
        "It names a, b and c.",
    ]
    assert sentences(TABLE, NUMBERS | {"weight": 0.1})[0] == "No weight of “bank” is larger than 0.10."
    assert sentences(TABLE, NUMBERS, most=1) == ["“bank” attends most to “river” (0.83)."]


def test_a_number_that_is_not_there_leaves_its_sentence_out() -> None:
    assert sentences(TABLE[:3], {"names": ["a"], "score": None}) == ["It names a."]


def test_a_fraction_reads_as_0_or_1_only_where_it_is() -> None:
    numbers = {"a": 0.001, "b": 0.999, "c": 1.0, "d": 0.0, "e": 0.004}
    assert sentences([[("{a} {b} {c} {d} {e:%} {e:n}", None)]], numbers) == ["<0.01 >0.99 1.00 0.00 <1% 0.00"]
    assert sentences([[("{a:n} {b:n}", None)]], {"a": -1281.74, "b": 99.994}) == ["−1,282 99.99"]


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
