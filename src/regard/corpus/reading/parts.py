"""Cut a long text into parts where a reader would pause: after a paragraph, a line, a sentence, a word.

Where the cuts fall depends on the text alone, not on the blocks in which it is read; and no more than a part and a
block is held. Parts put together are the text, character by character.
"""

import re
from collections.abc import Iterable, Iterator

import regex

_END = r"(?>\r\n|[\n\r\x85\u2028\u2029])"
# From the best place to cut to the worst. Each takes time in proportion to the text, whatever stands in it.
_PAUSES = tuple(
    map(
        re.compile,
        (
            rf"{_END}(?:[^\S\n\r\x85\u2028\u2029]*{_END})+",  # a blank line
            _END,
            r"[.!?…][\"'”’»)\]]*+\s|[。！？][”’」』）]*+",
            r"\s",
        ),
    )
)
_CHARACTER = regex.compile(r"\X")  # as a reader sees it
_LONGEST = 40  # code points before a place that decide whether it is inside such a character


def cut_document_into_parts(blocks: Iterable[str], most: int) -> Iterator[tuple[int, str]]:
    """Cut a text, which comes in blocks, into parts of at most `most` characters; each with the character it begins at.

    A part that is cut short ends in its second half at the last blank line, else line, sentence or word, else between
    two characters that a reader sees as two.
    """
    held, at, start = "", 0, 0
    for block in blocks:
        held, at = held[at:] + block, 0
        while len(held) - at > most:
            end = _end_of_document_part(held, at, at + most)
            yield start, held[at:end]
            start, at = start + end - at, end
    if at < len(held):
        yield start, held[at:]


def _end_of_document_part(text: str, first: int, last: int) -> int:
    """Find where the part that begins at `first` ends: in its second half, at `last` at the latest."""
    middle = first + (last - first) // 2
    for pause in _PAUSES:
        for end in reversed([match.end() for match in pause.finditer(text, middle, last)]):
            if _between_whole_characters(text, first, end):
                return end
    return next((end for end in range(last, middle, -1) if _between_whole_characters(text, first, end)), last)


def _between_whole_characters(text: str, first: int, place: int) -> bool:
    """Tell whether a place is between two characters as a reader sees them: it cuts no accent or emoji in two."""
    start = max(first, place - _LONGEST)
    return any(match.end() == place for match in _CHARACTER.finditer(text, start, place + 1))
