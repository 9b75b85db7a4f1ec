"""Find the text that a store's model read an occurrence in, so that it can be read again as a text of its own.

Texts longer than the model takes were read in windows of so many tokens, which begin and end anywhere. A text whose
tokens are a window's is the best there is; where the tokenizer makes others of it, as of half a word at its edge, the
text is cut to whole words, and to as many as the window has room for.
"""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from regard.corpus.asking.occurrences import Occurrences
from regard.corpus.settings import Settings
from regard.errors import RegardError

if TYPE_CHECKING:  # with which torch would be imported, for every question
    from regard.models.model import Model

BLANK = re.compile(r"\s+")


@dataclass(frozen=True)
class Passage:
    """A text with an occurrence at its characters [start, end). document: which one it is of, from character `first`.

    same: whether it has the very tokens that the store's window had.
    """

    text: str
    start: int
    end: int
    document: str
    first: int
    same: bool


def read_passage(model: "Model", found: Occurrences) -> Passage:
    """Find the window that an occurrence was read in. model: the one that the store was made with."""
    from regard.corpus.writing.cut_windows import WindowSize, cut_texts, window_tokens
    from regard.text.tokens import encode_all

    if len(found) != 1:
        raise RegardError(f"passage: given {len(found)} occurrences, needs one")
    shard, row, number = found.shard[0], int(found.row[0]), int(found.part[0])
    part = found.texts()[shard, number]
    start, end = int(found.start[0]) - part.start, int(found.end[0]) - part.start
    settings = found.tables.manifest.settings
    size = WindowSize(
        *window_tokens(model, Settings(window=settings.get("window"), stride=settings.get("stride"))), False
    )
    [cut] = cut_texts(model, [part.text], size)
    window = int(found.tables.rows_at({shard: [row]}, ["window"]).numbers("window")[0])
    if cut is None or not 0 <= window < len(cut.windows):
        raise RegardError(f"shard {shard}: row {row} is of window {window}, which its text lacks: other settings")

    def ids(first: int, last: int) -> list[int]:
        return encode_all(model.tokenizer, [part.text[first:last]])[0].ids

    def passage(first: int, last: int, same: bool) -> Passage:
        there = (part.text[first:last], start - first, end - first, found.document[0], part.start + first, same)
        return Passage(*there)

    if len(cut.windows) == 1:
        return passage(0, len(part.text), True)
    span = slice(*cut.spans[window])
    first, last = int(cut.starts[span].min()), int(cut.ends[span].max())
    if not first <= start < end <= last:
        raise RegardError(f"shard {shard}: row {row} lies outside its window {window}: other settings, or another text")
    if ids(first, last) == cut.windows[window].ids:
        return passage(first, last, True)
    if first > 0 and not part.text[first - 1].isspace():
        first = _passage_word_begin(part.text, first, start)
    if last < len(part.text) and not part.text[last].isspace():
        last = _passage_word_end(part.text, end, last)
    while len(ids(first, last)) > size.window:  # its first word has other tokens without the one before it
        before = (first, last)
        if start - first > last - end:
            first = _passage_word_begin(part.text, first, start)
        else:
            last = _passage_word_end(part.text, end, last)
        if (first, last) == before:
            raise RegardError(f"passage: no text around the word has {size.window} tokens or fewer")
    return passage(first, last, False)


def _passage_word_begin(text: str, first: int, last: int) -> int:
    """Where the next word begins; where there is no blank before `last`, there."""
    found = BLANK.search(text, first, last)
    return found.end() if found else last


def _passage_word_end(text: str, first: int, last: int) -> int:
    """Where the word before the last one ends; where there is no blank behind `first`, there."""
    blanks = list(BLANK.finditer(text, first, last))
    return blanks[-1].start() if blanks else first
