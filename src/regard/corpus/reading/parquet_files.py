"""Read the rows of .parquet in batches of a few megabytes."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from regard.corpus.reading.document import (
    Columns,
    Document,
    Rejected,
    missing_document_column,
    repeated_document_column,
    to_document,
)
from regard.corpus.reading.streams import FAULTS, opened, reason

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.parquet

BATCH = 8 << 20  # bytes, by the mean size of a row group's rows
MOST_ROWS = 1024


def read_parquet(source: str, path: Path, columns: Columns) -> Iterator[Document | Rejected]:
    """Read rows, numbered from 1. A row group that cannot be read is refused, and the next one read.

    source: what the file is called.
    """
    import pyarrow
    import pyarrow.parquet

    faults = (*FAULTS, pyarrow.ArrowException)
    try:
        with opened(path) as stream:
            # Without a buffer for the whole of a column's chunk: a row group may be of any size.
            file = pyarrow.parquet.ParquetFile(stream, pre_buffer=False, buffer_size=1 << 20)
            if said := _no_table(file, columns):
                yield Rejected(source, None, said)
                return
            row = 0
            for group in range(file.num_row_groups):
                done, first = 0, row + 1
                row += file.metadata.row_group(group).num_rows
                try:
                    for batch in _batches(file, group):
                        for cells in _read_rows(batch):
                            yield _to_document(source, first + done, cells, columns)
                            done += 1
                except faults as error:
                    lost = f"rows {first + done:,} to {row:,} are not read"
                    yield Rejected(source, first + done, f"{_why_parquet_unreadable(error)}; {lost}")
    except faults as error:
        yield Rejected(source, None, _why_parquet_unreadable(error))


def _batches(file: "pyarrow.parquet.ParquetFile", group: int) -> "Iterator[pyarrow.RecordBatch]":
    """Read a row group in batches."""
    about = file.metadata.row_group(group)
    rows = BATCH * about.num_rows // max(1, about.total_byte_size)
    return iter(file.iter_batches(batch_size=min(MOST_ROWS, max(1, rows)), row_groups=[group], use_threads=False))


def _no_table(file: "pyarrow.parquet.ParquetFile", columns: Columns) -> str:
    """Say why a file holds no texts; nothing where it does."""
    import pyarrow

    schema = file.schema_arrow
    needed = [columns.text] if columns.id is None else [columns.text, columns.id]
    if said := repeated_document_column(schema.names) or missing_document_column(needed, schema.names):
        return said
    kind = schema.field(columns.text).type
    plain = kind.value_type if pyarrow.types.is_dictionary(kind) else kind
    is_text = (pyarrow.types.is_string, pyarrow.types.is_large_string, pyarrow.types.is_string_view)
    if not any(holds(plain) for holds in (*is_text, pyarrow.types.is_null)):
        return f"column {columns.text!r} is {kind}, needs string"
    return "" if file.metadata.num_rows else "it has no rows"


def _read_rows(batch: "pyarrow.RecordBatch") -> Iterator[dict[str, object]]:
    """Read a batch's cells row by row; in the place of one that cannot be read stands the error."""
    table = []
    for column in batch.columns:
        try:
            table.append(column.to_pylist())
        except (ValueError, OverflowError):  # one of them is no UTF-8, or a date beyond Python's
            table.append([_read_cell(value) for value in column])
    for cells in zip(*table, strict=True):
        yield dict(zip(batch.schema.names, cells, strict=True))


def _read_cell(value: "pyarrow.Scalar") -> object:
    try:
        return value.as_py()
    except (ValueError, OverflowError) as error:
        return error


def _to_document(source: str, row: int, cells: dict[str, object], columns: Columns) -> Document | Rejected:
    """Make a document of a row, unless a cell of it could not be read."""
    for name, value in cells.items():
        if isinstance(value, UnicodeDecodeError):
            byte = value.object[value.start]
            return Rejected(source, row, f"invalid UTF-8: byte {byte:#04x} at place {value.start:,} in column {name!r}")
        if isinstance(value, Exception):
            return Rejected(source, row, f"column {name!r} cannot be read: {value}")
    return to_document(source, row, cells, columns)


def _why_parquet_unreadable(error: Exception) -> str:
    """Say why a file cannot be read; what Arrow raises may be an OSError or a ValueError."""
    return reason(error) if isinstance(error, FAULTS) else f"cannot be read: {str(error).splitlines()[0]}"
