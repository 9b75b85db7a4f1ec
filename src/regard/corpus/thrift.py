"""Read Thrift's compact protocol, in which a Parquet file's footer and the headers of its pages are written.

https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from typing import Any

DEEPEST = 16  # structs and lists inside each other: a footer has nine
MOST = 1 << 20  # values of one struct and all that it holds
Fields = dict[int, Any]  # by their numbers: whole numbers, bytes, truth values, lists, structs; None of other kinds


def read_thrift_struct(data: bytes, at: int = 0) -> tuple[Fields, int]:
    """Read a struct that begins at a byte: its fields, and where it ends.

    Raises:
        ValueError: there is none, it is cut short, or it is larger or deeper than those of Parquet.
    """
    reader = _Reader(data, at)
    try:
        return reader.struct(0), reader.at
    except IndexError:
        raise ValueError("a header is cut short") from None


class _Reader:
    """A place in bytes, which moves on with what is read."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at, self.left = data, at, MOST

    def struct(self, depth: int) -> Fields:
        fields: Fields = {}
        number = 0
        while (head := self.byte()) != 0:
            number = number + (head >> 4) if head >> 4 else self.whole()
            fields[number] = self.value(head & 15, depth)
        return fields

    def value(self, kind: int, depth: int) -> Any:
        self.left -= 1
        if depth > DEEPEST or self.left < 0:
            raise ValueError("a header is larger or deeper than any of Parquet")
        if kind in (1, 2):  # true, false
            return kind == 1
        if kind in (4, 5, 6):
            return self.whole()
        if kind == 8:
            size = self.length()
            self.at += size
            return self.data[self.at - size : self.at]
        if kind == 9:
            head = self.byte()
            count = head >> 4 if head >> 4 < 15 else self.length()
            own = 3 if head & 15 in (1, 2) else head & 15  # of truth values each has a byte here
            return [self.value(own, depth + 1) for _ in range(count)]
        if kind == 12:
            return self.struct(depth + 1)
        if kind in (3, 7):  # a byte, a float
            self.at += 1 if kind == 3 else 8
            return None
        raise ValueError(f"a header has a field of kind {kind}")

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def length(self) -> int:
        """A size that what is left of the bytes can have."""
        if (size := self.unsigned()) > len(self.data) - self.at:
            raise IndexError
        return size

    def whole(self) -> int:
        """A number with a sign, in zigzag."""
        return ((number := self.unsigned()) >> 1) ^ -(number & 1)

    def unsigned(self) -> int:
        number = shift = 0
        while shift < 70:
            byte = self.byte()
            number |= (byte & 127) << shift
            if byte < 128:
                return number
            shift += 7
        raise ValueError("a header has a number without an end")
