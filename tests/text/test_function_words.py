import pytest

from regard.text.function_words import PRONOUNS, is_content_word


@pytest.mark.parametrize("word", ["tired", "animal", "2024", " Paris", "été"])
def test_content_words(word: str) -> None:
    assert is_content_word(word)


@pytest.mark.parametrize("word", ["the", "Because", "didn't", "didn’t", "can't", " of", "it", ".", "—"])
def test_function_words_and_marks(word: str) -> None:
    assert not is_content_word(word)


def test_pronouns_are_function_words() -> None:
    assert "it" in PRONOUNS
    assert not any(map(is_content_word, PRONOUNS))
