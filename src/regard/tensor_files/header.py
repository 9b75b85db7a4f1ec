"""The header of a safetensors file, read strictly: every size is held against the file's own before it is used.

Format: https://github.com/huggingface/safetensors#format.
"""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch

from regard.errors import RegardError

CODES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
    torch.bool: "BOOL",
}
DTYPES = {code: dtype for dtype, code in CODES.items()}
HEADER_LIMIT = 16 << 20  # bytes, of JSON, which takes some twenty times as much when it is read


@dataclass(frozen=True)
class Entry:
    """A tensor of a file: its bytes are [begin, end) of the file."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    begin: int
    end: int


def header_length(first: bytes, size: int) -> int:
    """How long the JSON is that stands behind the file's first 8 bytes. size: of the file.

    Raises:
        RegardError: it is no safetensors file, or one that is cut short.
    """
    length = int.from_bytes(first[:8], "little")
    if size < 10 or first[8:9] != b"{":
        raise RegardError("it is no safetensors file")
    if size < 8 + length:
        raise RegardError(f"it is cut short, it has {size} bytes and its header alone needs {8 + length}")
    if length > HEADER_LIMIT:
        raise RegardError(f"its header has {length} bytes, at most {HEADER_LIMIT} are read")
    return length


def read_header(told: bytes, size: int) -> tuple[dict[str, str], dict[str, Entry]]:
    """(metadata, tensors by name) of a file of that size, from the JSON of its header.

    Raises:
        RegardError: it is damaged, or does not describe every byte of the file once.
    """
    count, room = told.count(b'"data_offsets"'), size - 8 - len(told)
    if count > 1024 + room // 16:
        raise RegardError(f"its header names {count} tensors, the file has {room} bytes for them")
    content = parse(told, "its header")
    if not isinstance(content, dict):
        raise RegardError("its header is damaged: needs names")
    metadata = content.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise RegardError("its header is damaged: its metadata are no texts")
    start = 8 + len(told)
    tensors = {name: _entry(name, each, start) for name, each in content.items()}
    at = start
    for name, entry in sorted(tensors.items(), key=lambda each: (each[1].begin, each[1].end)):
        if entry.begin != at:
            raise RegardError(f"its header is damaged: tensor {name!r} begins at byte {entry.begin}, needs {at}")
        at = entry.end
    if at != size:
        raise RegardError(f"it is {'cut short' if size < at else 'too long'}, it has {size} bytes and needs {at}")
    return metadata, tensors


def parse(told: str | bytes, what: str) -> Any:
    """JSON in which no name stands twice and every number is one.

    Raises:
        RegardError: it is none, or is nested too deeply.
    """
    try:
        return json.loads(told, object_pairs_hook=_named_once, parse_constant=_no_number)
    except RecursionError:
        raise RegardError(f"{what} is nested too deeply") from None
    except RegardError as error:
        raise RegardError(f"{what} is damaged: {error}") from None
    except ValueError as error:
        raise RegardError(f"{what} is damaged: {str(error).splitlines()[0]}") from None


def _named_once(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    pairs = list(pairs)
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise RegardError(f"{twice[:80]!r} stands in it twice")
    return found


def _no_number(name: str) -> float:
    raise RegardError(f"{name} is no number")


def _entry(name: str, told: Any, start: int) -> Entry:
    """One tensor's entry. start: where the data begin in the file."""
    if not isinstance(told, dict) or set(told) != {"dtype", "shape", "data_offsets"}:
        raise RegardError(f"its header is damaged: tensor {name!r} needs dtype, shape and data_offsets")
    code, shape, span = told["dtype"], told["shape"], told["data_offsets"]
    if not isinstance(code, str) or code not in DTYPES:
        raise RegardError(f"tensor {name!r} is of {str(code)[:20]!r}, needs {', '.join(DTYPES)}")
    for numbers in (shape, span):
        if not isinstance(numbers, list) or any(type(n) is not int or not 0 <= n < 1 << 63 for n in numbers):
            raise RegardError(f"its header is damaged: tensor {name!r} needs whole numbers for its shape and place")
    dtype, needed = DTYPES[code], DTYPES[code].itemsize
    for size in shape:
        needed *= size
        if needed >= 1 << 63:
            break
    if len(span) != 2 or len(shape) > 16 or span[1] - span[0] != needed:
        raise RegardError(f"its header is damaged: tensor {name!r} does not have the bytes of its shape")
    return Entry(dtype, tuple(shape), start + span[0], start + span[1])
