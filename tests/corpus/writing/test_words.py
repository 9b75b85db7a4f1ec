"""Words of a text and the tokens that they are made of."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.corpus.settings import Where
from regard.corpus.writing.words import check_lemma_language, find_lemma, find_tokens, find_words
from regard.errors import RegardError


def by_runs(text: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each character but blanks as a token of its own, numbered from 1."""
    places = np.array([n for n, c in enumerate(text) if not c.isspace()], dtype=np.int64)
    return places, places + 1, np.arange(1, len(places) + 1)


def words_of(text: str, where: Where | None = None, language: str | None = None) -> list[str]:
    return find_words(text, *by_runs(text), where, language)[0].words


def test_a_word_is_what_a_search_for_whole_words_finds() -> None:
    text = "The whale's ship: a Sperm-whale, WHALE_1 and whales!"
    assert words_of(text) == ["the", "whale", "s", "ship", "a", "sperm", "whale", "whale_1", "and", "whales"]
    assert len(words_of(text, Where("word", ("whale",)))) == len(re.findall(r"\bwhale\b", text, re.I)) == 2


def test_marks_belong_to_words_and_scripts_without_blanks_have_one_a_character() -> None:
    assert words_of("cafe\u0301 हिन्दी 東京") == ["café", "हिन्दी", "東", "京"]


def test_tokens_of_words() -> None:
    starts, ends, numbers = np.array([0, 3, 8]), np.array([3, 7, 12]), np.array([1, 2, 3])
    units, missed = find_words("fishing bank  🤗x", starts, ends, numbers, None, None)
    assert (units.first.tolist(), units.count.tolist()) == ([1, 3], [2, 1])  # fish + ing, bank
    assert units.words == ["fishing", "bank"]
    assert missed == [(15, 16)]  # the x that no token stands for


def test_lemmas() -> None:
    assert words_of("She ran, they run; banks", Where("lemma", ("run",)), "en") == ["ran", "run"]
    assert find_lemma("Banks", "en") == "bank"
    check_lemma_language("de")
    with pytest.raises(RegardError, match="simplemma knows no language 'xx'"):
        check_lemma_language("xx")


def test_tokens_as_units() -> None:
    units = find_tokens("A Bank", np.array([0, 1]), np.array([1, 6]), np.array([1, 2]))
    assert (units.words, units.first.tolist(), units.count.tolist()) == (["a", "bank"], [1, 2], [1, 1])
    assert len(units.take(np.array([1]))) == 1


@given(st.text(alphabet="aB é_1 .'\n-", max_size=60))
def test_spans_are_the_words(text: str) -> None:
    units, missed = find_words(text, *by_runs(text), None, None)
    assert missed == []
    assert [text[a:b] for a, b in zip(units.start, units.end, strict=True)] == re.findall(r"\w+", text)
