"""Tokens are grouped to words by blanks and letters, whatever numbers a tokenizer has for them."""

from regard.explain.texts.highlights import words_of
from regard.text.tokens import Token
from regard.text.word_pieces import runs, spelling, words


def tokens(*pieces: tuple[str, int], special: bool = False) -> list[Token]:
    return [Token(n, text, start, start + len(text.replace("##", "")), None, special)
            for n, (text, start) in enumerate(pieces)]  # fmt: skip


def test_pieces_are_of_their_words() -> None:
    found = tokens(("Le", 0), ("d", 3), ("or", 4), ("t", 6), (".", 7))
    assert words(found) == [range(1), range(1, 4), range(4, 5)]
    assert runs(found) == [range(1), range(1, 5)]


def test_marks_of_pieces_and_blanks() -> None:
    found = tokens(("token", 0), ("##isation", 5), (" bank", 14))
    assert [spelling(found, word) for word in words(found)] == ["tokenisation", "bank"]


def test_blanks_that_only_the_place_tells() -> None:
    found = [Token(0, "Once", 0, 4, None, False), Token(1, "upon", 4, 9, None, False)]
    assert words(found) == [range(1), range(1, 2)]


def test_special_tokens_and_scripts_without_blanks() -> None:
    apart = [Token(0, "[CLS]", 0, 0, None, True), Token(1, "a", 0, 1, None, False)]
    assert words(apart) == [range(1), range(1, 2)]
    long = tokens(*[("水", n) for n in range(30)])
    assert len(words(long)) == 30
    assert words([]) == []
    assert runs(long) == words(long)


def test_a_blank_ends_a_word_where_a_tokenizer_calls_the_whole_text_one() -> None:
    once = [Token(0, text, at, at + len(text), 0, False) for text, at in (("Once", 0), (" upon", 4), ("on", 9))]
    assert words_of(once) == [[0], [1, 2]]
