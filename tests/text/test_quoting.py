"""A word is quoted one way: printable, the blanks at its ends left away, blanks alone by their name."""

from hypothesis import given
from hypothesis import strategies as st

from regard.text.quoting import direction, quoted, visible


def test_a_word_stands_in_quotes_and_blanks_are_called_so() -> None:
    assert [quoted(text) for text in (" bank", "river bank", "", "  ", "\n ")] == [
        "“bank”", "“river bank”", "a blank", "a blank", "a line break"
    ]  # fmt: skip


@given(st.text())
def test_what_is_said_is_printable_and_has_the_whole_word(text: str) -> None:
    said = quoted(text)
    assert said.isprintable()
    assert said == visible(said)
    assert not text.strip() or said == f"“{visible(text.strip())}”"


def test_the_first_letter_says_the_direction() -> None:
    assert direction("שלום bank") == "rtl"
    assert direction("12, (مرحبا)") == "rtl"
    assert direction("bank שלום") == "ltr"
    assert direction("银行") == "ltr"
    assert direction("12 %") == "ltr"
    assert direction("") == "ltr"
