import pytest

from regard import RegardError
from regard.text.word_tokens import word_tokens
from regard.textbook import dictionary

TEXT = "Life is short, eat dessert first"


def test_word_tokens_know_their_characters() -> None:
    tokens = word_tokens(TEXT, dictionary(TEXT))
    words = TEXT.replace(",", "").split()
    assert [TEXT[t.start : t.end].rstrip(",") for t in tokens] == [t.text for t in tokens] == words
    assert [t.id for t in tokens] == [0, 4, 5, 2, 1, 3]
    odd = "1,000 , eat,, x"
    assert [(t.text, t.start, t.end) for t in word_tokens(odd, dictionary(odd))] == [
        ("1000", 0, 5), ("eat", 8, 11), ("x", 14, 15),
    ]  # fmt: skip


def test_a_word_that_is_not_in_the_dictionary() -> None:
    with pytest.raises(RegardError, match=r"dictionary of 6 words has no 'cake'"):
        word_tokens("eat cake", dictionary(TEXT))
