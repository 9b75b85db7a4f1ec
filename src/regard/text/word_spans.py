"""Find where the words of a text stand.

A word is a run of letters, digits, underscores and the marks that belong to them; "whale's" has the words "whale" and
"s", as a search for whole words finds them. Scripts that put no blanks between words have a word for each character.
"""

import functools
import re
import unicodedata
from collections.abc import Iterator

from regard.text.words import script_without_blanks


def word_spans(text: str) -> Iterator[tuple[int, int]]:
    """Give each word's first character and the character behind it, in order."""
    for match in _word_pattern().finditer(text):
        yield from _parts(text, *match.span())


@functools.cache
def _word_pattern() -> re.Pattern[str]:
    """A run of what words are made of; Python's \\w lacks the marks of most scripts."""
    marks = "".join(chr(n) for n in range(0x300, 0x110000) if unicodedata.category(chr(n)).startswith("M"))
    return re.compile(f"[\\w{marks}]+")


def _parts(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Cut a run between the characters of scripts that put no blanks between words, marks with what they mark."""
    if text[start:end].isascii():
        return [(start, end)]
    edges = [start]
    for at in range(start + 1, end):
        mark = unicodedata.category(text[at]).startswith("M")
        if not mark and (script_without_blanks(text[at]) or script_without_blanks(text[at - 1])):
            edges.append(at)
    return list(zip(edges, [*edges[1:], end], strict=True))
