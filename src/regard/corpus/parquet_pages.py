"""Measure what a column of a Parquet file takes when it is unpacked, before it is: from the headers of its pages.

A few hundred bytes can say that they unpack to gigabytes, and only the header of each page, in front of it, has to be
right about that. Where a column's pages are is read from the footer here and not asked of pyarrow, which ends the whole
process where a column's statistics do not fit. https://parquet.apache.org/docs/file-format/
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from regard.corpus.thrift import read_thrift_struct


@dataclass(frozen=True)
class PageSize:
    """What a page says of itself. unpacked: bytes; values: how many it has, 0 for a dictionary."""

    unpacked: int
    values: int


@dataclass(frozen=True)
class Chunk:
    """Where a column's pages of one row group are. path: its name, and those of what is inside it. size: in bytes."""

    path: tuple[str, ...]
    start: int
    size: int


def parquet_page_sizes(chunk: bytes) -> Iterator[PageSize]:
    """Read the headers of all pages of a column's chunk.

    Raises:
        ValueError: these are no pages.
    """
    at = 0
    while at < len(chunk):
        fields, at = read_thrift_struct(chunk, at)
        unpacked, packed = _parquet_size(fields.get(2)), _parquet_size(fields.get(3))
        data = [each for each in (fields.get(5), fields.get(8)) if isinstance(each, dict)]  # of either version
        values = sum(_parquet_size(each.get(1)) for each in data)
        if packed > len(chunk) - at:
            raise ValueError("a page ends behind its column")
        yield PageSize(unpacked, values)
        at += packed


def column_chunks(footer: bytes) -> list[list[Chunk]]:
    """Read from a footer where the columns of each row group are.

    Raises:
        ValueError: this is no footer.
    """
    fields, _ = read_thrift_struct(footer)
    try:
        return [[_parquet_column_chunk(column[3]) for column in group[1]] for group in fields[4]]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"its footer lacks where columns are ({error})") from error


def _parquet_column_chunk(about: dict[int, Any]) -> Chunk:
    path = tuple(each.decode("utf-8") for each in about[3])
    # Data pages, and a dictionary before them; where there are no rows, no data pages, of which 0 is said.
    start = min((place for n in (9, 11) if (place := _parquet_size(about.get(n, 0)))), default=0)
    return Chunk(path, start, _parquet_size(about[7]))


def _parquet_size(value: Any) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"a header has {str(value)[:40]} where a size is needed")
    return value
