"""Parts put together are the text, whatever blocks it came in; and no cut falls where a reader sees one character."""

import itertools
import time
import tracemalloc

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from regard.corpus.reading.parts import cut_document_into_parts

PIECES = [
    "a",
    "bc",
    " ",
    ".",
    "! ",
    "\n",
    "\r\n",
    "\n\n",
    "\r",
    "\n \t\n",
    "é",
    "e\u0301",
    "👩‍👩‍👧",
    "👍🏽",
    "🇫🇷",
    "क्ष",
    "한",
    "한",
    "。",
    "）",
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=120).map("".join)


def blocks(text: str, size: int) -> list[str]:
    return [text[n : n + size] for n in range(0, len(text), size)]


@given(TEXTS, st.integers(1, 40), st.integers(1, 50))
def test_parts_are_the_text(text: str, most: int, size: int) -> None:
    parts = list(cut_document_into_parts(blocks(text, size), most))
    assert "".join(part for _, part in parts) == text
    starts = [0, *itertools.accumulate(len(part) for _, part in parts)]
    assert [start for start, _ in parts] == starts[:-1]
    assert all(0 < len(part) <= most for _, part in parts)
    assert all(len(part) > most // 2 for _, part in parts[:-1])
    assert parts == list(cut_document_into_parts([text], most))


@given(TEXTS, st.integers(40, 60))
def test_what_a_reader_sees_as_one_character_is_not_cut(text: str, most: int) -> None:
    edges = {0, *itertools.accumulate(map(len, regex.findall(r"\X", text)))}
    assert {start for start, _ in cut_document_into_parts([text], most)} <= edges


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("one two\n\nthree. four\nfive six seven", "one two\n\n"),
        ("one two\r\n \t\r\nthree. four\nfive six", "one two\r\n \t\r\n"),
        ("one two\nthree. four five six seven", "one two\n"),
        ("one two\rthree. four five six seven", "one two\r"),
        ("one two. three four five six seven", "one two. "),
        ('one "two." three four five six', 'one "two." '),
        ("一二三四五六七。八九十一二三四五六七八", "一二三四五六七。"),
        ("one two three four five six seven", "one two three "),
        ("abcdefghijklmnopqrstuvwxyz", "abcdefghijklmno"),
        ("one\n\ntwo three four five six", "one\n\ntwo three "),  # no blank line in its second half
        ("abcdefghijklmn\r\nop", "abcdefghijklmn"),
        ("a" * 14 + "e\u0301" + "b" * 9, "a" * 14),
        ("🇫🇷" * 20, "🇫🇷" * 7),
    ],
)
def test_where_the_first_part_ends(text: str, first: str) -> None:
    assert next(cut_document_into_parts([text], 15)) == (0, first)


def test_what_has_no_place_to_be_cut_is_cut_all_the_same() -> None:
    assert [len(part) for _, part in cut_document_into_parts(["a" + "\u0301" * 99], 10)] == [10] * 10


@pytest.mark.parametrize("piece", [".", ".)", "\r", "\n ", " ", "\u0301", "🇫", "a", "! "])
def test_time_grows_with_the_text_alone(piece: str) -> None:
    length = 100_000 // len(piece) * len(piece)
    begun = time.process_time()
    assert (
        sum(
            len(part)
            for _, part in cut_document_into_parts(itertools.repeat(piece * (100_000 // len(piece)), 10), 200_000)
        )
        == 10 * length
    )
    assert time.process_time() - begun < 5


def test_no_more_than_a_part_and_a_block_is_held() -> None:
    tracemalloc.start()
    assert (
        sum(len(part) for _, part in cut_document_into_parts(itertools.repeat("one two " * 10_000, 30), 200_000))
        == 2_400_000
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 << 20
