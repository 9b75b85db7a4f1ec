"""Keep a matrix as quantised rows, and dequantize to float32 only the rows that an operation needs."""

from collections.abc import Callable, Iterator
from typing import Any, Union

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from regard import gguf
from regard.attention.kernels.threads import run_on_ranges

# Operations that select rows, or some of several matrices, with the position of their axis argument (None: axis 0).
SELECTIONS = {"split": 2, "chunk": 2, "unbind": 1, "select": 1, "narrow": 1, "index_select": 1, "__getitem__": None}
SAME = frozenset(("detach", "data"))
TRANSPOSES = frozenset(("t", "T", "mT"))
View = Union["QuantisedRows", Tensor, tuple[Union["QuantisedRows", Tensor], ...], None]  # the result of a view


class QuantisedRows:
    """A quantised matrix, or a stack of matrices, with the tensor methods that `StoredWeight` uses.

    bytes: of each row, (..., R, bytes). kind: gguf's name of the quantisation. sizes: numbers and bytes per block.
    flipped: whether the matrix is the transpose of the rows. scale_bytes: the blocks' scales, (..., R, blocks), if they
    aren't among the bytes.
    """

    def __init__(
        self,
        bytes: UInt8[Tensor, "*E R B"],
        kind: str,
        sizes: tuple[int, int],
        flipped: bool = False,
        scale_bytes: UInt8[Tensor, "*E R N"] | None = None,
    ) -> None:
        self.bytes, self.kind, self.sizes, self.flipped, self.scale_bytes = bytes, kind, sizes, flipped, scale_bytes

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the dequantized matrix."""
        *others, rows, width = self.bytes.shape
        width = width // self.sizes[1] * self.sizes[0]
        return (*others, width, rows) if self.flipped else (*others, rows, width)

    @property
    def device(self) -> torch.device:
        """The device of the quantised bytes."""
        return self.bytes.device

    @property
    def ndim(self) -> int:
        """The number of dimensions of the quantised matrix."""
        return self.bytes.ndim

    def __len__(self) -> int:
        return self.shape[0]

    def stride(self) -> tuple[int, ...]:
        """Return the strides of the dequantized matrix."""
        plain = torch.empty(self.t().shape if self.flipped else self.shape, device="meta")
        return (plain.mT if self.flipped else plain).stride()

    def float(self) -> Float[Tensor, "..."]:
        """Dequantize the whole matrix to float32."""
        upright = self.t() if self.flipped else self
        result = torch.empty(upright.shape)
        dequantize_into(upright, result.view(-1))
        return result.mT if self.flipped else result

    def blocks(self, limit: int) -> Iterator[Float[Tensor, "_ ..."]]:
        """Dequantize the rows to float32, in blocks of about `limit` numbers that overwrite each other."""
        upright = self.t() if self.flipped else self
        row_numbers = max(1, torch.Size(upright.shape[1:]).numel())
        rows = max(1, min(len(upright), limit // row_numbers))
        buffer = torch.empty(rows, *upright.shape[1:])
        target, (packed, scale_bytes) = buffer.view(-1).numpy(), _flat_arrays(upright)
        size, scale_size = len(packed) // len(upright), 0 if scale_bytes is None else len(scale_bytes) // len(upright)
        for start in range(0, len(upright), rows):
            end = min(start + rows, len(upright))
            scales = None if scale_bytes is None else scale_bytes[start * scale_size : end * scale_size]
            packed_run, run = packed[start * size : end * size], target[: (end - start) * row_numbers]
            _dequantize_run(self.kind, self.sizes, packed_run, scales, run)
            yield buffer[: end - start]

    def scales(self) -> Float[Tensor, "N _"] | None:
        """Return the scales of the quantised blocks. If they are finite, so are all numbers. None for some kinds."""
        result = gguf.quantised_blocks.scales(self.kind, *_flat_arrays(self))
        return None if result is None else torch.from_numpy(result)

    def t(self) -> "QuantisedRows":
        """Return the transposed matrix, with the same quantised bytes."""
        return QuantisedRows(self.bytes, self.kind, self.sizes, not self.flipped, self.scale_bytes)

    def clone(self) -> "QuantisedRows":
        """Return a copy of the matrix, with a copy of its quantised bytes."""
        return self._map_bytes(torch.clone)

    def to(self, device: torch.device) -> "QuantisedRows | Float[Tensor, '...']":
        """Return the matrix itself if it is on the device, else a float32 copy there. Only a CPU can dequantize."""
        return self if device == self.device else self.float().to(device)

    def rows(self, ids: Int[Tensor, "..."]) -> Float[Tensor, "... C"]:
        """Dequantize the rows with these ids, from a matrix that isn't flipped."""
        return self._map_bytes(lambda tensor: tensor[ids.reshape(-1)]).float().view(*ids.shape, self.shape[-1])

    def multiply_row(self, x: Float[Tensor, " C"]) -> Float[Tensor, " M"] | None:
        """Return the matrix times x in float32, (M,). Return None if no kernel supports the matrix or the vector."""
        kernels = gguf.quantised_blocks
        if self.ndim != 2 or self.flipped or x.shape != self.shape[1:] or x.device.type != "cpu":
            return None
        if self.kind not in kernels.KERNELS or not self.bytes.is_contiguous():
            return None
        products = torch.empty(len(self))
        rows, vector, target = self.bytes.numpy(), x.detach().numpy(), products.numpy()

        def multiply_range(first: int, end: int) -> None:
            kernels.multiply_row(self.kind, rows[first:end], vector, target[first:end])

        run_on_ranges(len(rows), len(rows) * len(vector), multiply_range)
        return products

    def apply_view(self, func: Callable[..., Any], name: str, args: Any, kwargs: dict[str, Any]) -> "View":
        """Apply a torch view operation to the quantised matrix. Return None if it needs all numbers in float32.

        args, kwargs: the operation's arguments after the matrix.
        """
        if name in SAME or (name == "__getitem__" and args[0] is Ellipsis):
            return self
        if name == "clone" and not kwargs:
            return self.clone()
        last = {self.ndim - 1, self.ndim - 2, -1, -2}
        if (name in TRANSPOSES and (self.ndim == 2 or name == "mT")) or (
            name in ("transpose", "swapaxes") and not kwargs and set(args) <= last and len(args) == 2
        ):
            axes = {axis % self.ndim for axis in args}
            return self if len(axes) == 1 else self.t()
        if name not in SELECTIONS or (self.flipped and self.ndim == 2):
            return None
        position = SELECTIONS[name]
        if position is not None:
            axis = kwargs.get("dim", args[position - 1] if len(args) >= position else 0)
            if axis not in (0, -self.ndim):
                return None
        elif self.ndim == 2 and isinstance(args[0], tuple) and isinstance(args[0][0], slice):
            return self._map_bytes(lambda tensor: tensor[args[0][0]]).float()[(slice(None), *args[0][1:])]
        elif isinstance(args[0], (tuple, list)) or args[0] is None:
            return None
        selected = func(self.bytes, *args, **kwargs)
        scale_bytes = None if self.scale_bytes is None else func(self.scale_bytes, *args, **kwargs)
        if isinstance(selected, Tensor):
            return self._wrap_bytes(selected, scale_bytes)
        return tuple(self._wrap_bytes(part, scale_bytes and scale_bytes[n]) for n, part in enumerate(selected))

    def _wrap_bytes(self, bytes: Tensor, scales: Tensor | None) -> "QuantisedRows | Float[Tensor, ' C']":
        """Wrap selected bytes as a quantised matrix, or dequantize them if they are a single row."""
        if bytes.ndim > 1:
            return QuantisedRows(bytes, self.kind, self.sizes, self.flipped, scales)
        row = QuantisedRows(bytes[None], self.kind, self.sizes, scale_bytes=None if scales is None else scales[None])
        return row.float()[0]

    def _map_bytes(self, function: Callable[[Tensor], Tensor]) -> "QuantisedRows":
        """Apply a function to the quantised bytes, and to the separate scales if there are any."""
        scale_bytes = None if self.scale_bytes is None else function(self.scale_bytes)
        return QuantisedRows(function(self.bytes), self.kind, self.sizes, self.flipped, scale_bytes)


def _flat_arrays(rows: QuantisedRows) -> tuple[Any, Any]:
    """Return the bytes of quantised rows and their separate scales (or None) as flat arrays."""
    return rows.bytes.reshape(-1).numpy(), None if rows.scale_bytes is None else rows.scale_bytes.reshape(-1).numpy()


def dequantize_into(rows: QuantisedRows, target: Float[Tensor, " n"]) -> None:
    """Dequantize rows of a matrix that isn't flipped into a flat float32 tensor."""
    _dequantize_run(rows.kind, rows.sizes, *_flat_arrays(rows), target.numpy())


def _dequantize_run(kind: str, sizes: tuple[int, int], packed: Any, scale_bytes: Any, target: Any) -> None:
    """Dequantize the bytes of whole blocks into a float32 array, on worker threads if there are many."""
    (numbers, size), dequantize_blocks = sizes, gguf.quantised_blocks.dequantize_blocks

    def dequantize_range(first: int, end: int) -> None:
        scales = None if scale_bytes is None else scale_bytes[first:end]
        dequantize_blocks(kind, packed[first * size : end * size], target[first * numbers : end * numbers], scales)

    run_on_ranges(len(packed) // size, len(target), dequantize_range)
