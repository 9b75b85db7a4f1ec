"""Convert table rows to documents, and report unreadable inputs with their file and line."""

import base64
import datetime
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from regard.text.quoting import some_of

MOST = 200_000  # maximum number of characters in a part; there is no attention between parts
_SURROGATE = re.compile("[\ud800-\udfff]")
_TYPES = {bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object", bytes: "bytes"}
_MOST_NAMED = 20  # maximum number of columns that a message names


@dataclass(frozen=True)
class Document:
    """A document, or a part of a long document. The concatenated parts are the whole document.

    id: the document's name, which is the file's path, "path:LINE" in a table, or the value of the id column. All parts
        of a document share it.
    start: the position of the text's first character in the whole document, 0 unless the document was cut into parts.
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
    """An unreadable input: its file, the line or row (None for the whole file), and the reason."""

    source: str
    line: int | None
    reason: str


@dataclass(frozen=True)
class Columns:
    """The names of the table columns with the text and, if there is one, the document's id."""

    text: str = "text"
    id: str | None = None


DEFAULT = Columns()


def to_document(source: str, line: int, cells: Mapping[str, object], columns: Columns) -> Document | Rejected:
    """Convert a table row to a document, or return the reason why that isn't possible.

    source, line: the row's file and line. cells: its values by column, None for a missing value. Columns other than
    text and id become metadata: strings unchanged, dates and times in ISO format, bytes in base64, everything else in
    JSON. None is left out.
    """
    needed = [columns.text] if columns.id is None else [columns.text, columns.id]
    if fault := missing_document_column(needed, cells):
        return Rejected(source, line, fault)
    text = cells[columns.text]
    name = f"{source}:{line}" if columns.id is None else cells[columns.id]
    if not isinstance(text, str):
        return Rejected(source, line, f"column {columns.text!r} is {_document_cell_type(text)}, expected a string")
    if isinstance(name, int) and not isinstance(name, bool):
        name = str(name)
    if not isinstance(name, str) or not name.strip():
        kind = "blank" if isinstance(name, str) else _document_cell_type(name)
        return Rejected(source, line, f"column {columns.id!r} is {kind}, expected a string or a whole number")
    extra = {column: as_string(value) for column, value in cells.items() if column not in needed and value is not None}
    for column, string in ((columns.text, text), (columns.id, name), *extra.items(), *((key, key) for key in extra)):
        if fault := lone_surrogate_in_document(string):
            return Rejected(source, line, f"column {column!r} holds {fault}")
    if "\0" in text:
        return Rejected(
            source, line, f"column {columns.text!r} is binary: character U+0000 at position {text.find(chr(0))}"
        )
    if not text or text.isspace():
        return Rejected(source, line, f"column {columns.text!r} is {'blank' if text else 'empty'}")
    return Document(name, text, 0, source, line, extra)


def missing_document_column(needed: Iterable[str], present: Iterable[str]) -> str:
    """Return a message that names the first missing column, or an empty string if none is missing."""
    present = list(present)
    missing = [name for name in needed if name not in present]
    if not missing:
        return ""
    names = some_of([repr(name[:60]) for name in present], _MOST_NAMED)
    return f"no column {missing[0]!r}: there are {names}" if present else f"no column {missing[0]!r}, nor any"


def repeated_document_column(names: Iterable[str]) -> str:
    """Return a message that names a column that occurs twice, or an empty string if none does."""
    return next((f"column {name[:60]!r} is there twice" for name, count in Counter(names).items() if count > 1), "")


def lone_surrogate_in_document(text: str) -> str:
    """Return a message about the first lone surrogate, which UTF-8 can't encode, or an empty string."""
    surrogate = None if text.isascii() else _SURROGATE.search(text)
    return f"a lone surrogate, U+{ord(surrogate[0]):04X} at position {surrogate.start()}" if surrogate else ""


def as_string(value: object) -> str:
    """Convert a table cell, or a value inside a list or object, to a string."""
    if isinstance(value, (bool, int, float, list, dict, tuple)):
        return json.dumps(value, ensure_ascii=False, default=as_string)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.isoformat() if isinstance(value, (datetime.date, datetime.time)) else str(value)


def _document_cell_type(value: object) -> str:
    """Return the type of a table cell in words, for an error message."""
    return "null" if value is None else _TYPES.get(type(value), type(value).__name__)
