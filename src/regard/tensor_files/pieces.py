"""The tensors of a file to be written: by reference, so that only a part of the one being written is copied.

A few megabytes at a time are made contiguous, rounded to the file's dtype and moved to the CPU.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from regard.errors import RegardError
from regard.tensor_files.digests import CODES
from regard.tensor_files.file import ALIGNED

Named = str | list[Any]  # a tensor's name, or [name, order], where axis n of what is stored is its axis order[n]
CHUNK = 8 << 20  # bytes that are copied at a time


def dtype_name(dtype: torch.dtype) -> str:
    """'bfloat16' of torch.bfloat16."""
    return str(dtype).removeprefix("torch.")


@dataclass(frozen=True, eq=False)
class Piece:
    """A tensor, or some places of one of its axes, in the dtype that it is to be stored in.

    minus_inf: whether it may hold -inf, as a bias does.
    """

    tensor: Tensor
    dtype: torch.dtype
    axis: int = 0
    places: tuple[int, ...] | None = None
    minus_inf: bool = False

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
        """Return the tensor as it is stored: contiguous, on the CPU.

        Raises:
            RegardError: a number is too large for the dtype.
        """
        return self._part(0, 0, self.shape[0])

    def chunks(self) -> Iterator[Tensor]:
        """Return the same in runs of a few megabytes, one after the other as they lie in the file."""
        shape = self.shape
        axis = next((n for n, size in enumerate(shape) if size > 1), 0)
        step = max(1, CHUNK * shape[axis] // max(1, self.bytes))
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
                raise RegardError(f"dtype {dtype_name(self.dtype)} cannot hold {largest:.3g}: choose another, or none")
        return stored


class Pieces:
    """Pieces by name. What lies in the same memory is stored once, under the name that came first."""

    def __init__(self, dtype: torch.dtype | None = None) -> None:
        self.dtype = dtype
        self._named: dict[str, Piece] = {}
        self._names: dict[tuple[object, ...], str] = {}

    def piece(
        self, tensor: Tensor, axis: int = 0, places: tuple[int, ...] | None = None, *, minus_inf: bool = False
    ) -> Piece:
        """Return a tensor in the dtype that was asked for, where that is no wider than its own.

        places: which of the axis are stored, None for all. minus_inf: whether it may hold -inf.
        """
        dtype = tensor.dtype
        if self.dtype is not None and dtype.is_floating_point and self.dtype.itemsize <= dtype.itemsize:
            dtype = self.dtype
        return Piece(tensor, dtype, axis, places, minus_inf)

    def add(self, name: str, piece: Piece) -> Named:
        """How to find it again: the name of an earlier piece of the same memory or this one, and the order of its axes.

        A tensor is stored as it lies in memory, its axes by falling stride. So it need not be copied to be written, and
        products of what is opened sum up in the order of those traced, to the same bits.
        """
        if piece.dtype not in CODES:
            dtype = dtype_name(piece.dtype)
            raise RegardError(f"tensor {name!r} is of {dtype}, needs floating-point or boolean numbers")
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
        first = self._names.setdefault(piece.key, name)
        self._named.setdefault(first, piece)
        return first

    def shapes(self) -> dict[str, Tensor]:
        """Tensors of the stored shapes and dtypes without numbers."""
        return {name: torch.empty(p.shape, dtype=p.dtype, device="meta") for name, p in self._named.items()}

    def ordered(self) -> Iterator[tuple[str, torch.dtype, tuple[int, ...], bool, Iterator[Tensor]]]:
        """All pieces as they are written, those first after which the next one is aligned: no gaps are allowed."""
        ordered = sorted(self._named.items(), key=lambda each: (each[1].bytes % ALIGNED > 0, -each[1].dtype.itemsize))
        for name, piece in ordered:
            yield name, piece.dtype, piece.shape, piece.minus_inf, piece.chunks()
