"""What reading a corpus gives: documents, and what could not be read, each with its place."""

from dataclasses import dataclass

MOST = 200_000  # characters of a part: attention does not reach across parts


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
    """What could not be read: the file, its line or row (None: all of the file, or no line of it), and why."""

    source: str
    line: int | None
    reason: str


@dataclass(frozen=True)
class Columns:
    """The columns of a table that hold the text and, where documents have ids of their own, the id."""

    text: str = "text"
    id: str | None = None


DEFAULT = Columns()
