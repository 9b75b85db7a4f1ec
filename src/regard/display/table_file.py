"""Write rows as a table: CSV that a spreadsheet can open without running what stands in it, or Parquet.

A cell of a text that begins with = + - @, a tab or a line break would be taken for a formula; it gets an apostrophe in
front (CWE-1236). Numbers stay numbers. Everything is written whole or not at all.
"""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from regard.corpus.extra import import_from_corpus_extra
from regard.files import whole

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
Cell = str | int | float | None


def neutral(cell: Cell) -> Cell:
    """Return a cell that no spreadsheet takes for a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell.lstrip(" ").startswith(FORMULA) else cell


def write_csv(rows: Sequence[Mapping[str, Cell]], file: Path) -> None:
    """Write rows as CSV in UTF-8 with a header."""
    names = columns_of(rows)
    with (
        whole(file) as temporary,
        temporary.open("w", encoding="utf-8", newline="", errors="backslashreplace") as opened,
    ):
        writer = csv.writer(opened)
        writer.writerow([neutral(name) for name in names])
        writer.writerows([neutral(row.get(name)) for name in names] for row in rows)


def write_parquet(rows: Sequence[Mapping[str, Cell]], file: Path) -> None:
    """Write rows as Parquet; a column of no values has strings."""
    pa, pq = import_from_corpus_extra("pyarrow"), import_from_corpus_extra("pyarrow.parquet")
    arrays = {}
    for name in columns_of(rows):
        values = [row.get(name) for row in rows]
        arrays[name] = pa.array(values, None if any(each is not None for each in values) else pa.string())
    with whole(file) as temporary:
        pq.write_table(pa.table(arrays), temporary, compression="zstd")


def columns_of(rows: Sequence[Mapping[str, Cell]]) -> list[str]:
    """List the columns of rows as they come."""
    return list(dict.fromkeys(name for row in rows for name in row))
