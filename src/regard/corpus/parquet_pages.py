"""Measure what a column of a Parquet file takes when it is unpacked, before it is: from the headers of its pages.

A few hundred bytes can say that they unpack to gigabytes, and only the header of each page, in front of it, has to be
right about that. Headers are in Thrift's compact protocol: https://parquet.apache.org/docs/file-format/data-pages/
"""

from collections.abc import Iterator
from dataclasses import dataclass

DEEPEST = 8  # structs inside each other: a page's header has two
UNPACKED, PACKED = (2,), (3,)  # fields of a header, by the numbers of the structs that they are in: bytes
VALUES = ((5, 1), (8, 1))  # of a data page of either version: how many values


@dataclass(frozen=True)
class PageSize:
    """What a page says of itself. unpacked: bytes; values: how many it has, 0 for a dictionary."""

    unpacked: int
    values: int


def page_sizes(chunk: bytes) -> Iterator[PageSize]:
    """Read the headers of all pages of a column's chunk.

    Raises:
        ValueError: these are no pages.
    """
    at = 0
    while at < len(chunk):
        try:
            fields, at = _header(chunk, at)
        except IndexError:
            raise ValueError("a page's header is cut short") from None
        packed, unpacked = fields.get(PACKED, -1), fields.get(UNPACKED, -1)
        values = sum(fields.get(each, 0) for each in VALUES)
        if min(packed, unpacked, values) < 0 or packed > len(chunk) - at:
            raise ValueError("a page ends behind its column, or has a size below 0")
        yield PageSize(unpacked, values)
        at += packed


def _header(data: bytes, at: int) -> tuple[dict[tuple[int, ...], int], int]:
    """Read a struct: its whole numbers, by the numbers of their fields, and where it ends."""
    fields: dict[tuple[int, ...], int] = {}
    inside: tuple[int, ...] = ()  # the structs that are open
    number = 0
    while True:
        head = data[at]
        at += 1
        if head == 0:  # the struct's end
            if not inside:
                return fields, at
            inside, number = inside[:-1], inside[-1]
            continue
        kind = head & 15
        if head >> 4:
            number += head >> 4
        else:
            number, at = _zigzag(data, at)
        if 4 <= kind <= 6:  # whole numbers
            fields[(*inside, number)], at = _zigzag(data, at)
        elif kind == 12 and len(inside) < DEEPEST:  # a struct
            inside, number = (*inside, number), 0
        elif kind == 8:  # bytes
            size, at = _varint(data, at)
            at += size
        elif kind in (1, 2, 3, 7):  # true, false, a byte, a float
            at += {3: 1, 7: 8}.get(kind, 0)
        else:  # a list, a set or a map: it has none
            raise ValueError(f"a page's header has a field of kind {kind}")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while shift < 70:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7
    raise ValueError("a page's header has a number without an end")


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    """A number with a sign, in zigzag."""
    number, at = _varint(data, at)
    return (number >> 1) ^ -(number & 1), at
