"""Quantised numbers as a file has them, row by row: rows are taken, and dequantized to float32, without the others."""

from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Any

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from regard.attention.kernels import threads

SHARED = 1 << 17  # numbers below which handing out tasks costs more than it gains
# Operations that take rows, or matrices of several, and where the axis stands among their arguments (None: it is 0).
ALONG = {"split": 2, "chunk": 2, "unbind": 1, "select": 1, "narrow": 1, "index_select": 1, "__getitem__": None}
SAME = frozenset(("detach", "data"))
TURNS = frozenset(("t", "T", "mT"))


class QuantisedRows:
    """A matrix, or several, of quantised numbers. It has what a `StoredWeight` asks of the numbers that it holds.

    bytes: of each row, (..., R, bytes). kind: how they are quantised, as gguf names it. sizes: how many numbers and
    bytes a block has. flipped: whether the matrix is the transpose of what the rows are. aside: of kinds whose blocks'
    scales aren't among the bytes, those, (..., R, blocks).
    """

    def __init__(
        self,
        bytes: UInt8[Tensor, "*E R B"],
        kind: str,
        sizes: tuple[int, int],
        flipped: bool = False,
        aside: UInt8[Tensor, "*E R N"] | None = None,
    ) -> None:
        self.bytes, self.kind, self.sizes, self.flipped, self.aside = bytes, kind, sizes, flipped, aside

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the matrix in numbers."""
        *others, rows, width = self.bytes.shape
        width = width // self.sizes[1] * self.sizes[0]
        return (*others, width, rows) if self.flipped else (*others, rows, width)

    @property
    def device(self) -> torch.device:
        """Where the bytes are."""
        return self.bytes.device

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.bytes.ndim

    def __len__(self) -> int:
        return self.shape[0]

    def stride(self) -> tuple[int, ...]:
        """The strides that the numbers would have in float32."""
        plain = torch.empty(self.t().shape if self.flipped else self.shape, device="meta")
        return (plain.mT if self.flipped else plain).stride()

    def float(self) -> Float[Tensor, "..."]:
        """Raise them all."""
        upright = self.t() if self.flipped else self
        made = torch.empty(upright.shape)
        dequantize_into(upright, made.view(-1))
        return made.mT if self.flipped else made

    def blocks(self, most: int) -> Iterator[Float[Tensor, "_ ..."]]:
        """Yield the rows in float32, about `most` numbers at a time, each in the place of the previous one."""
        upright = self.t() if self.flipped else self
        row_numbers = max(1, torch.Size(upright.shape[1:]).numel())
        rows = max(1, min(len(upright), most // row_numbers))
        place = torch.empty(rows, *upright.shape[1:])
        into, (packed, aside) = place.view(-1).numpy(), _flat(upright)
        size, aside_bytes = len(packed) // len(upright), 0 if aside is None else len(aside) // len(upright)
        for start in range(0, len(upright), rows):
            end = min(start + rows, len(upright))
            scales = None if aside is None else aside[start * aside_bytes : end * aside_bytes]
            packed_run, run = packed[start * size : end * size], into[: (end - start) * row_numbers]
            _dequantize_run(self.kind, self.sizes, packed_run, scales, run)
            yield place[: end - start]

    def scales(self) -> Float[Tensor, "N _"] | None:
        """Read the scales of their blocks, which are finite where the numbers are; None if a block has others."""
        result = passes().scales(self.kind, *_flat(self))
        return None if result is None else torch.from_numpy(result)

    def t(self) -> "QuantisedRows":
        """Transpose them."""
        return QuantisedRows(self.bytes, self.kind, self.sizes, not self.flipped, self.aside)

    def clone(self) -> "QuantisedRows":
        """Copy their bytes."""
        return self._each(torch.clone)

    def to(self, device: torch.device) -> "QuantisedRows | Float[Tensor, '...']":
        """Leave them where they are, or dequantize them all for another device: that is done on a CPU."""
        return self if device == self.device else self.float().to(device)

    def rows(self, ids: Int[Tensor, "..."]) -> Float[Tensor, "... C"]:
        """Raise the rows of these numbers, of a matrix that isn't flipped."""
        return self._each(lambda tensor: tensor[ids.reshape(-1)]).float().view(*ids.shape, self.shape[-1])

    def viewed(self, func: Callable[..., Any], name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        """Do what torch's operation of this name does, without raising what it leaves out; None if that can't be.

        args, kwargs: what follows the matrix.
        """
        if name in SAME or (name == "__getitem__" and args[0] is Ellipsis):
            return self
        if name == "clone" and not kwargs:
            return self.clone()
        last = {self.ndim - 1, self.ndim - 2, -1, -2}
        if (name in TURNS and (self.ndim == 2 or name == "mT")) or (
            name in ("transpose", "swapaxes") and not kwargs and set(args) <= last and len(args) == 2
        ):
            axes = {axis % self.ndim for axis in args}
            return self if len(axes) == 1 else self.t()
        if name not in ALONG or (self.flipped and self.ndim == 2):
            return None
        place = ALONG[name]
        if place is not None:
            axis = kwargs.get("dim", args[place - 1] if len(args) >= place else 0)
            if axis not in (0, -self.ndim):
                return None
        elif self.ndim == 2 and isinstance(args[0], tuple) and isinstance(args[0][0], slice):
            return self._each(lambda tensor: tensor[args[0][0]]).float()[(slice(None), *args[0][1:])]
        elif isinstance(args[0], (tuple, list)) or args[0] is None:
            return None
        taken = func(self.bytes, *args, **kwargs)
        aside = None if self.aside is None else func(self.aside, *args, **kwargs)
        if isinstance(taken, Tensor):
            return self._part(taken, aside)
        return tuple(self._part(part, aside and aside[n]) for n, part in enumerate(taken))

    def _part(self, bytes: Tensor, aside: Tensor | None) -> "QuantisedRows | Float[Tensor, ' C']":
        """Matrices of these bytes; a single row dequantized."""
        if bytes.ndim > 1:
            return QuantisedRows(bytes, self.kind, self.sizes, self.flipped, aside)
        row = QuantisedRows(bytes[None], self.kind, self.sizes, aside=None if aside is None else aside[None])
        return row.float()[0]

    def _each(self, do: Callable[[Tensor], Tensor]) -> "QuantisedRows":
        """The same done to the bytes and to what stands aside of them."""
        aside = None if self.aside is None else do(self.aside)
        return QuantisedRows(do(self.bytes), self.kind, self.sizes, self.flipped, aside)


def passes() -> ModuleType:
    """The passes over blocks of numbers; numba is loaded, and compiles them, when the first is needed."""
    from regard.model_files import quantised_blocks

    return quantised_blocks


def _flat(rows: QuantisedRows) -> tuple[Any, Any]:
    """The bytes of rows as a run, and the run of what stands aside of them, None if nothing does."""
    return rows.bytes.reshape(-1).numpy(), None if rows.aside is None else rows.aside.reshape(-1).numpy()


def dequantize_into(rows: QuantisedRows, made: Float[Tensor, " n"]) -> None:
    """Write the numbers of rows, which aren't flipped, into a run of float32."""
    _dequantize_run(rows.kind, rows.sizes, *_flat(rows), made.numpy())


def _dequantize_run(kind: str, sizes: tuple[int, int], packed: Any, aside: Any, into: Any) -> None:
    """Write the numbers of whole blocks into a run of float32."""
    (numbers, size), dequantize_blocks = sizes, passes().dequantize_blocks

    def part(first: int, end: int) -> None:
        scales = None if aside is None else aside[first:end]
        dequantize_blocks(kind, packed[first * size : end * size], into[first * numbers : end * numbers], scales)

    share_out(len(packed) // size, len(into), part)


def share_out(count: int, numbers: int, part: Callable[[int, int], None]) -> None:
    """Do what is to be done with so many things, with this many numbers in all, on the worker threads where it is much.

    part: does it with those from one on to another.
    """
    workers = threads.worker_thread_count() if numbers >= SHARED else 1
    share = -(-count // max(1, workers))
    if workers == 1:
        part(0, count)
    else:
        tasks = [partial(part, first, min(first + share, count)) for first in range(0, count, share)]
        threads.run_on_worker_threads(tasks)
