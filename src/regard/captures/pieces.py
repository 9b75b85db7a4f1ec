"""The tensors of a file while it is put together: by reference, so that only a part of the one being written is copied.

Format: https://github.com/huggingface/safetensors#format. Its library writes a dictionary of finished tensors, all of
them in memory at once; here a few megabytes at a time are made contiguous, narrowed and brought to the CPU.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor

from regard.captures.choice import named
from regard.errors import RegardError

CODES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
    torch.bool: "BOOL",
}
ALIGNED = 64  # bytes: where torch's own allocations begin, so that products of opened tensors run as those traced did
Named = str | list[Any]  # a tensor in a file: its name, or its name and which axis of the tensor each stored one is
BITE = 8 << 20  # bytes that are copied at a time
HEADER_LIMIT = 100_000_000  # bytes: safetensors refuses to read more


@dataclass(frozen=True, eq=False)
class Piece:
    """A tensor, or some places of one of its axes, in the dtype that it is to be stored in."""

    tensor: Tensor
    dtype: torch.dtype
    axis: int = 0
    places: tuple[int, ...] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that is stored."""
        shape = list(self.tensor.shape)
        if self.places is not None:
            shape[self.axis] = len(self.places)
        return tuple(shape)

    @property
    def bytes(self) -> int:
        """The size that is stored."""
        return torch.Size(self.shape).numel() * self.dtype.itemsize

    @property
    def narrowed(self) -> bool:
        """Whether numbers are rounded."""
        return self.dtype != self.tensor.dtype

    @property
    def key(self) -> tuple[object, ...]:
        """The same for two pieces of the same memory."""
        t = self.tensor
        return (t.data_ptr(), t.device, t.dtype, t.shape, t.stride(), self.dtype, self.axis, self.places)

    def take(self) -> Tensor:
        """The tensor as it is stored: contiguous, on the CPU.

        Raises:
            RegardError: a number is too large for the dtype.
        """
        return self._part(0, 0, self.shape[0])

    def bites(self) -> Iterator[Tensor]:
        """The same in runs of a few megabytes, one after the other as they lie in the file."""
        shape = self.shape
        axis = next((n for n, size in enumerate(shape) if size > 1), 0)
        step = max(1, BITE * shape[axis] // max(1, self.bytes))
        for start in range(0, shape[axis], step):
            yield self._part(axis, start, min(start + step, shape[axis]))

    def _part(self, axis: int, start: int, stop: int) -> Tensor:
        own, places = self.tensor.detach(), self.places
        if places is not None and axis == self.axis:
            places = places[start:stop]
        else:
            own = own.narrow(axis, start, stop - start)
        if places is not None:
            if places == tuple(range(places[0], places[0] + len(places))):  # neighbours need no copy
                own = own.narrow(self.axis, places[0], len(places))
            else:
                own = own.index_select(self.axis, torch.tensor(places, device=own.device))
        stored = own.to(self.dtype).cpu().contiguous()
        if self.narrowed and stored.numel():
            ends = torch.stack(stored.aminmax())  # NaN where there is any
            if not bool(ends.isfinite().all()) and bool((stored.isinf() & own.isfinite().cpu()).any()):
                largest = float(own[own.isfinite()].abs().max())
                raise RegardError(f"dtype {named(self.dtype)} cannot hold {largest:.3g}: choose another, or none")
        return stored


class Pieces:
    """Pieces by name. What lies in the same memory is stored once, under the name that came first."""

    def __init__(self, dtype: torch.dtype | None = None) -> None:
        self.dtype = dtype
        self._named: dict[str, Piece] = {}
        self._names: dict[tuple[object, ...], str] = {}

    def piece(self, tensor: Tensor, axis: int = 0, places: tuple[int, ...] | None = None) -> Piece:
        """A tensor in the dtype that was asked for, where that is no wider than its own."""
        dtype = tensor.dtype
        if self.dtype is not None and dtype.is_floating_point and self.dtype.itemsize <= dtype.itemsize:
            dtype = self.dtype
        return Piece(tensor, dtype, axis, places)

    def add(self, name: str, piece: Piece) -> Named:
        """How to find it again: the name of an earlier piece of the same memory or this one, and the order of its axes.

        A tensor is stored as it lies in memory, its axes by falling stride. So it need not be copied to be written, and
        products of what is opened sum up in the order of those traced, to the same bits.
        """
        if piece.dtype not in CODES:
            raise RegardError(f"tensor {name!r} is of {named(piece.dtype)}, needs floating-point or boolean numbers")
        shape, strides = piece.tensor.shape, piece.tensor.stride()
        wide = sorted((n for n, size in enumerate(shape) if size > 1), key=lambda n: -strides[n])
        if wide == sorted(wide):
            return self._store(name, piece)
        order = [*(n for n, size in enumerate(shape) if size <= 1), *wide]
        return [
            self._store(name, replace(piece, tensor=piece.tensor.permute(order), axis=order.index(piece.axis))),
            order,
        ]

    def _store(self, name: str, piece: Piece) -> str:
        found = self._names.setdefault(piece.key, name)
        self._named.setdefault(found, piece)
        return found

    def shapes(self) -> dict[str, Tensor]:
        """Tensors of the stored shapes and dtypes without numbers."""
        return {name: torch.empty(p.shape, dtype=p.dtype, device="meta") for name, p in self._named.items()}

    def ordered(self) -> Iterator[tuple[str, Piece]]:
        """All pieces, those first after which the next one is aligned: the format allows no gaps between them."""
        yield from sorted(self._named.items(), key=lambda each: (each[1].bytes % ALIGNED > 0, -each[1].dtype.itemsize))


def write(pieces: Pieces, metadata: dict[str, str], file: Path) -> None:
    """Write a safetensors file, one piece after the other, without a copy of all or of one of them.

    Raises:
        RegardError: the metadata are larger than a safetensors file may hold, or a number is too large for its dtype.
    """
    header: dict[str, object] = {"__metadata__": metadata}
    offset = 0
    for name, piece in pieces.ordered():
        span = [offset, offset + piece.bytes]
        header[name] = {"dtype": CODES[piece.dtype], "shape": list(piece.shape), "data_offsets": span}
        offset += piece.bytes
    told = json.dumps(header).encode()
    told += b" " * (-(8 + len(told)) % ALIGNED)
    if len(told) > HEADER_LIMIT:
        raise RegardError(
            f"what describes these traces takes {len(told)} bytes, a file may hold {HEADER_LIMIT}: save fewer texts"
        )
    with file.open("wb") as out:
        out.write(len(told).to_bytes(8, "little") + told)
        for _, piece in pieces.ordered():
            for part in piece.bites():
                out.write(part.reshape(-1).view(torch.uint8).numpy().data)


def why_unreadable(file: Path, error: SafetensorError) -> str:
    """In a person's words, why a file is no safetensors file."""
    size = file.stat().st_size
    with file.open("rb") as opened:
        length = int.from_bytes(opened.read(8), "little")
        start = opened.read(1)
        if size < 9 or start != b"{" or length > HEADER_LIMIT:
            return "it is no safetensors file"
        if size < 8 + length:
            return f"it is cut short, it has {size} bytes and its header alone needs {8 + length}"
        try:
            header = json.loads(start + opened.read(length - 1))
            needed = (
                8 + length + max((t["data_offsets"][1] for n, t in header.items() if n != "__metadata__"), default=0)
            )
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
            return f"its header is damaged ({str(error).splitlines()[0]})"
    if size != needed:
        return f"it {'is cut short' if size < needed else 'is too long'}, it has {size} bytes and needs {needed}"
    return str(error).splitlines()[0]
