"""In which direction a text is read."""

from regard.text.direction import direction


def test_the_first_letter_says_the_direction() -> None:
    assert direction("שלום bank") == "rtl"
    assert direction("12, (مرحبا)") == "rtl"
    assert direction("bank שלום") == "ltr"
    assert direction("银行") == "ltr"
    assert direction("12 %") == "ltr"
    assert direction("") == "ltr"
