"""Read the header of a safetensors file strictly, without torch: every size is checked against the file's own.

A file is the length of its header (8 bytes, little-endian), the header (JSON: of each tensor its dtype, shape and the
run of bytes that it has; and metadata, text by name), and the tensors' bytes, one after the other without gaps.
Format: https://github.com/huggingface/safetensors#format.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.files import check_regular
from regard.json_files import parse_json

HEADER_LIMIT = 16 << 20  # bytes, of JSON, which takes some twenty times as much when it is parsed
BITS = {
    "F64": 64, "F32": 32, "F16": 16, "BF16": 16, "I64": 64, "I32": 32, "I16": 16, "I8": 8,
    "U64": 64, "U32": 32, "U16": 16, "U8": 8, "BOOL": 8, "C64": 64, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8,
}  # fmt: skip
MOST = 1 << 17  # tensors: the largest checkpoints that are published have 92,000
FEWEST_BITS = 4  # of a number of another dtype: of the smallest two share a byte


@dataclass(frozen=True)
class Entry:
    """A tensor of a file: bytes [begin, end) of the file. dtype: as safetensors writes it, such as "F32"."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True)
class Header:
    """What a file's header says: metadata, text by name, and the tensors' entries by name."""

    metadata: dict[str, str]
    tensors: dict[str, Entry]


def read_safetensors_header(path: Path | str) -> Header:
    """Read a file's header alone.

    Raises:
        RegardError: it is no regular file, which is named; else as in `safetensors_header_length` and `parse_header`.
        OSError: the file system refuses.
    """
    size = check_regular(path)
    with Path(path).open("rb") as file:
        length = safetensors_header_length(file.read(9), size)
        file.seek(8)
        return parse_header(file.read(length), size)


def safetensors_header_length(first: bytes, size: int) -> int:
    """Read the length of a header from the file's first 9 bytes. size: the file's.

    Raises:
        RegardError: it is no safetensors file, one that is cut short, or one with too long a header.
    """
    length = int.from_bytes(first[:8], "little")
    if size < 10 or first[8:9] != b"{":
        raise RegardError("it is no safetensors file")
    if size < 8 + length:
        raise RegardError(f"it is cut short, it has {size} bytes and its header alone needs {8 + length}")
    if length > HEADER_LIMIT:
        raise RegardError(f"its header has {length} bytes, at most {HEADER_LIMIT} are read")
    return length


def parse_header(content: bytes, size: int) -> Header:
    """Parse a header's JSON. size: that of the whole file, every byte of which is described once.

    Raises:
        RegardError: it is damaged, or describes another number of bytes than there are; without the file's name.
    """
    start = 8 + len(content)
    count, room = content.count(b'"data_offsets"'), size - start
    if count > MOST:
        raise RegardError(f"its header names {count:,} tensors, no model or trace has so many")
    if count > 1024 + room // 16:
        raise RegardError(f"its header names {count} tensors, the file has {room} bytes for them")
    try:
        described = parse_json(content)
    except RegardError as error:
        raise RegardError(f"its header is damaged: {error}") from None
    if not isinstance(described, dict):
        raise RegardError("its header is damaged: it is no JSON object")
    metadata = described.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise RegardError("its header is damaged: its metadata are no texts")
    tensors = {name: _entry(name, each, start) for name, each in described.items()}
    at = start
    for name, entry in sorted(tensors.items(), key=lambda each: (each[1].begin, each[1].end)):
        if entry.begin != at:
            raise RegardError(f"its header is damaged: tensor {name[:80]!r} begins at byte {entry.begin}, needs {at}")
        at = entry.end
    if at != size:
        raise RegardError(f"it is {'cut short' if size < at else 'too long'}, it has {size} bytes and needs {at}")
    return Header(metadata, tensors)


def _entry(name: str, described: Any, start: int) -> Entry:
    """One tensor's entry. start: the first byte of the tensors in the file."""
    damaged = f"its header is damaged: tensor {name[:80]!r}"
    if not isinstance(described, dict) or set(described) != {"dtype", "shape", "data_offsets"}:
        raise RegardError(f"{damaged} needs dtype, shape and data_offsets")
    dtype, shape, offsets = described["dtype"], described["shape"], described["data_offsets"]
    if not isinstance(dtype, str):
        raise RegardError(f"{damaged} is of {str(dtype)[:20]!r}, needs a dtype's name")
    for numbers in (shape, offsets):
        if not isinstance(numbers, list) or any(type(n) is not int or not 0 <= n < 1 << 63 for n in numbers):
            raise RegardError(f"{damaged} needs whole numbers for its shape and place")
    if (
        len(offsets) != 2
        or len(shape) > 16
        or not _tensor_bytes_fit_dtype(dtype, math.prod(shape), offsets[1] - offsets[0])
    ):
        raise RegardError(f"{damaged} does not have the bytes of its shape")
    return Entry(dtype, tuple(shape), start + offsets[0], start + offsets[1])


def _tensor_bytes_fit_dtype(dtype: str, numbers: int, size: int) -> bool:
    """Whether so many numbers of a dtype have so many bytes; of a dtype that is not known, whether they can."""
    return size >= 0 and (8 * size == BITS[dtype] * numbers if dtype in BITS else 8 * size >= FEWEST_BITS * numbers)
