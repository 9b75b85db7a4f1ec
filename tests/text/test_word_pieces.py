"""Tokens are grouped to words by blanks and letters, whatever numbers a tokenizer has for them."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.explain.texts.highlights import words_of
from regard.text.tokens import Token
from regard.text.word_pieces import spelling, word_text, wordlike, words
from regard.text.word_spans import word_spans
from regard.web.page import text_data


def tokens(*pieces: tuple[str, int], special: bool = False) -> list[Token]:
    return [Token(n, text, start, start + len(text.replace("##", "")), None, special)
            for n, (text, start) in enumerate(pieces)]  # fmt: skip


def test_pieces_are_of_their_words() -> None:
    found = tokens(("Le", 0), ("d", 3), ("or", 4), ("t", 6), (".", 7))
    assert words(found) == [range(1), range(1, 4), range(4, 5)]


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


def test_a_blank_ends_a_word_where_a_tokenizer_calls_the_whole_text_one() -> None:
    once = [Token(0, text, at, at + len(text), 0, False) for text, at in (("Once", 0), (" upon", 4), ("on", 9))]
    assert words(once) == [range(1), range(1, 3)]


def test_a_long_word_is_one() -> None:
    found = tokens(("Donaudampf", 0), ("schifffahrts", 10), ("gesellschaft", 22))
    assert words(found) == [range(3)]
    code = tokens(*[("4fe7", 4 * n) for n in range(20)])
    assert len(words(code)) == 20


CLUSTERS = ["a", "B", "7", "é", "e\u0301", "\u0915\u093f", "_", "水", "銀", "タ", "-", "'", ".", " ", "  ", "\n"]


DRAWN = st.tuples(
    st.lists(st.sampled_from(CLUSTERS), max_size=16), st.sets(st.integers(0, 32), max_size=6), st.booleans(),
    st.sampled_from([lambda n: None, lambda n: 0, lambda n: n]),
)  # fmt: skip


def cut(drawn: tuple[list[str], set[int], bool, Callable[[int], int | None]]) -> tuple[str, list[Token]]:
    """A text and its tokens: cut wherever words end, and anywhere else by chance; blanks in tokens or between them.

    The tokenizer's own numbers of words are of any kind: none, one for all, another for each token.
    """
    clusters, others, led, number = drawn
    text = "".join(clusters)
    spans = list(word_spans(text))
    edges = {at for span in spans for at in span} | {
        at for at in range(len(text) + 1) if not any(start < at < end for start, end in spans)
    }
    edges |= {at for at in others if at <= len(text)}
    between = [(start, end) for start, end in pairwise(sorted(edges)) if not text[start:end].isspace()]
    tokens = []
    for n, (start, end) in enumerate(between):
        blank = led and start > 0 and text[start - 1] == " "
        own = text[start - blank : end]
        tokens.append(Token(n, own, start - blank, end, number(n), False))
    return text, tokens


@given(DRAWN)
def test_words_end_where_those_of_a_store_do_however_a_tokenizer_cuts(drawn: Any) -> None:
    text, tokens = cut(drawn)
    found = [word for word in words(tokens) if wordlike(spelling(tokens, word)) or "_" in spelling(tokens, word)]
    spans = [(tokens[word[0]].start, tokens[word[-1]].end) for word in found]
    assert [(end - len(text[start:end].lstrip()), end) for start, end in spans] == list(word_spans(text))


@given(DRAWN, st.sets(st.integers(0, 20), max_size=3))
def test_all_that_speaks_of_words_means_the_same(drawn: Any, special: set[int]) -> None:
    text, tokens = cut(drawn)
    tokens = [replace(token, special=n in special) for n, token in enumerate(tokens)]
    found = [tuple(word) for word in words(tokens)]
    assert [n for word in found for n in word] == list(range(len(tokens)))
    own = [word for word in found if not tokens[word[0]].special]
    assert words_of(tokens) == [list(word) for word in own]
    page = text_data("text 1", text, tokens)["tokens"]["word"]  # type: ignore[index, call-overload]
    assert [tuple(n for n, number in enumerate(page) if number == each) for each in range(len(own))] == own
    assert [n for n, number in enumerate(page) if number is None] == [n for n in range(len(tokens)) if n in special]


@pytest.mark.parametrize(
    "pieces",
    [
        ("river", "-", "bank"),  # as WordPiece cuts
        (" river", "-bank"),  # as the vocabularies of Llama 3 and GPT-4 do
        (" ri", "ver", "-", "ba", "nk"),
    ],
)
def test_a_hyphen_ends_a_word_whatever_the_tokenizer(pieces: tuple[str, ...]) -> None:
    at, made = 0, []
    for n, piece in enumerate(pieces):
        made.append(Token(n, piece, at, at + len(piece), 0, False))
        at += len(piece)
    assert spelling(made, words(made)[0]) == "river"
    assert spelling(made, words(made)[-1]).lstrip("-") == "bank"


def test_the_bytes_of_one_character_are_together() -> None:
    parts = [Token(n, f"\\xe{n}", 2, 3, None, False) for n in range(3)]
    found = [Token(9, "ab", 0, 2, None, False), *parts, Token(9, "銀", 3, 4, None, False)]
    assert words(found) == [range(1), range(1, 4), range(4, 5)]


RIVER = "The riverbankers, they fish."
PIECES = (
    Token(101, "[CLS]", 0, 0, None, True), Token(1, "the", 0, 3, 0, False), Token(2, "river", 4, 9, 1, False),
    Token(3, "##bank", 9, 13, 1, False), Token(4, "##ers", 13, 16, 1, False), Token(5, ",", 16, 17, 2, False),
    Token(6, "they", 18, 22, 3, False), Token(7, "fish", 23, 27, 4, False), Token(8, ".", 27, 28, 5, False),
    Token(102, "[SEP]", 28, 28, None, True),
)  # fmt: skip


def test_tokens_of_one_word_belong_together() -> None:
    groups = words(PIECES)
    assert groups == [range(n, n + 1) for n in (0, 1)] + [range(2, 5)] + [range(n, n + 1) for n in range(5, 10)]
    named = [word_text(RIVER, PIECES, group) for group in groups]
    assert named == ["[CLS]", "The", "riverbankers", ",", "they", "fish", ".", "[SEP]"]
    two = (*PIECES, Token(102, "[SEP]", 28, 28, None, True))
    assert words(two)[-2:] == [range(9, 10), range(10, 11)]  # special tokens are no word together


def test_the_models_tokens_are_each_in_one_word(minilm: Any) -> None:
    trace = minilm.trace("Riverbankers don't fish, they say.")
    groups = words(trace.tokens)
    assert [n for group in groups for n in group] == list(range(len(trace.tokens)))
    assert "Riverbankers" in [word_text(trace.text, trace.tokens, group) for group in groups]
