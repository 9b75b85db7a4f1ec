"""Words found in a text by their characters, with the tokens that spell them."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import RegardError
from regard.text.tokens import Token
from regard.text.words import find_spans, find_word, which_text, word_in_neither_text, word_spans, words_of


@pytest.mark.parametrize(
    ("text", "word", "spans"),
    [
        ("a bank, the Bank", "bank", [(2, 6), (12, 16)]),  # any case
        ("a bank, the Bank", "Bank", [(12, 16)]),  # its own spelling
        ("a bank", "Bank", [(2, 6)]),  # any case where its own does not occur
        ("banks bank embank", "bank", [(6, 10)]),  # letters before or behind make another word
        ("bank_note bank", "bank", [(10, 14)]),
        ("caf\u00e9 cafe\u0301", "cafe\u0301", [(0, 4), (5, 10)]),  # composed and decomposed
        ("cafe\u0301", "cafe", None),
        ("Stra\u00dfe", "strasse", [(0, 6)]),
        ("河岸的銀行", "銀行", [(3, 5)]),  # no blanks between words
        ("a river bank", "river bank", [(2, 12)]),
        ("👩\u200d🚀 went", "👩", None),  # a joined sign is one
        ("I don’t, don't", "don't", [(2, 7), (9, 14)]),  # typographic signs
        ("I don't", "don’t", [(2, 7)]),
        ("Bob’s e‑mail", "e-mail", [(6, 12)]),
        ("Bob's e-mail", "Bob", [(0, 3)]),
        ("צה״ל נע", 'צה"ל', [(0, 4)]),
        ("a river \xa0\n bank", "river  bank", [(2, 15)]),  # any blanks
        ("co\xadoperate", "cooperate", [(0, 10)]),  # a soft hyphen is not seen, and ends no word
        ("co\xadoperate", "operate", None),
        ("می\u200cخواهم", "خواهم", None),  # nor does a joiner that joins no letters
        ("x\u200f y", "x", [(0, 2)]),
        (unicodedata.normalize("NFD", "강둑"), "강둑", [(0, 6)]),
        ("カメラ", "メ", [(1, 2)]),
        ("ค้ำ", "ค้", None),  # nor a vowel a character of its own
        ("", "a", None),
    ],
)
def test_spans(text: str, word: str, spans: list[tuple[int, int]] | None) -> None:
    if spans is None:
        with pytest.raises(RegardError, match="is not in the text"):
            find_spans(text, word)
    else:
        assert find_spans(text, word) == spans


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("bunk", "word 'bunk' is not in the text 'A river bank': the nearest are 'bank'"),
        ("xyz", "its words are 'A', 'river', 'bank'"),
        (" ", "word is empty: give a word of the text"),
    ],
)
def test_what_is_refused(word: str, says: str) -> None:
    with pytest.raises(RegardError, match=says):
        find_spans("A river bank", word)


def test_tokens_of_a_word_are_those_that_share_a_character() -> None:
    text = "embankment"
    tokens = [Token(n, text[a:b], a, b, 0, False) for n, (a, b) in enumerate([(0, 2), (2, 6), (6, 10)])]
    (found,) = find_word(text, tokens, "embankment")
    assert (found.start, found.end, found.tokens) == (0, 10, (0, 1, 2))
    with pytest.raises(RegardError, match="word 'embankment' reached no token"):
        find_word(text, [Token(0, "", 0, 0, None, True)], "embankment")


def test_names_in_messages() -> None:
    assert (which_text(2, 3), which_text(1, 1)) == (" 2", "")
    assert str(word_in_neither_text("a", "b", " 2")) == "text 2: a; target 2: b"
    assert words_of("It's a well-known bank, a bank") == ["It's", "a", "well", "known", "bank"]


@given(st.text(alphabet="aBz é_1²\u0301\xad\u200d\u200f.'’:-🇩👩水คำタ한ᄒ\u1161", max_size=12))
def test_every_word_that_is_suggested_is_found(text: str) -> None:
    for word in words_of(text):
        assert word in [text[start:end] for start, end in find_spans(text, word)]


@given(st.text(alphabet="aB é_1 .'\n-", max_size=60))
def test_words_of_an_index_are_runs_as_a_search_finds_them(text: str) -> None:
    assert list(word_spans(text)) == [match.span() for match in re.finditer(r"\w+", text)]


def test_marks_belong_to_words_and_scripts_without_blanks_have_a_word_for_each_character() -> None:
    text = "cafe\u0301 हिन्दी 東京の x東 می\u200cخواهم don’t タク"
    assert [text[start:end] for start, end in word_spans(text)] == [
        "cafe\u0301", "हिन्दी", "東", "京", "の", "x", "東", "می\u200cخواهم", "don", "t", "タ", "ク",
    ]  # fmt: skip
