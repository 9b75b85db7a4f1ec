"""A word can be linked to the tokens of other words, not to what is special, a mark, a sink or spelled the same."""

from regard.explain.weights.word_links import other_words
from regard.text.tokens import Token
from tests.support import in_text

WORDS = ["[CLS]", "a", "river", ",", "ba", "##nk", "on", "money", "."]
PLACES = [0, 0, 2, 7, 9, 11, 14, 17, 22]  # "a river, bank on money."
TOKENS = in_text(
    [
        Token(0, text, at, at + len(text.replace("##", "").replace("[CLS]", "")), None, text == "[CLS]")
        for text, at in zip(WORDS, PLACES, strict=True)
    ]
)
OWN = [4, 5]


def test_other_words_are_not_special_nor_marks_nor_sinks_nor_the_word() -> None:
    assert other_words(TOKENS, OWN) == [1, 2, 6, 7]
    assert other_words(TOKENS, OWN, sinks=[1]) == [2, 6, 7]


def test_pieces_of_its_word_and_the_same_word_again_are_not_different() -> None:
    """The rest of a word of which one piece is followed is no other word; one that is said twice is the same."""
    pieces = [("rifle", 0), ("##d", 5), ("hearts", 7), ("it", 14), ("'", 16), ("s", 17), ("Hearts", 19), ("all", 26)]
    tokens = in_text([Token(0, text, at, at + len(text.removeprefix("##")), None, False) for text, at in pieces])
    assert other_words(tokens, [2], alike=False) == [0, 1, 3, 5, 7]
    assert other_words(tokens, [1], alike=False) == [2, 3, 5, 6, 7]
    assert other_words(tokens, [3], alike=False) == [0, 1, 2, 6, 7]  # "it's" is one word
    assert other_words(tokens, [2], sinks=[7], alike=False) == [0, 1, 3, 5]


def test_what_a_vocabulary_does_not_know_is_no_word() -> None:
    tokens = in_text([Token(0, text, 2 * n, 2 * n + 1, None, False) for n, text in enumerate(("a", "b", "[UNK]", "d"))])
    assert other_words(tokens, [0]) == [1, 3]
