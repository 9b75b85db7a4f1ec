"""Open corpus files as uncompressed bytes, and read them as text or table rows in bounded memory.

Rows are read from .jsonl, .csv and .parquet. If a row can't be read, the rows after it still are.
"""

import codecs
import csv
import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from regard.corpus.reading.document import (
    Columns,
    Document,
    Rejected,
    missing_document_column,
    repeated_document_column,
    to_document,
)
from regard.errors import RegardError
from regard.files import check_regular, parse_json
from regard.lazy import import_from_corpus_extra

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.parquet


BLOCK = 1 << 18  # bytes that are read at once
UNPACKED = 1 << 13  # bytes uncompressed at once; a truncated file loses at most this many
LONGEST_LINE = 128 << 20  # maximum number of bytes in a line; some text needs eight times as much memory
FAULTS = (OSError, RegardError)  # errors that reading a faulty file raises

KINDS = (".txt", ".jsonl", ".csv", ".parquet")
COMPRESSED = {".gz": "gzip", ".zst": "zstd"}  # as pyarrow calls them
NEEDED = "needs files .txt, .jsonl or .csv (each also .gz or .zst), or .parquet"


@runtime_checkable
class Stream(Protocol):
    """A readable stream of bytes: a file, or its uncompressed content."""

    def read(self, size: int = -1, /) -> bytes:
        """Read at most `size` bytes, and none at the end."""
        ...

    def readline(self, size: int = -1, /) -> bytes:
        """Read to the end of a line, but at most `size` bytes."""
        ...


def kind_of(path: Path) -> tuple[str, str] | None:
    """Return a file's format and compression by its name, such as (".csv", ".gz") or (".csv", ""); None if unknown."""
    endings = [ending.lower() for ending in path.suffixes[-2:]]
    if endings and endings[-1] in KINDS:
        return endings[-1], ""
    if len(endings) == 2 and endings[1] in COMPRESSED and endings[0] in KINDS and endings[0] != ".parquet":
        return endings[0], endings[1]
    return None


@contextmanager
def opened(path: Path) -> Iterator[Stream]:
    """Open a regular file as a stream, and uncompress it if its name ends in .gz or .zst."""
    check_regular(path)
    with path.open("rb") as file:
        kind = kind_of(path)
        compression = kind[1] if kind else ""
        if not compression:
            yield file
            return
        packed = import_from_corpus_extra("pyarrow").CompressedInputStream(file, COMPRESSED[compression])
        with io.BufferedReader(packed, UNPACKED) as inside:
            yield inside


def reason(error: Exception) -> str:
    """Return a one-line reason why an input could not be read, from one of the errors in FAULTS."""
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read: {error.strerror}"
    message = str(error).splitlines()[0] if str(error) else type(error).__name__
    return message if isinstance(error, RegardError) else f"cannot be read: {message}"


def lines(stream: Stream, longest: int | None = None) -> Iterator[bytes | None]:
    """Yield lines with their line ends, and None for a line of more than `longest` bytes (default: LONGEST_LINE)."""
    limit = LONGEST_LINE if longest is None else longest
    while line := stream.readline(limit + 1):
        if len(line) <= limit or line.endswith(b"\n"):
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(BLOCK)
        yield None


def text_blocks(stream: Stream) -> Iterator[str]:
    """Decode a UTF-8 stream. Yield its text in blocks, unchanged except that a byte order mark is removed."""
    decoder, offset, started = codecs.getincrementaldecoder("utf-8")(), 0, False
    while True:
        block = stream.read(BLOCK)
        if (nul := block.find(b"\0")) >= 0 and not _document_begins_as_utf16(block, offset):
            raise RegardError(f"binary: byte 0x00 at position {offset + nul:,}")
        undecoded = len(decoder.getstate()[0])
        try:
            text = decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            raise RegardError(no_utf8(error, offset - undecoded)) from None
        if text and not started:
            text, started = text.removeprefix("\ufeff"), True
        if text:
            yield text
        if not block:
            return
        offset += len(block)


def no_utf8(error: UnicodeDecodeError, before: int = 0) -> str:
    """Return a message about the first byte that isn't UTF-8. before: number of bytes before this block."""
    byte, offset = error.object[error.start], before + error.start
    hint = "; it looks like UTF-16, expected UTF-8" if _document_begins_as_utf16(error.object, before) else ""
    return f"invalid UTF-8: byte {byte:#04x} at position {offset:,}{hint}"


