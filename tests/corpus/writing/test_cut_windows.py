"""Windows of long texts, and the window that each word is taken from."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.corpus.settings import Settings, Where
from regard.corpus.writing.cut_windows import (
    check_lemma_language,
    cut_texts,
    find_lemma,
    find_tokens,
    find_words,
    window_of_each_word,
    window_size,
)
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


@given(st.integers(2, 40), st.integers(1, 90), st.integers(1, 3), st.booleans(), st.data())
def test_owners_are_the_windows_with_most_around(room: int, length: int, run: int, causal: bool, data: Any) -> None:
    stride = data.draw(st.integers(1, max(1, room - 1)))
    starts = list(range(0, max(1, length - room + stride), stride))
    starts[-1] = max(0, length - room)
    spans = [(start, min(start + room, length)) for start in starts]
    first = np.arange(max(0, length - run + 1))
    found = window_of_each_word(first, first + run - 1, spans, causal)
    for token, chosen in zip(first.tolist(), found.tolist(), strict=True):
        last, margins = token + run - 1, []
        for number, (start, stop) in enumerate(spans):
            left = token - start if number else 1 << 40
            right = stop - 1 - last if number < len(spans) - 1 and not causal else 1 << 40
            margins.append(min(left, right) if start <= token and last < stop else -1)
        assert chosen == (-1 if max(margins) < 0 else margins.index(max(margins)))


def test_cut_as_the_trace_in_windows_is(minilm: Any) -> None:
    text = "The old man fished in the sunny river near the bank. " * 9
    size = window_size(minilm, Settings(window=40, stride=19))
    assert (size.window, size.stride, size.causal) == (40, 19, False)
    (cut,) = cut_texts(minilm, [text], size)
    assert cut is not None
    read = minilm.trace(text, window=40, stride=19)
    assert tuple(cut.spans) == read.spans
    assert [window.ids for window in cut.windows] == [[t.id for t in window.tokens] for window in read.windows]
    every = np.arange(1, len(cut.ids) - 1)
    assert window_of_each_word(every, every, cut.spans, False).tolist() == list(read.source[1:-1])


def test_sizes_that_are_not_given(minilm: Any) -> None:
    size = window_size(minilm, Settings())
    assert (size.window, size.stride) == (512, 383)  # of 510 tokens of the text three quarters


def test_a_text_of_which_nothing_is_left(minilm: Any) -> None:
    size = window_size(minilm, Settings())
    cuts = cut_texts(minilm, ["A bank.", "\u200b\u200b", "Another."], size)
    assert [cut is None for cut in cuts] == [False, True, False]
