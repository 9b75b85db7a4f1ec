"""Where the words of a text stand."""

import re

from hypothesis import given
from hypothesis import strategies as st

from regard.text.word_spans import word_spans


def words_of(text: str) -> list[str]:
    return [text[start:end] for start, end in word_spans(text)]


@given(st.text(alphabet="aB é_1 .'\n-", max_size=60))
def test_words_are_runs_as_a_search_finds_them(text: str) -> None:
    assert list(word_spans(text)) == [match.span() for match in re.finditer(r"\w+", text)]


def test_marks_belong_to_words_and_scripts_without_blanks_have_one_a_character() -> None:
    assert words_of("cafe\u0301 हिन्दी 東京の x東") == ["cafe\u0301", "हिन्दी", "東", "京", "の", "x", "東"]