def _document_begins_as_utf16(block: bytes, offset: int) -> bool:
    return offset == 0 and block[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


LONGEST_CELL = 32 << 20  # maximum number of characters in a .csv cell; Python's reader needs 4 to 8 bytes for each
_ESCAPED = re.compile("[\udc80-\udcff]")  # bytes that aren't UTF-8, as surrogateescape decodes them


def read_jsonl(source: str, stream: Stream, columns: Columns) -> Iterator[Document | Rejected]:
    """Yield a document or a rejection for each line of JSON. Blank lines are skipped."""
    number, rows = 0, 0
    try:
        for number, line in enumerate(lines(stream), 1):
            if line is not None and not line.strip():
                continue
            rows += 1
            yield _document_from_json(source, number, line, columns)
    except FAULTS as error:
        yield _rest_unreadable(source, number, error)
        return
    if not rows:
        yield Rejected(source, None, "blank: it holds no line of JSON" if number else "empty")


def read_csv(source: str, stream: Stream, columns: Columns) -> Iterator[Document | Rejected]:
    """Yield a document or a rejection for each CSV row after the header; blank lines are skipped.

    A row's line number is that of its first line. A row is rejected if its number of cells differs from the header's or
    if its quotes don't match. Reading then continues on the next line.
    """
    csv.field_size_limit(LONGEST_CELL)
    reader = csv.reader(_text_lines(stream), strict=True)
    header: list[str] | None = None
    rows = 0
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            rows += 1
            through = f", lines {line} to {reader.line_num}" if reader.line_num > line else ""
            yield Rejected(source, line, f"no row of comma-separated values{through}: {error}")
            if header is None:
                return
            continue
        except FAULTS as error:
            yield _rest_unreadable(source, line - 1, error)
            return
        if not cells:
            continue
        if header is None:
            if fault := _fault_of_header(cells, columns):
                yield Rejected(source, None, fault)
                return
            header = cells
            continue
        rows += 1
        if len(cells) != len(header):
            yield Rejected(source, line, f"{len(cells)} cells where there are {len(header)} columns")
        elif fault := _first_bad_document_byte(cells, map(repr, header)):
            yield Rejected(source, line, fault)
        else:
            yield to_document(source, line, dict(zip(header, cells, strict=True)), columns)
    if not rows:
        yield Rejected(source, None, "empty" if header is None else "it has no rows, but the names of its columns")


def _document_from_json(source: str, number: int, line: bytes | None, columns: Columns) -> Document | Rejected:
    """Convert a line of JSON to a document, or reject it. line: None if it was too long to read."""
    if line is None:
        return Rejected(
            source, number, f"longer than {LONGEST_LINE:,} bytes: put each text of this length in its own .txt file"
        )
    try:
        text = line.decode().removeprefix("\ufeff" if number == 1 else "")
        cells = parse_json(text)
    except UnicodeDecodeError as error:
        return Rejected(source, number, no_utf8(error))
    except RegardError as error:
        return Rejected(source, number, f"invalid JSON: {error}")
    if not isinstance(cells, dict):
        return Rejected(source, number, f"got {type(cells).__name__}, expected a JSON object")
    return to_document(source, number, cells, columns)


def _text_lines(stream: Stream) -> Iterator[str]:
    """Yield decoded lines with their line ends. Bytes that aren't UTF-8 become characters that `_ESCAPED` matches."""
    for number, line in enumerate(lines(stream)):
        if line is None:
            raise RegardError(f"a line is longer than {LONGEST_LINE:,} bytes: needs texts in files .txt")
        text = line.decode(errors="surrogateescape").removeprefix("" if number else "\ufeff")
        if "\r" in text[:-2]:
            yield from io.StringIO(text, newline="")  # which also ends lines at a lone \r
        else:
            yield text


def _fault_of_header(names: list[str], columns: Columns) -> str:
    """Return why a first row isn't a valid header, or an empty string if it is."""
    if any("\0" in name for name in names):
        return "binary: character U+0000 in the names of the columns"
    if fault := _first_bad_document_byte(names, range(1, len(names) + 1)):
        return f"{fault} of the first row"
    needed = [columns.text] if columns.id is None else [columns.text, columns.id]
    return repeated_document_column(names) or missing_document_column(needed, names)


def _first_bad_document_byte(cells: Iterable[str], names: Iterable[object]) -> str:
    """Return a message about the first byte that isn't UTF-8 in a row, or an empty string."""
    for name, cell in zip(names, cells, strict=True):
        if not cell.isascii() and (match := _ESCAPED.search(cell)):
            return f"invalid UTF-8: byte {ord(match[0]) - 0xDC00:#04x} at character {match.start()} in column {name}"
    return ""


def _rest_unreadable(source: str, line: int, error: Exception) -> Rejected:
    """Reject the rest of a file that can't be read after a line."""
    return Rejected(source, line + 1, f"{reason(error)}; nothing after line {line:,} is read")


BATCH = 8 << 20  # bytes per batch, estimated by the mean row size of a row group
MOST_ROWS = 1024


def read_parquet(source: str, path: Path, columns: Columns) -> Iterator[Document | Rejected]:
    """Yield a document or a rejection for each row of a Parquet file. Skip row groups that can't be read."""
    import pyarrow
    import pyarrow.parquet

    faults = (*FAULTS, pyarrow.ArrowException)
    try:
        with opened(path) as stream:
            # Don't buffer whole column chunks: a row group may have any size.
            file = pyarrow.parquet.ParquetFile(stream, pre_buffer=False, buffer_size=1 << 20)
            if fault := _fault_of_parquet(file, columns):
                yield Rejected(source, None, fault)
                return
            row = 0
            for group in range(file.num_row_groups):
                count, first = 0, row + 1
                group_metadata = file.metadata.row_group(group)
                row += group_metadata.num_rows
                size = min(MOST_ROWS, max(1, BATCH * group_metadata.num_rows // max(1, group_metadata.total_byte_size)))
                try:
                    for batch in file.iter_batches(batch_size=size, row_groups=[group], use_threads=False):
                        for cells in _read_rows(batch):
                            yield _document_from_cells(source, first + count, cells, columns)
                            count += 1
                except faults as error:
                    message = f"rows {first + count:,} to {row:,} are not read"
                    yield Rejected(source, first + count, f"{_why_parquet_unreadable(error)}; {message}")
    except faults as error:
        yield Rejected(source, None, _why_parquet_unreadable(error))


def _fault_of_parquet(file: "pyarrow.parquet.ParquetFile", columns: Columns) -> str:
    """Return why a Parquet file holds no texts, or an empty string if it does."""
    import pyarrow

    schema = file.schema_arrow
    needed = [columns.text] if columns.id is None else [columns.text, columns.id]
    if fault := repeated_document_column(schema.names) or missing_document_column(needed, schema.names):
        return fault
    kind = schema.field(columns.text).type
    plain = kind.value_type if pyarrow.types.is_dictionary(kind) else kind
    is_text = (pyarrow.types.is_string, pyarrow.types.is_large_string, pyarrow.types.is_string_view)
    if not any(is_type(plain) for is_type in (*is_text, pyarrow.types.is_null)):
        return f"column {columns.text!r} is {kind}, expected string"
    return "" if file.metadata.num_rows else "it has no rows"


def _read_rows(batch: "pyarrow.RecordBatch") -> Iterator[dict[str, object]]:
    """Yield the rows of a batch as dictionaries. If a cell can't be read, its value is the error."""
    table = []
    for column in batch.columns:
        try:
            table.append(column.to_pylist())
        except (ValueError, OverflowError):  # a cell isn't UTF-8, or its date is outside Python's range
            table.append([_read_cell(value) for value in column])
    for cells in zip(*table, strict=True):
        yield dict(zip(batch.schema.names, cells, strict=True))


def _read_cell(value: "pyarrow.Scalar") -> object:
    try:
        return value.as_py()
    except (ValueError, OverflowError) as error:
        return error


def _document_from_cells(source: str, row: int, cells: dict[str, object], columns: Columns) -> Document | Rejected:
    """Convert a Parquet row to a document, or reject it if a cell could not be read."""
    for name, value in cells.items():
        if isinstance(value, UnicodeDecodeError):
            byte = value.object[value.start]
            return Rejected(
                source, row, f"invalid UTF-8: byte {byte:#04x} at position {value.start:,} in column {name!r}"
            )
        if isinstance(value, Exception):
            return Rejected(source, row, f"column {name!r} cannot be read: {value}")
    return to_document(source, row, cells, columns)


def _why_parquet_unreadable(error: Exception) -> str:
    """Return a one-line reason for an Arrow error, which may be an OSError or ValueError."""
    return reason(error) if isinstance(error, FAULTS) else f"cannot be read: {str(error).splitlines()[0]}"
