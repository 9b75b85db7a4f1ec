"""Limit the memory and tensors that building a model may take, relative to the sizes of its checkpoint.

transformers builds a model without memory (on the device "meta") and then loads the checkpoint. If a config asks for
more than the checkpoint has, the build is stopped, wherever in the architecture's code that happens.
"""

from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from regard.errors import RegardError
from regard.memory import format_bytes, require_memory
from regard.model_files.limits import CheckpointSizes

FACTORIES = {"empty", "zeros", "ones", "full", "rand", "randn", "arange", "eye", "tensor"}
DRAWN = {"normal_", "uniform_", "kaiming_uniform_"}  # random initialization
SHARED = 4  # an encoder-decoder makes four embedding tables before it shares one
SPARE = 1 << 26  # further numbers in float32, for tables of positions and masks, which aren't in the checkpoint
PARTS, MORE = 16, 2000  # tensors made for each tensor of the checkpoint, which may combine several; and further tensors


class Budget(TorchFunctionMode):
    """Count the tensors made on "meta" in a with block of this thread. Raise RegardError if they are too many."""

    def __init__(self, sizes: CheckpointSizes, name: str) -> None:
        super().__init__()
        self.held, self.name = sizes, name
        self.bytes = self.tensors = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        drawn = (*args, *(kwargs or {}).values())[0] if func.__name__ in DRAWN else None
        if isinstance(drawn, Tensor) and drawn.device.type == "meta":
            return drawn  # it has no numbers, and torch would import its compiler to draw random ones
        made = func(*args, **(kwargs or {}))
        if isinstance(made, Tensor) and made.device.type == "meta" and func.__name__ in FACTORIES:
            self.bytes += made.numel() * made.itemsize  # a mask has one byte per number
            self.tensors += 1
            if self.bytes > 4 * (SHARED * self.held.numbers + SPARE) or self.tensors > PARTS * self.held.tensors + MORE:
                raise RegardError(
                    f"model {self.name!r}: its config asks for more than its checkpoint holds, {self.held.tensors:,} "
                    f"tensors of {format_bytes(4 * self.held.numbers)} in float32: one of them belongs to another model"
                )
        return made


def kept_as_stored(sizes: CheckpointSizes | None, dtype: torch.dtype | None) -> bool:
    """Return whether weights stay as stored: some are smaller than float32, and no dtype is requested (None)."""
    return dtype is None and sizes is not None and sizes.half and (sizes.plain or sizes.mxfp4)


def nbytes(sizes: CheckpointSizes, dtype: torch.dtype | None = torch.float32) -> int:
    """Return the bytes of a checkpoint as a model of this dtype. None: as stored if possible, otherwise float32."""
    return sizes.bytes if kept_as_stored(sizes, dtype) else sizes.numbers * (dtype or torch.float32).itemsize


def require_memory_for_model(
    sizes: CheckpointSizes, device: torch.device, name: str, dtype: torch.dtype | None
) -> None:
    """Raise RegardError if a model doesn't fit into memory, before any of it is read. dtype: as in `nbytes`."""
    helps = "take a smaller one, or free memory"
    if dtype == torch.float32 and kept_as_stored(sizes, None):
        helps = f"keep its weights as they are stored, {format_bytes(nbytes(sizes, None))} (dtype auto), or {helps}"
    how = "as stored" if kept_as_stored(sizes, dtype) else f"in {str(dtype or torch.float32).removeprefix('torch.')}"
    for place in {torch.device("cpu"), device}:
        require_memory(nbytes(sizes, dtype), place, f"model {name!r}, {how},", helps)
