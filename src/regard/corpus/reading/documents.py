"""Read the documents of a corpus, one after another, in bounded memory; what cannot be read is told, with its place."""

import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import regex

from regard.corpus.reading.document import DEFAULT, MOST
from regard.corpus.reading.document import Columns as Columns
from regard.corpus.reading.document import Document as Document
from regard.corpus.reading.document import Rejected as Rejected
from regard.corpus.reading.find_files import STANDARD_INPUT, find_files_and_rejected
from regard.corpus.reading.find_files import find_files as find_files
from regard.corpus.reading.streams import BLOCK, FAULTS, Stream, kind_of, opened, reason, text_blocks
from regard.corpus.reading.tables import read_csv, read_jsonl, read_parquet
from regard.errors import RegardError

_IN_MEMORY = 8 << 20  # bytes of standard input; what is longer is kept in a temporary file
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


def read_documents(
    paths: Sequence[str], columns: Columns = DEFAULT, *, most: int = MOST, folder: Path = Path(),
    follow_links: bool = False,
) -> Iterator[Document | Rejected]:  # fmt: skip
    """Read files, folders, patterns and standard input ("-", one text): documents, and what could not be read.

    columns: of tables, those of text and id. folder: which relative paths are in; what is there is named as from there.
    follow_links: whether links in folders are read too.

    The same files give the same sequence. A document of more than `most` characters comes in parts, one after another.
    Of documents with the same id the first is read and the others are told.
    """
    return _read_all(find_files_and_rejected(paths, folder, follow_links=follow_links), columns, most, folder)


def _read_all(found: list[Path | Rejected], columns: Columns, most: int, folder: Path) -> Iterator[Document | Rejected]:
    """Read what was found, and tell of ids that are there twice."""
    # Paths, and lines of them, are different without looking: each file is found once.
    ids: dict[str, tuple[Path, int | None]] = {}  # of each the first place: file and line
    for each in found:
        if isinstance(each, Rejected):
            yield each
            continue
        first = None
        for item in _read_file(each, columns, most, folder):
            if isinstance(item, Rejected):
                yield item
                continue
            if columns.id is not None and item.start == 0:
                first = ids.get(item.id)
                ids.setdefault(item.id, (each, item.line))
                if first is not None:
                    place = f"{first[0].as_posix()!r}" + ("" if first[1] is None else f", line {first[1]:,}")
                    yield Rejected(item.source, item.line, f"the id {item.id[:80]!r} is there already: {place}")
            if first is not None:  # nor are its other parts read
                continue
            if item.line is None:  # cut as it was read
                yield item
            else:
                yield from (
                    replace(item, start=start, text=text) for start, text in cut_document_into_parts([item.text], most)
                )


def _read_file(path: Path, columns: Columns, most: int, folder: Path) -> Iterator[Document | Rejected]:
    """Read a file: a text in parts, the rows of a table whole."""
    source, kind, at = path.as_posix(), (kind_of(path) or ("", ""))[0], folder / path
    try:
        if path == STANDARD_INPUT:
            with copied_standard_input() as again:
                yield from read_text_document(source, again, most)
        elif kind == ".txt":
            yield from read_text_document(source, partial(opened, at), most)
        elif kind == ".parquet":
            yield from read_parquet(source, at, columns)
        else:
            with opened(at) as stream:
                yield from (read_jsonl if kind == ".jsonl" else read_csv)(source, stream, columns)
    except FAULTS as error:
        yield Rejected(source, None, reason(error))


def read_text_document(
    source: str, opened: Callable[[], AbstractContextManager[Stream]], most: int
) -> Iterator[Document | Rejected]:
    """Read a text in parts of at most `most` characters; it is read twice, so that no part of a bad one is given.

    Characters are counted and kept as they stand, with the ends of lines as they are. A byte order mark at the start is
    the encoding's, and no character of the text.
    """
    try:
        with opened() as stream:
            length, blank = 0, True
            for block in text_blocks(stream):
                length += len(block)
                blank = blank and block.isspace()
        if blank:
            yield Rejected(source, None, "blank" if length else "empty")
            return
        with opened() as stream:
            for start, text in cut_document_into_parts(text_blocks(stream), most):
                yield Document(source, text, start, source, None, {})
    except FAULTS as error:
        yield Rejected(source, None, reason(error))


@contextmanager
def copied_standard_input() -> Iterator[Callable[[], AbstractContextManager[Stream]]]:
    """Copy standard input, so that it can be opened twice."""
    if sys.stdin is None:
        raise RegardError("there is no standard input")
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as copy:
        while block := sys.stdin.buffer.read(BLOCK):
            copy.write(block)

        @contextmanager
        def rewound() -> Iterator[Stream]:
            copy.seek(0)
            yield copy

        yield rewound


def cut_document_into_parts(blocks: Iterable[str], most: int) -> Iterator[tuple[int, str]]:
    """Cut a text, which comes in blocks, into parts of at most `most` characters; each with the character it begins at.

    Where the cuts fall depends on the text alone, not on the blocks. No more than a part and a block is held.
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
