"""The results of reading a corpus: documents, and unreadable items, each with its location."""

import base64
import datetime
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from regard.text.quoting import some_of

MOST = 200_000  # characters of a part: attention does not reach across parts
_SURROGATE = re.compile("[\ud800-\udfff]")
_TYPES = {bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object", bytes: "bytes"}
_MOST_NAMED = 20  # columns that a message names


@dataclass(frozen=True)
class Document:
    """One part of a document, whose parts put together are the document, character by character.

    id: what tells documents apart: the file's path, "path:LINE" in a table, or the value in the column of ids. All
        parts of a document have it.
    start: the character of the whole document at which the text begins; 0 unless the document was cut into parts.
    source: the file, "-" for standard input.
    line: the line or row of a table, from 1; None for a whole file.
    metadata: all other columns of the row.
    """

    id: str
    text: str
    start: int
    source: str
    line: int | None
    metadata: dict[str, str]


@dataclass(frozen=True)
class Rejected:
    """An unreadable item: the file, its line or row (None: all of the file, or no line of it), and why."""

    source: str
    line: int | None
    reason: str


@dataclass(frozen=True)
class Columns:
    """The columns of a table that hold the text and, where documents have ids of their own, the id."""

    text: str = "text"
    id: str | None = None


DEFAULT = Columns()


def to_document(source: str, line: int, cells: Mapping[str, object], columns: Columns) -> Document | Rejected:
    """Make a document of a row, whole; or say why it is none.

    source, line: where it stands. cells: the row's values by their columns, None if there is none. Columns that are
    neither text nor id become metadata: strings as they stand, dates and times in ISO format, bytes in base64, all else
    in JSON; None is left out.
    """
    needed = [columns.text] if columns.id is None else [columns.text, columns.id]
    if said := missing_document_column(needed, cells):
        return Rejected(source, line, said)
    text = cells[columns.text]
    name = f"{source}:{line}" if columns.id is None else cells[columns.id]
    if not isinstance(text, str):
        return Rejected(source, line, f"column {columns.text!r} is {_document_cell_type(text)}, expected a string")
    if isinstance(name, int) and not isinstance(name, bool):
        name = str(name)
    if not isinstance(name, str) or not name.strip():
        given = "blank" if isinstance(name, str) else _document_cell_type(name)
        return Rejected(source, line, f"column {columns.id!r} is {given}, expected a string or a whole number")
    rest = {column: as_string(value) for column, value in cells.items() if column not in needed and value is not None}
    for column, string in ((columns.text, text), (columns.id, name), *rest.items(), *((each, each) for each in rest)):
        if said := lone_surrogate_in_document(string):
            return Rejected(source, line, f"column {column!r} holds {said}")
    if "\0" in text:
        return Rejected(
            source, line, f"column {columns.text!r} is binary: character U+0000 at place {text.find(chr(0))}"
        )
    if not text or text.isspace():
        return Rejected(source, line, f"column {columns.text!r} is {'blank' if text else 'empty'}")
    return Document(name, text, 0, source, line, rest)


def missing_document_column(needed: Iterable[str], there: Iterable[str]) -> str:
    """Report which column is missing and which there are; nothing if none is."""
    there = list(there)
    missing = [name for name in needed if name not in there]
    if not missing:
        return ""
    named = some_of([repr(name[:60]) for name in there], _MOST_NAMED)
    return f"no column {missing[0]!r}: there are {named}" if there else f"no column {missing[0]!r}, nor any"


def repeated_document_column(names: Iterable[str]) -> str:
    """Report which column is there twice, so that one would hide the other; nothing if none is."""
    return next((f"column {name[:60]!r} is there twice" for name, count in Counter(names).items() if count > 1), "")


def lone_surrogate_in_document(text: str) -> str:
    """Name the first half of a surrogate pair without the other, which no UTF-8 can hold; nothing if none is."""
    found = None if text.isascii() else _SURROGATE.search(text)
    return f"a lone surrogate, U+{ord(found[0]):04X} at place {found.start()}" if found else ""


def as_string(value: object) -> str:
    """Write a value of a table's cell, or one inside a list or an object, as a string."""
    if isinstance(value, (bool, int, float, list, dict, tuple)):
        return json.dumps(value, ensure_ascii=False, default=as_string)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.isoformat() if isinstance(value, (datetime.date, datetime.time)) else str(value)


def _document_cell_type(value: object) -> str:
    return "null" if value is None else _TYPES.get(type(value), type(value).__name__)
