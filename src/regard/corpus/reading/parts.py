"""Cut a long text into parts where a reader would pause: after a paragraph, a line, a sentence, a word.

Where the cuts fall depends on the text alone, not on the blocks in which it is read; and no more than a part and a
block is held. Parts put together are the text, character by character.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator

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
_JOINER = "\u200d"
_CONTINUING = {"\u200c", _JOINER, *map(chr, range(0x1F3FB, 0x1F400)), *map(chr, range(0xE0020, 0xE0080))}
_FLAGS = "".join(map(chr, range(0x1F1E6, 0x1F200)))
_VIRAMA = 9  # the combining class of what joins the consonants of Indic scripts


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
    """Tell whether a place lies between two characters as a reader sees them, no accent or emoji cut in two."""
    before, after = text[place - 1], text[place]
    if before == "\r" and after == "\n":
        return False
    if before in "\r\n":
        return True
    if after in _CONTINUING or before == _JOINER or unicodedata.category(after).startswith("M"):
        return False
    if unicodedata.combining(before) == _VIRAMA or (_is_jamo(after) and (_is_jamo(before) or "가" <= before <= "힣")):
        return False
    if before in _FLAGS and after in _FLAGS:  # flags are pairs of letters
        part = text[first:place]
        return (len(part) - len(part.rstrip(_FLAGS))) % 2 == 0
    return True


def _is_jamo(character: str) -> bool:
    return "\u1100" <= character <= "\u11ff" or "\ua960" <= character <= "\ua97f" or "\ud7b0" <= character <= "\ud7ff"
