from hypothesis import given
from hypothesis import strategies as st

from regard.corpus.word_filter import LEMMA, make_store_word_filter, may_have


@given(st.sets(st.text(max_size=7), max_size=50))
def test_what_was_added_is_always_found(words: set[str]) -> None:
    made = make_store_word_filter(words)
    assert all(may_have(made, word) for word in words)


def test_of_other_words_about_one_in_a_hundred_is_found() -> None:
    made = make_store_word_filter([f"word{n}" for n in range(5000)])
    assert len(made) == 6251
    wrong = sum(may_have(made, f"other{n}") for n in range(5000))
    assert 10 < wrong < 100
    assert not may_have(made, LEMMA + "word1")


def test_an_empty_one_has_nothing() -> None:
    assert not may_have(b"", "a")
    assert not may_have(make_store_word_filter([]), "a")
